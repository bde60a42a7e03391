/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Before a room: what of a directory that it may write in has to be protected from it. */

#include <stdbool.h>

enum {
	FIND_MAX_DIRS = 1000,         /* directories that are looked into */
	FIND_MAX_ENTRIES = 20 * 1000, /* names in them */
	FIND_MAX_DEPTH = 8,           /* below the one that is granted */
};

/* Calls found with each thing in dir (a descriptor, borrowed) that the table protects, what holds
 * others before those: with its path from there and whether it is to be read-only, or only has to
 * stay in its place. source: the path of dir. A directory in it that a configuration of git names
 * as that of its hooks is such a thing. Links are not followed, and nothing below node_modules is
 * looked at. *ret_cut (may be NULL): a bound was reached. found returns 0 or a negative number,
 * which ends the search. 0, that number, or -ENOMEM. */
int workspace_find(int dir, const char *source,
	int (*found)(void *user, const char *path, bool read_only), void *user, bool *ret_cut);
