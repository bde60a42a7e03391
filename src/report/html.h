/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Write a page. Markup comes only from literals of this program, which the compiler checks;
 * everything else goes through html_text(), and never into an attribute. */

#include "base/buf.h"

struct html {
	struct buf out; /* not written yet */
	int fd;         /* borrowed */
	int error;      /* 0, or the first failure as -errno, after which nothing is written */
};
#define HTML_INIT(to) ((struct html){.out = BUF_INIT(1 << 20), .fd = (to)})

/* literal: a string literal of this program. */
#define HTML(h, literal) html_markup((h), STR(literal))
void html_markup(struct html *h, struct str markup);
/* Write a constant of this program that is not a literal: style and script. */
void html_constant(struct html *h, const char *text);
void html_number(struct html *h, uint64_t n);

enum html_form {
	HTML_LINE, /* line endings are shown as \x0a, too */
	HTML_TEXT, /* lines and tabs are kept, terminal colours (ECMA-48 8.3.117) are removed */
};
/* Write text that is not trusted. Markup is escaped. Invalid UTF-8, control characters and
 * invisible characters are written as \x1b or \u{202e} and marked. */
void html_text(struct html *h, struct str s, enum html_form form);

/* Write the rest. Return error. */
int html_finish(struct html *h);
