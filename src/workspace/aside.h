/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Things that are set aside: their new name, and the command that puts them back. */

#include "base/buf.h"
#include <limits.h>

#define ASIDE ".cloche-set-aside"

/* Rename name in dir, overwriting nothing. Return 0 with the new name, or -errno. */
int aside_rename(int dir, const char *name, char ret[NAME_MAX + 1]);

/* Return whether aside_rename() gives such names. */
bool aside_is(struct str name);

/* Write the command of a shell that renames `aside` to path, with a NUL behind it. Return 0 or
 * -ENOMEM. */
_warn_unused_ int aside_restore(struct buf *out, const char *aside, const char *path);
