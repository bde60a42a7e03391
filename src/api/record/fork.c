/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: everything in the original is stopped as long as our connection lasts
 * (CTL_SIGNAL with SIGSTOP to the room). Then each fork is made as its original was
 * (api/instance/made.h), and tied to this process until it is complete. It gets the files
 * (fork_files.c) and the present state of the original with the functions that change any sandbox,
 * so that the log of a recorded fork says how it began. */
#include "api/record/fork.h"
#include "api/instance/made.h"
#include "api/record/oplog.h"
#include "base/fd.h"
#include "base/sized.h"
#include "job/job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

struct forking {
	const cloche_instance *instance;
	const cloche_fork_options *o;
	cloche_fork_fn fn;
	cloche_warning_fn warning;
	void *user;
	cloche_sandbox *made, *becomes;
	const char *snapshot; /* its name; NULL: it is a fork */
	uint64_t left_out;
};

static void tell(const struct forking *f, const char *text)
{
	if (f->warning)
		f->warning(text, f->user);
}

/* --- what it is made with --- */

static int add_secrets(struct forking *f, char *const *names, struct cloche_err *err)
{
	for (size_t i = 0; names && names[i]; i++) {
		if (f->o->secrets && secrets_has(f->o->secrets, names[i]))
			continue;
		err_set(err, E_CONFIG,
			"the value of the masked secret %s is not kept, so it cannot be copied",
			names[i]);
		err_hint(err, "give the secret again: --secret %s@HOST, as for the sandbox itself",
			names[i]);
		return -E_CONFIG;
	}
	return f->o->secrets ? cloche_sandbox_add_secrets(f->becomes, f->o->secrets, err) : 0;
}

/* Remove the host directories that the original may write to: the fork must not have them. */
static int drop_writable(cloche_sandbox *sb, struct cloche_err *err)
{
	size_t n = 0;
	int r = set_string(&sb->workdir, sandbox_workdir(sb), err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < sb->mounts_n; i++) {
		/* What guards a part of one goes with it. */
		if (sb->mounts[i].ro && !sb->mounts[i].guard) {
			sb->mounts[n++] = sb->mounts[i];
			continue;
		}
		fd_close(sb->mounts[i].fd);
		free(sb->mounts[i].source);
		free(sb->mounts[i].target);
		free(sb->mounts[i].also);
	}
	sb->mounts_n = n;
	sb->opened = strv_free(sb->opened);
	return set_string(&sb->workspace, NULL, err);
}

static int describe(struct forking *f, struct cloche_err *err)
{
	_cleanup_(strv_freep) char **secrets = NULL;
	int r = made_read(f->instance, &f->made, &secrets, err);

	if (r < 0)
		return r;
	f->becomes = sandbox_copy(f->made);
	if (!f->becomes)
		return err_sys(err, errno, "copy a sandbox's configuration");
	if (f->becomes->keep_changes) {
		tell(f, "changes of the forks are not kept in a directory: each fork has its own "
			"copy");
		r = sandbox_set_keep_changes(f->becomes, NULL, err);
	}
	if (r == 0)
		r = set_string(&f->becomes->name, NULL, err);
	if (r == 0 && !f->o->share)
		r = drop_writable(f->becomes, err);
	if (r == 0)
		r = sandbox_check_opened(f->becomes, err);
	if (r < 0)
		return r;
	return f->snapshot ? set_string(&f->becomes->kept_record, "ops", err)
			   : add_secrets(f, secrets, err);
}

/* --- its state --- */

struct state_copy {
	cloche_state *to;
	enum cloche_state_part part;
	struct cloche_err *err;
	int r;
};

static bool copy_pair(
	const void *key, size_t key_length, const void *value, size_t length, void *user)
{
	struct state_copy *c = user;

	c->r = cloche_state_set(c->to, c->part, key, key_length, value, length, c->err);
	return c->r == 0;
}

static int copy_state(
	const cloche_instance *instance, const cloche_instance *fork, struct cloche_err *err)
{
	cloche_state *from = NULL;
	struct state_copy c = {.err = err};
	int r = cloche_state_open(instance, &from, err);

	if (r == -E_UNSUPPORTED) {
		err_clear(err);
		return 0;
	}
	if (r == 0)
		r = cloche_state_open(fork, &c.to, err);
	for (c.part = CLOCHE_STATE_ENV; r == 0 && c.part <= CLOCHE_STATE_STORAGE; c.part++) {
		r = state_list(from, c.part, copy_pair, &c, err);
		r = r < 0 ? r : c.r;
	}
	if (r == 0)
		r = state_copy_unset(from, c.to, err);
	cloche_state_close(c.to);
	cloche_state_close(from);
	return r;
}

