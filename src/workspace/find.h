/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Before a room starts: find what has to be protected in a directory that it may write to. */

#include <stdbool.h>
#include <sys/stat.h>

enum {
	FIND_MAX_DIRS = 1000,         /* directories that are looked into */
	FIND_MAX_ENTRIES = 20 * 1000, /* names in them */
	FIND_MAX_DEPTH = 8,           /* below the one that is granted */
};

/* Call found for each thing in dir (a descriptor, borrowed) that the table protects, a directory
 * before its contents. It gets the path from dir, and whether the thing has to be read-only or only
 * has to stay in its place. A hooks directory in dir that a git configuration names is such a
 * thing, too. st says which file
 * was found. source: the path of dir. Links are not followed, and nothing below node_modules is
 * looked at. *ret_cut (may be NULL): a bound was reached. found returns 0, or a negative number to
 * stop. Return 0, that number, or -ENOMEM. */
int workspace_find(int dir, const char *source,
	int (*found)(void *user, const char *path, const struct stat *st, bool read_only),
	void *user, bool *ret_cut);
