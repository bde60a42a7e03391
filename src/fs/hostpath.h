/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Host paths that a user names, in places where a room may have written (INV-INSIDE-PATHS). */

#include "base/err.h"
#include "base/macro.h"
#include <limits.h>
#include <stdbool.h>

enum { HOSTPATH_NAME_MAX = 255 };

/* The place of a file that exists or is to be made. */
struct hostpath {
	int dir;                          /* O_PATH, owned */
	char name[HOSTPATH_NAME_MAX + 1]; /* name in dir; "" for dir itself */
};

#define HOSTPATH_NULL ((struct hostpath){.dir = -1})

/* Resolve path one component at a time, always relative to a descriptor. A symbolic link on the way
 * is followed only in a directory in which no room can have made it: the home directory, a
 * directory of root if we are another user, or, for root, "/", /etc, /usr (except /usr/local) and
 * /var itself, provided that no other user can write to it. A link in any other directory ends the
 * search with E_DENIED, with the link's target as the hint. The last component is neither followed
 * nor examined; if a slash follows it, it must be a directory and is resolved like the others,
 * unless it does not exist. verb: for messages ("copy to"); home: the home directory, NULL if it is
 * not known. If the kernel reports an error, err has its errno. */
_warn_unused_ int hostpath_find(const char *path, const char *home, const char *verb,
	struct hostpath *ret, struct cloche_err *err);
/* Find a directory that is to be made together with those around it: ret is the place of the first
 * one that is missing, or the same as above if at most the last one is. *ret_rest (heap) is what
 * follows on that: "", or a relative path. */
_warn_unused_ int hostpath_find_missing(const char *path, const char *home, const char *verb,
	struct hostpath *ret, char **ret_rest, struct cloche_err *err);
/* Make what hostpath_find_missing has found missing, and open the directory for reading. No link is
 * followed. Return a descriptor or -errno. */
_warn_unused_ int hostpath_make(const struct hostpath *at, const char *rest, unsigned mode);
/* Open (O_PATH) what an absolute path leads to, following every link, each of them read once.
 * ret_real is where it lies. *ret_within: set to true if a link lay in one of these directories
 * (without links, NULL-terminated, may be NULL), where a room may have made it; else left alone.
 * Return a descriptor or -errno. */
_warn_unused_ int hostpath_follow(
	const char *path, char *const *dirs, char ret_real[PATH_MAX], bool *ret_within);
void hostpath_done(struct hostpath *p);
static inline void hostpath_donep(struct hostpath *p)
{
	hostpath_done(p);
}

/* Whether the path names a file directly in /dev, /dev/fd or /dev/pts. Deeper paths do not count:
 * all users may write to /dev/shm. */
bool hostpath_is_device(const char *path);

/* Return the real path of that place, without any link. Heap; NULL with errno. */
char *hostpath_real(const struct hostpath *p);
