/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: variables and storage are what the operation log says (record/state.h). The
 * log of a recorded sandbox is in the state directory and outlives the sandbox; that of any other
 * is in the sandbox's own directory and goes with it. No other process is asked: a change is
 * appended under the log's lock, and a client that starts a command reads the log. */
#include "api/record/state.h"
#include "base/strv.h"
#include "fs/fs.h"
#include "job/job.h"
#include "record/background.h"
#include "record/logs.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define OWN_LOG "state"

struct cloche_state {
	struct state_home home;
	struct state s;
	bool held;
};

/* Read what the sandbox was created with. If neither runtime nor record was given, its state is
 * kept without a record. */
static int read_kind(
	const cloche_instance *instance, struct state_home *ret, struct cloche_err *err)
{
	_cleanup_(cloche_instance_freep) cloche_instance *own = NULL;
	const json_t *record = instance->record, *config;
	struct str runtime, kind;

	if (!record) {
		int r = instance_copy_fresh(instance, &own, err);

		if (r < 0)
			return r;
		record = own->record;
	}
	config = json_object_get(record, "config");
	runtime = json_str_at(config, "runtime");
	kind = json_str_at(config, "record");
	ret->recorded = kind.p ? !str_eq(kind, STR("none"))
			       : str_eq(runtime, STR("node")) || str_eq(runtime, STR("python"));
	ret->full = str_eq(kind, STR("full"));
	/* A log that does not outlive the sandbox does not have to survive a crash of the machine
	 * either. */
	ret->sync = ret->recorded ? oplog_sync_named(json_str_at(config, "record_sync"))
				  : OPLOG_SYNC_NEVER;
	if (str_eq(runtime, STR("shell")) && !ret->recorded) {
		err_set(err, E_UNSUPPORTED, "sandbox %s keeps no state: its runtime is shell",
			instance->id);
		err_hint(err, "create it with --record ops, or without --runtime");
		return -E_UNSUPPORTED;
	}
	return 0;
}

int state_home_of_run(
	const char *id, const char *sync, struct state_home *ret, struct cloche_err *err)
{
	ret->recorded = ret->full = true;
	ret->sync = oplog_sync_named(str_from(sync));
	snprintf(ret->name, sizeof(ret->name), "%s", id);
	ret->dir = oplogs_open(err);
	return ret->dir < 0 ? ret->dir : 0;
}

int state_home_find(const cloche_instance *instance, struct state_home *ret, struct cloche_err *err)
{
	_cleanup_(sandbox_entry_donep) struct sandbox_entry entry = SANDBOX_ENTRY_INIT;
	int r = read_kind(instance, ret, err);

	if (r < 0)
		return r;
	if (ret->recorded) {
		memcpy(ret->name, instance->id, sizeof(ret->name));
		ret->dir = oplogs_open(err);
		return ret->dir < 0 ? ret->dir : 0;
	}
	snprintf(ret->name, sizeof(ret->name), OWN_LOG);
	r = instance_open_entry(instance, &entry, err);
	if (r == 0)
		ret->dir = TAKE_FD(entry.dir);
	return r;
}

int state_home_open(const struct state_home *h, struct state *ret, struct cloche_err *err)
{
	int r = state_open(ret, h->dir, h->name, true, err);

	ret->log.sync = h->sync;
	/* A room with a full record could make work for a compaction that removes what it did. */
	ret->log.compact_from = h->recorded && !h->full ? OPLOG_COMPACT_FROM : 0;
	return r;
}

int state_home_add_event(const struct state_home *h, enum state_op_kind kind, struct str args,
	struct cloche_err *err)
{
	_cleanup_(state_closep) struct state s = STATE_INIT;
	struct state_op op = {.kind = kind, .object = args, .mode = STATE_NO_MODE};
	int r = state_home_open(h, &s, err);

	return r < 0 ? r : state_change(&s, &op, err);
}

int cloche_state_open(const cloche_instance *instance, cloche_state **ret, cloche_err *err)
{
	cloche_state *state = calloc(1, sizeof(*state));
	int r;

	if (!state)
		return err_nomem(err);
	state->home = STATE_HOME_INIT;
	state->s = STATE_INIT;
	r = state_home_find(instance, &state->home, err);
	if (r == 0)
		r = state_home_open(&state->home, &state->s, err);
	if (r < 0)
		cloche_state_close(state);
	else
		*ret = state;
	return r;
}

void cloche_state_close(cloche_state *state)
{
	if (!state)
		return;
	(void)state_close(&state->s, NULL);
	state_home_done(&state->home);
	free(state);
}

static const struct state_table *table_of(const cloche_state *state, enum cloche_state_part part)
{
	return part == CLOCHE_STATE_ENV ? &state->s.env : &state->s.storage;
}

