/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Copies the configuration in /etc that came with the host's packages. */

#include "base/macro.h"
#include "base/str.h"

/* What every room has. Paths are relative to a root; a directory comes before what is in it. */
struct shipped_own {
	const char *path; /* NULL: the end */
	struct str text;  /* STR_NULL: a directory */
};

/* Copy it from `root`, the host's "/", to etc/ in the directory `to`:
 *  - `own`, in place of files with the same names;
 *  - files that dpkg or ucf list and that are, byte for byte, what the package brought;
 *  - `named`: files and directories, relative to root, changed or not (ends with NULL);
 *  - links in /etc that lead into /usr or to a copied file, except below `without` (likewise);
 *  - for each of `without` that exists an empty directory or file, on which it can be mounted.
 * Only files that every user may read are copied. Return 0 or -errno; -ENOENT if dpkg has no
 * database. */
_warn_unused_ int shipped_copy(int root, int to, const struct shipped_own *own,
	const char *const *named, const char *const *without);

/* Open a directory with such a copy of the host's current configuration. Make it in `base`, a
 * private directory, unless it exists. Remove copies of earlier states of the host from base if no
 * process has them open. Return the descriptor, which keeps the copy from being removed, or -errno.
 */
_warn_unused_ int shipped_open(int base, const struct shipped_own *own, const char *const *named,
	const char *const *without);
