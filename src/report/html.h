/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Writes a page. Markup is literals of this program alone, which the compiler sees to; everything
 * else goes through html_text(), and never into an attribute. */

#include "base/buf.h"

struct html {
	struct buf out; /* what was not written yet */
	int fd;         /* borrowed */
	int error;      /* 0, or the first failure as -errno: nothing is written after it */
};
#define HTML_INIT(to) ((struct html){.out = BUF_INIT(1 << 20), .fd = (to)})

/* literal: of this program. */
#define HTML(h, literal) html_markup((h), STR(literal))
void html_markup(struct html *h, struct str markup);
/* A constant of this program that is not a literal: style and script. */
void html_constant(struct html *h, const char *text);
void html_number(struct html *h, uint64_t n);

enum html_form {
	HTML_LINE, /* what ends a line is shown as \x0a, too */
	HTML_TEXT, /* lines and tabs stay, colours of a terminal (ECMA-48 8.3.117) are left out */
};
/* Text of anybody. What is markup is escaped; what is no UTF-8, is obeyed by anything or seen by
 * nobody is written as \x1b or \u{202e} and marked. */
void html_text(struct html *h, struct str s, enum html_form form);

/* Writes what is left. Returns error. */
int html_finish(struct html *h);
