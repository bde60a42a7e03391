/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where the state of a sandbox lies, and who puts what happens to its files on record. */

#include "api/instance.h"
#include "base/fd.h"
#include "fileclient/session.h"
#include "state/state.h"
#include <cloche/state.h>

/* In the directory of state (ipc/statedir.h), named as SandboX has them. */
#define STATE_LOGS "state-logs"
#define STATE_BLOBS "blobs"

struct state_home {
	int dir; /* owned: of all logs, or the sandbox's own */
	bool recorded;
	char name[RUNDIR_ID_BYTES + 1]; /* of the log in it */
};
#define STATE_HOME_INIT ((struct state_home){.dir = -1})

/* By the record of the sandbox. E_UNSUPPORTED where it keeps no state. */
_warn_unused_ int state_home_find(
	const cloche_instance *instance, struct state_home *ret, struct cloche_err *err);

/* Descriptors of the directories of all logs and of all contents, made where they are missing. */
_warn_unused_ int state_logs_open(struct cloche_err *err);
_warn_unused_ int state_blobs_open(struct cloche_err *err);

/* The variables that commands of the sandbox get beside its own, added to *env (strv_env_set).
 * Where nothing was ever set, two files are looked for. */
_warn_unused_ int state_add_env(
	const cloche_instance *instance, char ***env, struct cloche_err *err);

/* Whoever records what a session does, where the sandbox is recorded, else NULL. */
_warn_unused_ int recorder_new(
	const cloche_instance *instance, struct files_recorder **ret, struct cloche_err *err);

static inline void state_home_done(struct state_home *h)
{
	h->dir = fd_close(h->dir);
}
