/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Paths of the host that a person names, where a room may have been writing (INV-INSIDE-PATHS). */

#include "base/err.h"
#include "base/macro.h"

enum { HOSTPATH_NAME_MAX = 255 };

/* Where something is, or would be. */
struct hostpath {
	int dir;                          /* O_PATH, owned */
	char name[HOSTPATH_NAME_MAX + 1]; /* in it; "": dir itself */
};

#define HOSTPATH_NULL ((struct hostpath){.dir = -1})

/* Finds path, name by name, each from a descriptor. A symbolic link on the way is followed only in
 * a directory in which no room can have made it: the home directory, one that belongs to root while
 * we are somebody else, or, for root, "/", /etc, /usr (but /usr/local) and /var itself, as long as
 * nobody else can write to it. In any other it ends the search with E_DENIED and the path that
 * it leads to as the hint. The name at the end is neither followed nor looked at, but with a slash
 * behind it it means a directory and is part of the way; if it is not there, it is the name. verb:
 * for messages ("copy to"); home: the home directory, NULL if it is not known. If the kernel
 * says no, err has its errno. */
_warn_unused_ int hostpath_find(const char *path, const char *home, const char *verb,
	struct hostpath *ret, struct cloche_err *err);
void hostpath_done(struct hostpath *p);
static inline void hostpath_donep(struct hostpath *p)
{
	hostpath_done(p);
}

/* Where that really is, without any link. Heap; NULL with errno. */
char *hostpath_real(const struct hostpath *p);
