/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Files of cloche's own: whole reads, atomic writes, private directories. */

#include "base/buf.h"
#include "base/err.h"

/* Reads a whole regular file (at most max bytes) below dirfd (or AT_FDCWD) into ret, which the
 * caller initialised. Symbolic links are followed. */
_warn_unused_ int fs_read_file(
	int dirfd, const char *path, struct buf *ret, struct cloche_err *err);

/* Writes a file whole or not at all: temporary name beside it, fsync if durable, rename. */
_warn_unused_ int fs_write_atomic(int dirfd, const char *path, struct str data, unsigned mode,
	bool durable, struct cloche_err *err);

/* Makes path and its missing parents with this mode; an existing directory is fine. */
_warn_unused_ int fs_mkdirs(const char *path, unsigned mode, struct cloche_err *err);

/* Makes (if missing) and opens a directory that must belong to us and be closed to others;
 * returns the descriptor. */
_warn_unused_ int fs_open_private_dir(const char *path, struct cloche_err *err);

/* Removes a tree below dirfd without following links; a missing one is fine. Returns 0 or -errno.
 */
int fs_remove_tree(int dirfd, const char *name);

/* The person's home directory: $HOME, or the account's if that says nothing (unset, relative or
 * "/"). Heap; NULL if there is none. Privileged programs do not believe the variable. */
char *fs_home(void);

/* The umask of this process, 077 if it cannot be told. Asking umask() would change it under
 * other threads. */
unsigned fs_umask(void);

/* The absolute form of path as it was meant: the working directory before it if it is relative,
 * "." and doubled slashes gone; ".." and symbolic links stay. Heap; NULL with errno. */
char *fs_absolute(const char *path);

/* Whether path is dir or lies in it, as both are written; dir is not "/". */
bool fs_is_within(const char *path, const char *dir);

/* "a/b" from parts, heap allocated; NULL on lack of memory. Absolute `b` replaces `a`. */
char *fs_join(const char *a, const char *b);
