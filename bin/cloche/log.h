/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What replay and create share. */

#include <cloche/state.h>

/* A log by what a person wrote: a path, or a sandbox. */
int open_log(const char *name, cloche_oplog **ret, cloche_err *err);
/* Replays it, and says what was passed over. */
int replay_log(cloche_oplog *log, const cloche_instance *instance, cloche_err *err);
