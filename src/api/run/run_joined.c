/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a command that another client started is joined over the control socket for
 * its input, signals and end. Its output comes from its log; inotify wakes the client's wait when
 * the log changes. The log is passed on in pieces, so that a command with much output does not keep
 * input and signals waiting. */
#include "api/instance/instance.h"
#include "api/run/run.h"
#include "base/fd.h"
#include "base/json.h"

#include <unistd.h>

enum { CHUNK = 64 * 1024, PIECES = 16 };

/* Return 0 if that was all there is, 1 if there may be more. */
static int hand_on(cloche_run *run, int pieces, struct cloche_err *err)
{
	_cleanup_(freep) char *chunk = malloc(CHUNK);

	if (!chunk)
		return err_nomem(err);
	while (pieces-- > 0) {
		cloche_log_piece piece;
		int r = cloche_log_read(run->log, run->log_at, chunk, CHUNK, &piece, err);

		if (r < 0 || piece.length == 0)
			return r;
		run->log_at = piece.offset + piece.length;
		r = run_take_output(run, piece.is_stderr ? 2 : 1, chunk, piece.length);
		if (r < 0)
			return err_nomem(err);
	}
	return 1;
}

/* After the command has ended: pass on the log up to here, but not for ever what other processes
 * print later. */
static int hand_on_rest(cloche_run *run, struct cloche_err *err)
{
	cloche_log_state s = {.size = sizeof(s)};
	int r = cloche_log_look(run->log, &s, err);

	if (r < 0)
		return r;
	do
		r = run->log_at < s.end ? hand_on(run, 1, err) : 0;
	while (r > 0);
	return r;
}

/* In a callback of the client: without the log the run fails, and the command goes on. */
static void hand_on_some(cloche_run *run)
{
	struct client *client = atomic_load(&run->client);
	struct cloche_err why = CLOCHE_ERR_INIT;
	int r = hand_on(run, PIECES, &why);

	if (r == 1)
		client_wake(client);
	else if (r < 0)
		client_break_off(client, &why);
}

static void on_log(struct loop_io *io, uint32_t events)
{
	char told[4096];

	/* Empty it before the log is read, so that no later change is missed. */
	while (read(io->fd, told, sizeof(told)) > 0)
		;
	hand_on_some(container_of(io, struct cloche_run, log_io));
}

/* Do what every run does, and continue with a log that was too long for one turn. */
static void run_joined_on_wake(void *user)
{
	cloche_run *run = user;

	run_on_wake(run);
	hand_on_some(run);
}

/* What it has printed is in the log already, or will be shown when it goes on. */
static void run_joined_on_stopped(void *user)
{
	hand_on_some(user);
	run_on_stopped(user);
}

static void on_started(void *user, const struct ctl_exec_started *m)
{
	cloche_run *run = user;
	struct client *client = atomic_load(&run->client);

	if (!m->tty || run->tty_fd < 0)
		return;
	terminal_open(&run->terminal, run->tty_fd, client);
	terminal_resized(&run->terminal, client);
}

static int find_command(cloche_run *run, enum sandbox_life *ret_life, struct cloche_err *err)
{
	_cleanup_(sandbox_entry_donep) struct sandbox_entry entry = SANDBOX_ENTRY_INIT;
	cloche_log_state s = {.size = sizeof(s)};
	int r = instance_open_entry(run->in, &entry, err);

	if (r < 0)
		return r;
	if (run->join == 0)
		run->join = execs_latest(entry.dir, true);
	*ret_life = entry.life;
	r = cloche_log_open(run->in, run->join, &run->log, err);
	if (r == 0)
		r = cloche_log_look(run->log, &s, err);
	run->log_at = s.end - MIN(s.end, run->log_tail);
	return r;
}

static bool bool_at(const json_t *meta, const char *key)
{
	return json_is_true(json_object_get(meta, key));
}

static void read_result(const json_t *meta, struct ctl_exec_exited *ret)
{
	uint64_t signal = json_count_at(meta, "signal");

	*ret = (struct ctl_exec_exited){.signaled = signal != 0,
		.status = (uint8_t)(signal ? signal : json_count_at(meta, "exit_code")),
		.timed_out = bool_at(meta, "timed_out"),
		.oom_killed = bool_at(meta, "oom_killed"),
		.pids_refused = bool_at(meta, "pids_refused"),
		.stopped = bool_at(meta, "stopped"),
		.duration_usec = json_count_at(meta, "duration_usec")};
}

/* The sandbox has ended: only the log and the recorded result are left. */
static int replay(cloche_run *run, struct client_result *ret, struct cloche_err *err)
{
	_cleanup_(sandbox_entry_donep) struct sandbox_entry entry = SANDBOX_ENTRY_INIT;
	_cleanup_json_ json_t *meta = NULL;
	_cleanup_fd_ int dir = -1;
	int r = instance_open_entry(run->in, &entry, err);

	dir = r == 0 ? execs_open(entry.dir, run->join, err) : r;
	if (dir < 0)
		return dir;
	r = execs_read_meta(dir, &meta, err);
	if (r == 0)
		r = hand_on_rest(run, err);
	*ret = (struct client_result){.number = run->join};
	read_result(meta, &ret->end);
	return r;
}

static int join(cloche_run *run, struct client_result *ret, struct cloche_err *err)
{
	struct client *client = atomic_load(&run->client);
	const struct client_exec what = {.join = run->join,
		.started = on_started,
		.stopped = run_joined_on_stopped,
		.user = run};
	int r, fd = log_watch(run->log, err);

	if (fd < 0)
		return fd;
	r = loop_io_add(client_loop(client), &run->log_io, fd, EPOLLIN, on_log);
	if (r < 0)
		return err_sys(err, -r, "watch the log");
	client_on_wake(client, run_joined_on_wake, run);
	client_wake(client);
	r = client_exec(client, &what, &run->io, ret, err);
	if (r == 0 && !ret->left)
		r = hand_on_rest(run, err);
	terminal_close(&run->terminal);
	return r;
}

int run_execute_joined(cloche_run *run, struct client_result *ret, struct cloche_err *err)
{
	struct client *client;
	enum sandbox_life life;
	int r = find_command(run, &life, err);

	if (r < 0)
		return r;
	if (life == SANDBOX_ENDED)
		return replay(run, ret, err);
	r = instance_attach(run->in, &client, err);
	if (r < 0)
		return r;
	run_begin(run, client);
	return join(run, ret, err);
}
