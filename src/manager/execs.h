/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The commands of a kept sandbox, read from its directory (RUNDIR_EXECS in ipc/rundir.h). dir is
 * that directory, borrowed. */

#include "base/err.h"
#include "base/json.h"

/* Store the numbers of all commands that have a directory, in ascending order; free() the array.
 * Return 0 or -errno. */
_warn_unused_ int execs_list(int dir, uint32_t **ret, size_t *ret_n);
/* Return a descriptor of a command's directory, or E_NOT_FOUND. */
_warn_unused_ int execs_open(int dir, uint32_t number, struct cloche_err *err);
/* Store its meta.json as a new reference. E_CORRUPT if it is not JSON. */
_warn_unused_ int execs_read_meta(int exec_dir, json_t **ret, struct cloche_err *err);
/* Return it, or NULL if it does not exist (yet) or cannot be read. */
json_t *execs_meta(int exec_dir);
/* Return whether the log is complete: other processes may still write to it after the command's
 * end. */
bool execs_meta_closed(const json_t *meta);
/* Return the latest command that still runs, else the latest of all; 0 if there is none. */
uint32_t execs_latest(int dir, bool running_first);