int cloche_state_get(cloche_state *state, enum cloche_state_part part, const void *key,
	size_t key_length, const void **ret, size_t *ret_length, cloche_err *err)
{
	const struct state_pair *p;
	int r = state_refresh(&state->s, err);

	if (r < 0)
		return r;
	p = state_find(table_of(state, part), str_make(key, key_length));
	if (!p)
		return err_set(err, E_NOT_FOUND, "%s is not set",
			part == CLOCHE_STATE_ENV ? "the variable" : "the key");
	*ret = p->value;
	*ret_length = p->value_n;
	return 0;
}

static int change(cloche_state *state, struct state_op op, struct cloche_err *err)
{
	op.mode = STATE_NO_MODE;
	return state->held ? state_record(&state->s, &op, err) : state_change(&state->s, &op, err);
}

int state_hold(cloche_state *state, struct cloche_err *err)
{
	int r = state->held ? 0 : state_begin(&state->s, err);

	state->held = state->held || r == 0;
	return r;
}

void state_let_go(cloche_state *state)
{
	if (state->held)
		state_end(&state->s);
	state->held = false;
}

int cloche_state_set(cloche_state *state, enum cloche_state_part part, const void *key,
	size_t key_length, const void *value, size_t length, cloche_err *err)
{
	return change(state,
		(struct state_op){
			.kind = part == CLOCHE_STATE_ENV ? STATE_ENV_SET : STATE_STORAGE_SET,
			.subject = str_make(key, key_length),
			.object = str_make(value, length)},
		err);
}

int cloche_state_remove(cloche_state *state, enum cloche_state_part part, const void *key,
	size_t key_length, cloche_err *err)
{
	return change(state,
		(struct state_op){
			.kind = part == CLOCHE_STATE_ENV ? STATE_ENV_DELETE : STATE_STORAGE_DELETE,
			.subject = str_make(key, key_length)},
		err);
}

int cloche_state_clear(cloche_state *state, cloche_err *err)
{
	return change(state, (struct state_op){.kind = STATE_STORAGE_CLEAR}, err);
}

int state_list(cloche_state *state, enum cloche_state_part part, cloche_state_fn fn, void *user,
	struct cloche_err *err)
{
	int r = state_refresh(&state->s, err);

	if (r < 0)
		return r;
	for (const struct state_pair *p = table_of(state, part)->pairs; p; p = p->hh.next)
		if (!fn(p->key, p->key_n, p->value, p->value_n, user))
			break;
	return 0;
}

JOB_ASK4(call_state_fn, cloche_state_fn, bool, false, const void *, size_t, const void *, size_t)

struct pair_list {
	cloche_state_fn fn;
	void *user;
};

static bool list_pair(
	const void *key, size_t key_length, const void *value, size_t length, void *user)
{
	const struct pair_list *l = user;

	return call_state_fn(l->fn, key, key_length, value, length, l->user);
}

int cloche_state_list(cloche_state *state, enum cloche_state_part part, cloche_state_fn fn,
	void *user, cloche_err *err)
{
	struct pair_list l = {fn, user};

	return state_list(state, part, list_pair, &l, err);
}

int state_copy_unset(cloche_state *from, cloche_state *to, struct cloche_err *err)
{
	int r = state_refresh(&from->s, err);

	for (const struct state_pair *p = from->s.unset.pairs; r == 0 && p; p = p->hh.next)
		r = cloche_state_remove(to, CLOCHE_STATE_ENV, p->key, p->key_n, err);
	return r;
}

/* --- what commands see --- */

static int add_env_of(int dir, const char *name, char ***env, char ***unset, struct cloche_err *err)
{
	_cleanup_(state_closep) struct state s = STATE_INIT;
	int r = state_open(&s, dir, name, false, err);

	s.log.tables_only = true;
	if (r == 0)
		r = state_refresh(&s, err);
	for (const struct state_pair *p = s.env.pairs; r == 0 && p; p = p->hh.next)
		if (strv_env_set(env, p->key, p->value) < 0)
			r = err_nomem(err);
	for (const struct state_pair *p = s.unset.pairs; r == 0 && p; p = p->hh.next)
		if (strv_add(unset, str_make(p->key, p->key_n)) < 0)
			r = err_nomem(err);
	return r;
}

int state_add_env(
	const cloche_instance *instance, char ***env, char ***unset, struct cloche_err *err)
{
	_cleanup_(freep) char *kept = NULL;
	_cleanup_fd_ int own = openat(
		instance->base, instance->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	_cleanup_fd_ int logs = -1;

	if (own >= 0 && faccessat(own, OWN_LOG OPLOG_SUFFIX, F_OK, 0) == 0)
		return add_env_of(own, OWN_LOG, env, unset, err);
	/* A command must not begin without its variables because they could not be read. */
	if (errno != ENOENT)
		return err_sys(err, errno, "read the variables of sandbox %s", instance->id);
	if (statedir_path(STATEDIR_LOGS, &kept, NULL) < 0) /* there is no place for any */
		return 0;
	logs = open(kept, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (logs < 0)
		return errno == ENOENT ? 0 : err_sys(err, errno, "open %s", kept);
	return add_env_of(logs, instance->id, env, unset, err);
}
