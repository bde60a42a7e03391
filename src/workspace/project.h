/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The git repository in which a directory lies. Everything that is read here may be a stranger's or
 * a room's: a directory of the host is only ever found if it names the project back. */

#include <limits.h>
#include <stdbool.h>

enum project_git {
	PROJECT_GIT_NONE,    /* no repository, or one that has its git directory in its top */
	PROJECT_GIT_LINKED,  /* a linked worktree; git: the directory that it shares with others */
	PROJECT_GIT_MODULE,  /* a submodule; git: its place in the superproject's .git */
	PROJECT_GIT_STRANGE, /* .git leads to a directory that does not name the project back */
};

struct project {
	char top[PATH_MAX]; /* of the repository; "": none was found */
	char git[PATH_MAX]; /* a directory outside of the top that belongs to it, "" if none; if
			     * foreign, the top of that one */
	int top_fd, git_fd; /* O_PATH, owned; -1: none */
	enum project_git kind;
	bool foreign; /* the nearest repository belongs to another user: git would not use it
		       * either, so nothing was found */
};

/* Find the repository around the directory dir (a descriptor, borrowed) that lies at path, without
 * links. With up, look at the directories around it, too, as far as the file system reaches. Only
 * a repository of this user is found. ret has to be empty; call project_done. */
#define PROJECT_NULL ((struct project){.top_fd = -1, .git_fd = -1})
void project_find(int dir, const char *path, bool up, struct project *ret);
void project_done(struct project *p);