/* --- one --- */

static int copy_files(struct forking *f, const cloche_instance *fork, struct cloche_err *err)
{
	struct fork_copy c = {.instance = f->instance, .made = f->made, .becomes = f->becomes};
	int r = cloche_files_open(f->instance, 0, 0, &c.from, err);

	if (r == 0 && f->o->progress)
		cloche_files_on_progress(c.from, f->o->progress, f->o->progress_user);
	if (r == 0)
		r = cloche_files_open(fork, 0, 0, &c.to, err);
	if (r == 0) {
		cloche_files_set_lenient(c.to, true);
		r = fork_copy_files(&c, err);
	}
	cloche_files_close(c.from);
	cloche_files_close(c.to);
	f->left_out = c.left_out;
	return r;
}

static int snapshot_name(const struct forking *f, char ret[OPLOG_NAME_MAX + sizeof(OPLOG_SUFFIX)])
{
	return snprintf(ret, OPLOG_NAME_MAX + sizeof(OPLOG_SUFFIX), "%s@%s" OPLOG_SUFFIX,
		f->instance->id, f->snapshot);
}

static int take_nothing(
	const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	return 0;
}

/* Put on record over which root the files were. */
static int note_root(
	const struct forking *f, const cloche_instance *fork, int logs, struct cloche_err *err)
{
	_cleanup_json_ json_t *args = json_pack("{s:s, s:{s:o}}", "id", f->instance->id, "config",
		"root", json_text(sandbox_root(f->made)));
	_cleanup_(oplog_closep) struct oplog log = OPLOG_INIT;
	struct state_op op = {.kind = STATE_SANDBOX_START, .args = args, .mode = STATE_NO_MODE};
	int r = args ? oplog_open(&log, logs, fork->id, true, err) : err_nomem(err);

	if (r == 0)
		r = oplog_lock(&log, err);
	if (r == 0)
		r = oplog_read(&log, take_nothing, NULL, NULL, err);
	return r < 0 ? r : oplog_append(&log, &op, 1, err);
}

/* Keep the fork's log as the snapshot: it has what was copied, from where, and nothing else. */
static int keep_log(const struct forking *f, const cloche_instance *fork, struct cloche_err *err)
{
	char from[OPLOG_NAME_MAX + sizeof(OPLOG_SUFFIX)], to[sizeof(from)];
	_cleanup_fd_ int logs = oplogs_open(err), fd = -1;
	int r = logs < 0 ? logs : note_root(f, fork, logs, err);

	if (r < 0)
		return r;
	snprintf(from, sizeof(from), "%s" OPLOG_SUFFIX, fork->id);
	snapshot_name(f, to);
	fd = openat(logs, from, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fsync(fd) < 0 || linkat(logs, from, logs, to, 0) < 0 ||
		unlinkat(logs, from, 0) < 0)
		return err_sys(err, errno, "keep the snapshot");
	return fsync(logs) < 0 ? err_sys(err, errno, "sync the directory of logs") : 0;
}

/* Return 1 if the caller wants no more. */
JOB_ASK1(call_fork_fn, cloche_fork_fn, bool, false, const cloche_instance *)

static int make_one(struct forking *f, unsigned number, struct cloche_err *err)
{
	_cleanup_(cloche_instance_freep) cloche_instance *fork = NULL;
	struct client *client = NULL;
	char name[256];
	int r = 0;

	if (f->o->name) {
		snprintf(name, sizeof(name), f->o->count > 1 ? "%s-%u" : "%s", f->o->name, number);
		r = sandbox_set_name(f->becomes, name, err);
	}
	if (r == 0)
		r = instance_begin(f->becomes, f->warning, f->user, &client, &fork, err);
	if (r < 0)
		return r;
	r = copy_files(f, fork, err);
	if (r == 0)
		r = copy_state(f->instance, fork, err);
	if (r == 0 && f->snapshot)
		r = keep_log(f, fork, err);
	else if (r == 0)
		r = cloche_instance_refresh(fork, err);
	if (r == 0 && f->snapshot) {
		instance_discard(client);
		client_free(client);
	} else {
		r = instance_complete(client, r, err);
	}
	if (r == 0 && f->fn && !call_fork_fn(f->fn, fork, f->user))
		r = 1;
	return r;
}

