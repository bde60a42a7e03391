/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Linked worktrees of git. Each has a record, worktrees/NAME in a git directory, whose file gitdir
 * names the file .git of the worktree, and that file names the record. Either may be hostile: a
 * worktree counts only if each names the other. */

#include <limits.h>

/* Find the file .git of the worktree with this record (a descriptor of a directory). If it is there
 * and names the record, return a descriptor (O_PATH) of it, with its absolute path; else -1.
 * Nothing but regular files is read. */
int worktree_find(int record, char ret[PATH_MAX]);

/* Open the directory that the file .git (O_PATH) in dir names as git's ("gitdir: PATH"), for
 * reading. Return a descriptor, or -errno if it is no such file or names none. */
int worktree_open_git(int dir, int file);
