/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Finds files that give rights to the user who executes them: set-uid and set-gid bits,
 * capabilities. */

#include <stdbool.h>
#include <sys/stat.h>

#define SETID_BITS (S_ISUID | S_ISGID)

/* Return 0 to go on. Any other value ends the walk, which returns it. */
typedef int (*setid_fn)(void *user, int dirfd, const char *name, const struct stat *st);

/* Call fn for every regular file in the tree below dir (borrowed, O_PATH is enough), without
 * following links, in a tree of any depth (fswalk.h). opening: directories of ours that we may not
 * search are made searchable while they are read. Other directories that are closed to us are left
 * out. Return 0, what fn returned, or -errno. */
int setid_each_file(int dir, bool opening, setid_fn fn, void *user);

/* Remove these bits and capabilities from every file in the tree. Return 0 or -errno. */
int setid_clear(int dir);
