/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The commands of a kept sandbox, as its directory tells of them (RUNDIR_EXECS in ipc/rundir.h).
 * dir is that directory, borrowed. */

#include "base/err.h"
#include "base/json.h"

/* Numbers of all commands that have a directory, rising; free() it. 0 or -errno. */
_warn_unused_ int execs_list(int dir, uint32_t **ret, size_t *ret_n);
/* The directory of one: a descriptor, or E_NOT_FOUND. */
_warn_unused_ int execs_open(int dir, uint32_t number, struct cloche_err *err);
/* Its meta.json as a new reference; NULL if it is not there (yet) or no JSON. */
json_t *execs_meta(int exec_dir);
/* Whether it says that nobody prints into the log any more: others than the command may do so after
 * its end. */
bool execs_meta_closed(const json_t *meta);
/* The latest that still runs, else the latest of all; 0 if there is none. */
uint32_t execs_latest(int dir, bool running_first);
