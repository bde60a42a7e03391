/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Files that give rights to whoever executes them: set-uid and set-gid bits, capabilities. */

#include <stdbool.h>
#include <sys/stat.h>

#define SETID_BITS (S_ISUID | S_ISGID)

/* Returns 0 to go on; else the walk ends and returns it. */
typedef int (*setid_fn)(void *user, int dirfd, const char *name, const struct stat *st);

/* Calls fn for every regular file in the tree below dir (borrowed, O_PATH will do), without
 * following links. A tree of any depth takes two descriptors. opening: directories of ours that we
 * may not search are opened up while they are looked at; what is closed to us otherwise is left
 * out. Returns 0, what fn returned, or -errno. */
int setid_each_file(int dir, bool opening, setid_fn fn, void *user);

/* Takes bits and capabilities from every file in the tree. Returns 0 or -errno. */
int setid_clear(int dir);
