/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which paths of the host may be mounted into a room. */

#include "base/err.h"
#include "fs/hostpath.h"
#include <sys/stat.h>

/* Judge a file of the host (O_PATH, borrowed; or -errno, if it could not be opened) that shall be
 * mounted. Refuse (E_DENIED): devices and fifos; sockets, except by their real path; and places
 * that hold credentials of the user or the machine, as well as anything inside of them or
 * containing them, unless `path`, by which it was opened, names that place or something in it (not
 * through a link). home: the user's home directory, or NULL if it is not known. */
_warn_unused_ int source_check(
	int fd, const char *path, const char *home, struct stat *ret, struct cloche_err *err);

/* Judge a path without links that a search has found and no user has named: refuse it (E_DENIED) if
 * it lies in such a place or contains one. */
_warn_unused_ int source_judge_found(const char *path, const char *home, struct cloche_err *err);

/* Judge an absolute path that the user named and that leads to `real`, by the rules of
 * source_check: for a path that is resolved before it is opened. */
_warn_unused_ int source_judge_named(
	const char *named, const char *real, const char *home, struct cloche_err *err);

/* Judge where a path that the user named has led (hostpath_find), by the rules of source_check: to
 * copy from or write to such a place, the user has to name it as well. */
_warn_unused_ int source_judge_path(const struct hostpath *at, const char *path, const char *home,
	const char *verb, struct cloche_err *err);
