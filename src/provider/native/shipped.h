/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The configuration in /etc that came with the host's packages, as a copy. */

#include "base/macro.h"

/* Copies it from `root`, the host's "/", to the directory `to`, in which it lies in etc/:
 *  - files that dpkg or ucf list and that are, byte for byte, what the package brought;
 *  - `named`: files and directories, relative to root, as they are (ends with NULL);
 *  - links in /etc into /usr or to what was copied before, but for those below `without`, likewise.
 * Only what everybody may read is copied. Returns 0 or -errno; -ENOENT if dpkg has no
 * database. */
_warn_unused_ int shipped_copy(
	int root, int to, const char *const *named, const char *const *without);

/* A directory with such a copy of the host's as it is now, made in `base`, a private directory,
 * unless it is there. Copies of earlier states are removed from base if nobody has them open.
 * Returns the descriptor, which keeps the copy from being removed, or -errno. */
_warn_unused_ int shipped_open(int base, const char *const *named, const char *const *without);
