/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which paths of the host may be mounted into a room. */

#include "base/err.h"
#include "base/hostpath.h"
#include <stdbool.h>

/* Opens a directory or regular file of the host for mounting and returns an O_PATH descriptor;
 * *ret_is_dir says which. Symbolic links on the way are followed. Refused (E_DENIED):
 * devices and fifos; sockets, unless by their real path; and what holds credentials of the person
 * or the machine, whether it is that place itself, lies inside it or contains it, unless `path`
 * names exactly that place or something in it (not through a link); with no_link also a link as the
 * last component. home: the person's home directory, NULL if it is not known. -ENOENT, with err
 * set too, if it does not exist. */
_warn_unused_ int source_open(
	const char *path, const char *home, bool no_link, bool *ret_is_dir, struct cloche_err *err);

/* Judges a path without links that nobody named, but a search found: refused (E_DENIED) if it
 * lies in such a place or contains one. */
_warn_unused_ int source_judge_found(const char *path, const char *home, struct cloche_err *err);

/* Judges where a path that a person named has led (hostpath_find), by the rules of source_open:
 * what is copied or written there needs to be named itself too. */
_warn_unused_ int source_judge_path(const struct hostpath *at, const char *path, const char *home,
	const char *verb, struct cloche_err *err);
