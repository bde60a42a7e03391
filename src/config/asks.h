/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of a project ask for, in words: lines of printable ASCII. No line is cut short,
 * since the missing part could be what matters. If there is too much text, it is refused. */

#include "base/buf.h"
#include "base/err.h"
#include "base/strv.h"
#include "policy/allowlist.h"

struct asks {
	char **lines; /* NULL-terminated; NULL: none */
	size_t bytes, n, cap;
};

/* A line in the making. After a failure nothing is added. */
struct ask_line {
	struct buf text;
	int error; /* 0 or negative errno */
};
#define ASK_LINE_INIT ((struct ask_line){.text = BUF_INIT((size_t)1 << 20)})

static inline void ask_line_donep(struct ask_line *l)
{
	buf_done(&l->text);
}

void ask_line_add(struct ask_line *l, const char *text);
/* Add a word of the file: unchanged if it is a plain word, else in quotes with all but printable
 * ASCII escaped. */
void ask_line_word(struct ask_line *l, struct str word);

void asks_done(struct asks *a);
/* Add a copy of line. E_LIMIT if the line, or all of them, have become too long. */
_warn_unused_ int asks_add(struct asks *a, const struct ask_line *line, struct cloche_err *err);

/* Add a line for each rule. */
_warn_unused_ int asks_add_rules(
	struct asks *a, const struct allowlist *list, struct cloche_err *err);
