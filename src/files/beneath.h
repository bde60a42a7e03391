/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Paths of any bytes and any length, resolved beneath a directory as if it were the root: ".."
 * stops there, an absolute path or link begins there, links without a real target (those of /proc)
 * lead nowhere. Safe against whoever renames and links things meanwhile. */

#include "base/macro.h"
#include "base/str.h"
#include <stdbool.h>

enum {
	BENEATH_FOLLOW = 1, /* a symbolic link at the end too */
	BENEATH_MAKE = 2,   /* missing directories on the way are made (0777, less the umask) */
	BENEATH_NAME_MAX = 255,
};

/* Where something is, or would be. */
struct beneath {
	int dir;                         /* O_PATH, owned */
	char name[BENEATH_NAME_MAX + 1]; /* "": the directory itself */
	bool slash;                      /* the path said that it is a directory */
};

#define BENEATH_NULL ((struct beneath){.dir = -1})

/* Finds path beneath root; a relative one begins at base (null: at root). 0 with *ret, which
 * beneath_done closes, or -errno: as path_resolution(7), ESTALE if the tree was moved about
 * again and again meanwhile. What the name at the end is, and whether it is there, is not said,
 * but if the path ends with a slash it is no other than a directory. */
_warn_unused_ int beneath_find(
	int root, struct str base, struct str path, unsigned flags, struct beneath *ret);
void beneath_done(struct beneath *b);
static inline void beneath_donep(struct beneath *b)
{
	beneath_done(b);
}

/* Opens what path leads to, links followed; flags are of open(2) without O_CREAT. Never blocks, on
 * a FIFO for one. Returns the descriptor or -errno. */
_warn_unused_ int beneath_open(int root, struct str base, struct str path, int flags);

/* Opens the directory that the names of path (relative, no "..") lead to from root: through
 * directories alone, no links at all. make: missing ones are made. Returns an O_PATH descriptor or
 * -errno: ELOOP if a link is in the way. */
_warn_unused_ int beneath_directory(int root, struct str path, bool make);

/* Takes the next name from the front of *rest: skips slashes and "." in front of it and behind it.
 * False if there is none. */
bool beneath_next(struct str *rest, struct str *ret);
