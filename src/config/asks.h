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

void asks_done(struct asks *a);
/* Add a copy of line. */
_warn_unused_ int asks_add(struct asks *a, const struct buf *line, struct cloche_err *err);
#define ASKS_LINE_INIT BUF_INIT((size_t)1 << 20)

/* Add a word of the file to a line: unchanged if it is a plain word, else in quotes with all but
 * printable ASCII escaped. Return 0 or negative errno. */
_warn_unused_ int asks_put_word(struct buf *line, struct str word);

/* Add a line for each rule. */
_warn_unused_ int asks_add_rules(
	struct asks *a, const struct allowlist *list, struct cloche_err *err);
