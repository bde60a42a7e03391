/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of a project ask for, in words: lines of printable ASCII. Nothing is cut short,
 * since what is cut off could be what matters; what is too long altogether is refused. */

#include "base/buf.h"
#include "base/err.h"
#include "base/strv.h"
#include "policy/allowlist.h"

struct asks {
	char **lines; /* ends with NULL; NULL: none */
	size_t bytes, n, cap;
};

void asks_done(struct asks *a);
/* Adds a line, which is a copy of what line holds. */
_warn_unused_ int asks_add(struct asks *a, const struct buf *line, struct cloche_err *err);
#define ASKS_LINE_INIT BUF_INIT((size_t)1 << 20)

/* Adds a word of the file's to a line: as it stands if it is a plain word, else in quotes with
 * all but printable ASCII escaped. 0 or negative errno. */
_warn_unused_ int asks_put_word(struct buf *line, struct str word);

/* A line for each rule. */
_warn_unused_ int asks_add_rules(
	struct asks *a, const struct allowlist *list, struct cloche_err *err);
