/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Resolve paths of any bytes and any length beneath a directory as if it were the root: ".." stops
 * there, an absolute path or link begins there, and links without a real target (those in /proc)
 * lead nowhere. Safe against others who rename and link things meanwhile. */

#include "base/buf.h"
#include <stdbool.h>

enum {
	BENEATH_FOLLOW = 1, /* also follow a symbolic link at the end */
	BENEATH_MAKE = 2,   /* make missing directories on the way (0777, less the umask) */
	BENEATH_NAME_MAX = 255,
};

/* Where something is, or would be. */
struct beneath {
	int dir;                         /* O_PATH, owned */
	char name[BENEATH_NAME_MAX + 1]; /* "": the directory itself */
	bool slash;                      /* the path demands a directory */
};

#define BENEATH_NULL ((struct beneath){.dir = -1})

/* Find path beneath root. A relative path begins at base (null: at root). Return 0 with *ret, which
 * beneath_done() closes, or -errno as in path_resolution(7). ESTALE: the tree kept being moved
 * meanwhile. The last name is not checked and need not exist, but if the path ends with a slash, it
 * is a directory or does not exist. */
_warn_unused_ int beneath_find(
	int root, struct str base, struct str path, unsigned flags, struct beneath *ret);
void beneath_done(struct beneath *b);
static inline void beneath_donep(struct beneath *b)
{
	beneath_done(b);
}

/* Open what path leads to, following links. flags are those of open(2) without O_CREAT. Never
 * blocks, for example on a FIFO. Return the descriptor or -errno. */
_warn_unused_ int beneath_open(int root, struct str base, struct str path, int flags);

/* Open the directory at path (relative, no "..") beneath root, through directories only, never
 * through a link. make: make missing directories. Return an O_PATH descriptor or -errno: ELOOP if a
 * link is in the way. */
_warn_unused_ int beneath_directory(int root, struct str path, bool make);

/* Join the names of path by single slashes; "" for the directory itself. Return 0 or -errno: EXDEV
 * if a name is "..", ENAMETOOLONG also if ret is full. */
_warn_unused_ int beneath_clean(struct str path, struct buf *ret);

/* Take the next name from the front of *rest. Slashes and "." before and after it are skipped.
 * Return false if there is none. */
bool beneath_next(struct str *rest, struct str *ret);