/* Stop everything in the room until the client is freed. Of a room that has no layer of changes
 * nothing can be copied, so it is left alone. */
static int pause_room(struct client *client, struct cloche_err *err)
{
	_cleanup_fd_ int upper = -1, lower = -1;
	struct ctl_stats_now done;
	int r = client_layers(client, &upper, &lower, err);

	if (r == 0 && client_signal(client, SIGSTOP, CTL_SCOPE_ROOM) < 0)
		r = err_set(err, E_INTERNAL, "its supervisor has gone");
	/* The answer to a later request shows that it was done. */
	return r < 0 ? r : client_stats(client, &done, err);
}

struct snapshots {
	const char *id;
	unsigned n;
};

static bool count_snapshot(const char *log, uint64_t bytes, uint64_t modified_us, void *user)
{
	struct snapshots *s = user;
	size_t n = strlen(s->id);

	s->n += strncmp(log, s->id, n) == 0 && log[n] == '@';
	return true;
}

static int check_snapshot(const struct forking *f, struct cloche_err *err)
{
	char file[OPLOG_NAME_MAX + sizeof(OPLOG_SUFFIX)];
	struct snapshots s = {.id = f->instance->id};
	_cleanup_fd_ int logs = -1;
	int r = oplog_is_snapshot_name(str_from(f->snapshot))
			? cloche_oplog_list(count_snapshot, &s, err)
			: err_set(err, E_USAGE,
				  "a snapshot's name has 1 to %d letters, digits, '-', '_' and '.'",
				  OPLOG_SNAPSHOT_MAX);

	if (r < 0)
		return r;
	if (s.n >= CLOCHE_SNAPSHOTS_MAX)
		return err_set(err, E_LIMIT, "sandbox %s has %u snapshots already", s.id, s.n);
	logs = oplogs_open(err);
	if (logs < 0)
		return logs;
	snapshot_name(f, file);
	if (faccessat(logs, file, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	err_set(err, E_EXISTS, "there is already a snapshot %s of it", f->snapshot);
	err_hint(err, "remove it first: cloche log %s@%s rm", s.id, f->snapshot);
	return -E_EXISTS;
}

/* Make n of them, with the original stopped. */
static int make_all(struct forking *f, unsigned n, struct cloche_err *err)
{
	_cleanup_(client_freep) struct client *client = NULL;
	int r = instance_attach(f->instance, &client, err);

	if (r == 0)
		r = describe(f, err);
	if (r == 0)
		r = pause_room(client, err);
	for (unsigned i = 1; r == 0 && i <= n; i++)
		r = make_one(f, i, err);
	if (r >= 0 && f->left_out > 0)
		tell(f, "sockets and devices were left out");
	cloche_sandbox_free(f->made);
	cloche_sandbox_free(f->becomes);
	return r;
}

int cloche_instance_snapshot(const cloche_instance *instance, const char *name,
	cloche_warning_fn warning, void *user, cloche_err *err)
{
	const cloche_fork_options none = CLOCHE_FORK_INIT;
	struct forking f = {.instance = instance,
		.o = &none,
		.warning = warning,
		.user = user,
		.snapshot = name};
	struct cloche_err own = CLOCHE_ERR_INIT;
	int r;

	err = err ? err : &own;
	r = check_snapshot(&f, err);
	if (r == 0)
		r = make_all(&f, 1, err);
	return r < 0 ? err_wrap(err, r, "snapshot of %s", instance->id) : 0;
}

int cloche_instance_fork(const cloche_instance *instance, const cloche_fork_options *options,
	cloche_fork_fn fn, cloche_warning_fn warning, void *user, cloche_err *err)
{
	cloche_fork_options o = CLOCHE_FORK_INIT;
	struct forking f = {
		.instance = instance, .o = &o, .fn = fn, .warning = warning, .user = user};
	struct cloche_err own = CLOCHE_ERR_INIT;
	unsigned n;
	int r;

	err = err ? err : &own;
	r = options ? sized_take(&o, sizeof(o), options, "cloche_fork_options", err) : 0;
	if (r < 0)
		return r;
	n = MAX(o.count, 1U);
	if (n > CLOCHE_FORKS_MAX)
		return err_set(err, E_USAGE, "at most %d forks at a time", CLOCHE_FORKS_MAX);
	r = make_all(&f, n, err);
	return r < 0 ? err_wrap(err, r, "fork %s", instance->id) : 0;
}
