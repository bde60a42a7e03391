/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the files of this folder. */

#include "base/err.h"
#include "ipc/rundir.h"

#define MANAGER_NEW ".new-"    /* prefix of directories that are being made */
#define MANAGER_NAMES ".names" /* directory of links: name -> id */

/* Remove a sandbox's directory, the lock last: a directory with content but without a lock would
 * belong to no process. dir is the same directory, borrowed. */
void manager_remove_dir(int base, int dir, const char *name);

/* Kill and remove what `owned` names, in the directory of a sandbox that has ended. The caller
 * holds the lock. */
_warn_unused_ int manager_reap(int dir, struct cloche_err *err);

/* Remove the files that only a running sandbox has. */
void manager_tidy(int dir);

/* --- names.c --- */
_warn_unused_ int names_take(int base, const char *name, const char *id, struct cloche_err *err);
/* Drop every name of id, or (NULL) the names of sandboxes that do not exist any more, in case a
 * process that removed one was killed before it dropped the name. */
void names_drop(int base, const char *id);
/* Store the id that a name stands for. Return 0 or -ENOENT. */
_warn_unused_ int names_find(int base, const char *name, char ret_id[RUNDIR_ID_BYTES + 1]);
