/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of this folder share. */

#include "base/err.h"
#include "ipc/rundir.h"

#define MANAGER_NEW ".new-"    /* beginning of directories in the making */
#define MANAGER_NAMES ".names" /* directory of links: name -> id */

/* Removes a sandbox's directory, the lock last: one with content and without a lock would belong to
 * nobody. dir is the same directory, borrowed. */
void manager_remove_dir(int base, int dir, const char *name);

/* Removes from a directory whose sandbox has ended what only a running one has, after killing and
 * removing what `owned` names; err tells of what could not be removed. The lock is held by the
 * caller. */
void manager_settle(int dir, struct cloche_err *err);

/* renameat2 with RENAME_NOREPLACE, or what comes closest on file systems without it. -1 with errno:
 * EEXIST or ENOTEMPTY if there is one already. */
int manager_rename_new(int base, const char *from, const char *to);

/* --- names.c --- */
_warn_unused_ int names_take(int base, const char *name, const char *id, struct cloche_err *err);
/* Drops every name of id. */
void names_drop(int base, const char *id);
/* Drops the names of sandboxes that are not there any more: of one whose remover was killed before
 * it came to them. */
void names_tidy(int base);
/* The id that a name stands for; 0 or -ENOENT. */
_warn_unused_ int names_find(int base, const char *name, char ret_id[RUNDIR_ID_BYTES + 1]);
