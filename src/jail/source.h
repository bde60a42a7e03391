/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which paths of the host may be mounted into a room. */

#include "base/err.h"
#include "base/hostpath.h"
#include <stdbool.h>

/* Open a directory or regular file of the host for mounting and return an O_PATH descriptor;
 * *ret_is_dir says which. Symbolic links on the way are followed. Refuse (E_DENIED): devices and
 * fifos; sockets, except by their real path; and places that hold credentials of the user or the
 * machine, as well as anything inside of them or containing them, unless `path` names that place or
 * something in it (not through a link). With no_link, also refuse a link as the last component.
 * home: the user's home directory, or NULL if it is not known. Return -ENOENT, with err set too, if
 * the path does not exist. */
_warn_unused_ int source_open(
	const char *path, const char *home, bool no_link, bool *ret_is_dir, struct cloche_err *err);

/* Judge a path without links that a search has found and no user has named: refuse it (E_DENIED) if
 * it lies in such a place or contains one. */
_warn_unused_ int source_judge_found(const char *path, const char *home, struct cloche_err *err);

/* Judge an absolute path that the user named and that leads to `real`, by the rules of source_open:
 * for a path that is resolved before it is opened. */
_warn_unused_ int source_judge_named(
	const char *named, const char *real, const char *home, struct cloche_err *err);

/* Judge where a path that the user named has led (hostpath_find), by the rules of source_open: to
 * copy from or write to such a place, the user has to name it as well. */
_warn_unused_ int source_judge_path(const struct hostpath *at, const char *path, const char *home,
	const char *verb, struct cloche_err *err);
