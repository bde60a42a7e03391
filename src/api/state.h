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
	bool recorded, full;
	enum oplog_sync sync;
	char name[RUNDIR_ID_BYTES + 1]; /* of the log in it */
};
#define STATE_HOME_INIT ((struct state_home){.dir = -1})

/* By the record of the sandbox. E_UNSUPPORTED if it keeps no state. */
_warn_unused_ int state_home_find(
	const cloche_instance *instance, struct state_home *ret, struct cloche_err *err);

/* Of a sandbox with a full record, which may be gone. sync: as it was asked for; NULL: not. */
_warn_unused_ int state_home_of_run(
	const char *id, const char *sync, struct state_home *ret, struct cloche_err *err);

/* Has the log there opened by its sandbox's rules: when it is synced and compacted. */
void state_home_settle(const struct state_home *h, struct oplog *l);

/* Puts an event in the log there: args is a JSON object. */
_warn_unused_ int state_home_add_event(const struct state_home *h, enum state_op_kind kind,
	struct str args, struct cloche_err *err);

/* Descriptors of the directories of all logs and of all contents, made if they are missing. */
_warn_unused_ int state_logs_open(struct cloche_err *err);
_warn_unused_ int state_blobs_open(struct cloche_err *err);

/* The variables that commands of the sandbox get beside its own, added to *env (strv_env_set).
 * If nothing was ever set, two files are looked for. */
_warn_unused_ int state_add_env(
	const cloche_instance *instance, char ***env, struct cloche_err *err);

/* Between these the log stays locked, so that many changes cost one lock. Nothing else that writes
 * to it may be done meanwhile, by whatever handle. */
_warn_unused_ int state_hold(cloche_state *state, struct cloche_err *err);
void state_let_go(cloche_state *state);

/* Whoever records what a session does, if the sandbox is recorded, else NULL. */
_warn_unused_ int recorder_new(
	const cloche_instance *instance, struct files_recorder **ret, struct cloche_err *err);

/* Of what recorder_new() made: whether files that are written whole from now on are assets, which
 * have their contents beside the log whatever their size; and the reference of the last one. */
void recorder_by_reference(struct files_recorder *r, bool by_reference);
const char *recorder_ref(struct files_recorder *r);

static inline void state_home_done(struct state_home *h)
{
	h->dir = fd_close(h->dir);
}
