/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a look found, in words. */

#include "workspace/look.h"

/* One line. aside: the path that it has now, or NULL; restore: a command, or NULL. */
_warn_unused_ int told_add(struct look_told *t, const char *path, const char *what,
	const char *aside, const char *restore);

/* The same of what has to be told however many lines there are. */
_warn_unused_ int told_always(struct look_told *t, const char *path, const char *what);

/* Adds path to out so that a shell reads it as one word of just these bytes, and a terminal shows
 * it as it is written: in quotes, and what is no printable character as \xHH. Returns 0 or a
 * negative errno of buf_add. */
_warn_unused_ int told_quote(struct buf *out, struct str path);
