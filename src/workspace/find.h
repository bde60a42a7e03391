/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Before a room starts: find what has to be protected in a directory that it may write to. */

#include "workspace/hide.h"
#include <stdbool.h>
#include <sys/stat.h>

enum {
	FIND_MAX_DIRS = 10 * 1000,     /* directories that are looked into */
	FIND_MAX_ENTRIES = 200 * 1000, /* names in them */
	FIND_MAX_DEPTH = 8,            /* below the one that is granted */
};

/* How it has to be inside: in its place, or read-only; hooks: and it is a directory in which git
 * looks for them; config: and it is a configuration of a repository; hidden: empty. */
enum find_kind {
	FIND_PINNED,
	FIND_READ_ONLY,
	FIND_HOOKS,
	FIND_CONFIG,
	FIND_HIDDEN_BY_DEFAULT,
	FIND_HIDDEN_BY_RULE,
};

struct find_calls {
	/* path is relative to the directory that is searched, st says which file was found.
	 * Return 0, or a negative number to stop. */
	int (*found)(void *user, const char *path, const struct stat *st, enum find_kind kind);
	/* The record of a worktree that exists, and the worktree's file .git
	 * (workspace/worktree.h). Return 1 if the record need not be searched, or as above. */
	int (*worktree)(void *user, const char *record, const struct stat *st, int file,
		const char *file_path);
	void *user;
	struct hide *hide; /* what is to be hidden; NULL: nothing */
};

/* Call found for each thing in dir (a descriptor, borrowed) that the table protects, a directory
 * before its contents. A hooks directory in dir that a git configuration names is such a thing,
 * too. source: the path of dir. Links are not followed, and nothing below node_modules is looked
 * at. *ret_cut (may be NULL): a bound was reached. Return 0, the number with which a call stopped,
 * or -ENOMEM. */
int workspace_find(int dir, const char *source, const struct find_calls *calls, bool *ret_cut);
