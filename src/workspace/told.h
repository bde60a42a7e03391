/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a look found, in words. */

#include "workspace/look.h"

/* Add one line. aside: the path that it has now, or NULL; restore: a command, or NULL. */
_warn_unused_ int told_add(struct look_told *t, const char *path, const char *what,
	const char *aside, const char *restore);

/* The same for a thing that has to be reported however many lines there are. */
_warn_unused_ int told_always(struct look_told *t, const char *path, const char *what);

/* The same for something that happened, after which nothing has to be looked at. */
_warn_unused_ int told_notice(struct look_told *t, const char *path, const char *what);

/* Add path to out, in quotes, so that a shell reads it as one word of exactly these bytes and a
 * terminal shows it as it is written. Bytes that are not printable become octal escapes. Return 0
 * or a negative errno of buf_add. */
_warn_unused_ int told_quote(struct buf *out, struct str path);

/* Add the first three of n paths like that, and how many more there are. */
_warn_unused_ int told_quote_some(struct buf *out, char *const *paths, size_t n);
