/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Finds the state of a sandbox, and records what happens to its files. */

#include "api/instance/instance.h"
#include "base/fd.h"
#include "fileclient/session.h"
#include "ipc/statedir.h"
#include "record/state.h"
#include <cloche/state.h>

struct state_home {
	int dir; /* owned: the directory of all logs, or the sandbox's own */
	bool recorded, full;
	enum oplog_sync sync;
	char name[RUNDIR_ID_BYTES + 1]; /* of the log in it */
};
#define STATE_HOME_INIT ((struct state_home){.dir = -1})

/* Find it by the record of the sandbox. E_UNSUPPORTED if the sandbox keeps no state. */
_warn_unused_ int state_home_find(
	const cloche_instance *instance, struct state_home *ret, struct cloche_err *err);

/* The same for a sandbox with a full record, which may be gone. sync: as configured, or NULL. */
_warn_unused_ int state_home_of_run(
	const char *id, const char *sync, struct state_home *ret, struct cloche_err *err);

/* Open the log for writing (state_open()), with the sandbox's rules for syncing and compacting. */
_warn_unused_ int state_home_open(
	const struct state_home *h, struct state *ret, struct cloche_err *err);

/* Append an event to the log. args is a JSON object. */
_warn_unused_ int state_home_add_event(const struct state_home *h, enum state_op_kind kind,
	struct str args, struct cloche_err *err);

/* Add to *env (strv_env_set) the variables that commands get in addition to the sandbox's own, and
 * to *unset (strv) the names of those that they do not get. If none was ever changed, this only
 * looks for two files. */
_warn_unused_ int state_add_env(
	const cloche_instance *instance, char ***env, char ***unset, struct cloche_err *err);
/* Like cloche_state_list(), but fn may wait. */
_warn_unused_ int state_list(cloche_state *state, enum cloche_state_part part, cloche_state_fn fn,
	void *user, struct cloche_err *err);
/* Unset in one sandbox what is unset in another. */
_warn_unused_ int state_copy_unset(cloche_state *from, cloche_state *to, struct cloche_err *err);

/* Between these two the log stays locked, so that many changes need only one lock. Nothing else may
 * write to it meanwhile, through any handle. */
_warn_unused_ int state_hold(cloche_state *state, struct cloche_err *err);
void state_let_go(cloche_state *state);

/* Make the record of a file session: the observer that puts on record what the session does. NULL
 * if the sandbox is not recorded. workdir: where relative paths begin inside. */
_warn_unused_ int session_record_new(const cloche_instance *instance, const char *workdir,
	struct files_observer **ret, struct cloche_err *err);

/* For observers from session_record_new(). Set whether files that are written whole from now on are
 * assets, whose contents are stored beside the log whatever their size. */
void session_record_as_assets(struct files_observer *r, bool by_reference);
/* Tell which contents from beside a log the next operations have: fd (borrowed) was checked and is
 * all that they send. If it is a blob of our own, it is named, not stored again. -1: none. */
void session_record_share(struct files_observer *r, int fd, struct str ref);
/* Return the reference of the last asset, borrowed until the next operation. */
const char *session_record_ref(struct files_observer *r);

static inline void state_home_done(struct state_home *h)
{
	h->dir = fd_close(h->dir);
}
