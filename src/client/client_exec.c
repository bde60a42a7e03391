/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one process over a connection: sends it, moves its streams while it runs, and tells how it
 * ended. */
#include "base/clock.h"
#include "base/fd.h"
#include "client/client_internal.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>

#define LEAVE_PATIENCE (1 * USEC_PER_SEC) /* to learn the number of a process that we leave */

static void on_leave_due(struct loop_timer *timer)
{
	container_of(timer, struct client, leave_timer)->leave_due = true;
}

/* Return whether to leave now. First the command has to start, so that its number is known, but we
 * do not wait for that for ever. */
static bool may_leave(struct client *c, const struct client_run *run)
{
	if (!atomic_load(&c->leave))
		return false;
	if (!run->started && !c->leave_due &&
		(c->leave_timer.loop ||
			loop_timer_set(c->loop, &c->leave_timer, clock_mono_usec() + LEAVE_PATIENCE,
				on_leave_due) == 0))
		return false;
	loop_timer_clear(&c->leave_timer);
	c->leave_due = false;
	return true;
}

static int wait_for_run(
	struct client *c, struct client_run *run, struct pump *p, struct cloche_err *err)
{
	while (!run->ended && !(run->what->detached && run->started)) {
		int r;

		if (c->ended)
			return client_never_ran(c, err);
		r = client_turn(c, p, err);
		if (r < 0)
			return r;
		if (run->input >= 0 && !run->what->detached) {
			r = pump_take_input(p, TAKE_FD(run->input));
			if (r < 0)
				return err_sys(err, -r, "use the terminal");
		}
		if (run->stopped && !run->ended && run->what->stopped) {
			pump_settle(p, c->chunk);
			run->what->stopped(run->what->user);
		}
		run->stopped = false;
		if (p->left || may_leave(c, run)) {
			run->result.left = true;
			return 0;
		}
	}
	pump_drain(p, c->chunk);
	return client_take_failure(c, err);
}

static int queue_exec(struct client *c, const struct client_exec *what, uint32_t exec,
	const int fds[3], const enum ctl_stdio stdio[3])
{
	struct ctl_exec m = {.exec = exec,
		.flags = what->flags,
		.stdio = {stdio[0], stdio[1], stdio[2]},
		.code_arg = what->code_arg};

	if (!what->spec && what->outputs)
		return ctl_send_join_outputs(
			&c->chan, &(struct ctl_join){exec, what->join}, fds + 1);
	if (!what->spec)
		return ctl_send_join(&c->chan, &(struct ctl_join){exec, what->join});
	m.spec = *what->spec;
	m.note = what->note;
	return ctl_send_exec(&c->chan, &m, fds);
}

static int send_exec(struct client *c, const struct client_run *run, const int fds[3],
	const enum ctl_stdio stdio[3])
{
	int r = -EPIPE;

	pthread_mutex_lock(&c->lock);
	if (!c->over)
		r = queue_exec(c, run->what, run->exec, fds, stdio);
	if (r == 0) {
		c->current = run->exec;
		/* Ignore errors: a supervisor that has gone may have left a reason to read. */
		(void)client_flush_locked(c);
	}
	pthread_mutex_unlock(&c->lock);
	return r;
}

static int failed_to_start(const struct client_run *run, struct cloche_err *err)
{
	const struct exec_spec *spec = run->what->spec;

	if (spec)
		err_set(err, run->err_code, "%s%s%s%s: %s", spec->argv[0], spec->cwd ? " (in " : "",
			spec->cwd ? spec->cwd : "", spec->cwd ? ")" : "", run->err.message);
	else
		err_set(err, run->err_code, "%s", run->err.message);
	if (err)
		err->sys_errno = run->err.sys_errno;
	return -run->err_code;
}

static void fill_result(
	const struct client_run *run, const struct pump *p, struct client_result *ret)
{
	*ret = run->result;
	memcpy(ret->truncated, p->truncated, sizeof(ret->truncated));
	ret->input_errno = p->in_errno;
}

static int run_one(struct client *c, const struct client_exec *what, struct pump *p,
	const int child[3], const enum ctl_stdio stdio[3], struct client_result *ret,
	struct cloche_err *err)
{
	struct client_run run = {.what = what,
		.exec = ++c->last_exec,
		.began = clock_mono_usec(),
		.result.number = what->spec ? 0 : what->join,
		.input = -1};
	int r;

	c->run = &run;
	r = send_exec(c, &run, child, stdio);
	for (int i = 0; i < 3; i++)
		fd_close(child[i]);
	r = r < 0 ? client_broken(c, r, err) : wait_for_run(c, &run, p, err);
	c->run = NULL;
	if (r == -E_CANCELLED && what->cancel_signal)
		(void)client_signal(c, what->cancel_signal, CTL_SCOPE_GROUP);
	pthread_mutex_lock(&c->lock);
	c->current = 0;
	pthread_mutex_unlock(&c->lock);
	fd_close(run.input);
	if (r == 0 && run.err_code != 0)
		r = c->error.code != 0 ? client_never_ran(c, err) : failed_to_start(&run, err);
	/* The room was torn down while it ran. */
	if (r == 0 && c->error.code != 0)
		r = client_never_ran(c, err);
	if (r == 0)
		fill_result(&run, p, ret);
	return r;
}

/* SIGPIPE is blocked in this thread (in a job: while the job runs) while it writes to pipes.
 * Discard the one that this has caused, then restore the mask. */
static void unblock_sigpipe(const sigset_t *old, bool was_pending)
{
	if (!was_pending)
		pump_forget_sigpipe();
	pthread_sigmask(SIG_SETMASK, old, NULL);
}

/* Set up the pump, and the descriptors to send. */
static int init_pump(struct pump *p, const struct client_exec *what, struct client_io *io,
	int child[3], enum ctl_stdio stdio[3], struct cloche_err *err)
{
	if (what->spec && !what->detached)
		return pump_init(p, io, what->spec->tty, what->kept, child, stdio, err);
	return pump_init_joined(p, io, what->outputs ? child : NULL, err);
}

int client_exec(struct client *c, const struct client_exec *what, struct client_io *io,
	struct client_result *ret, struct cloche_err *err)
{
	sigset_t pipe_set, old, pending;
	enum ctl_stdio stdio[3] = {CTL_STDIO_NULL, CTL_STDIO_NULL, CTL_STDIO_NULL};
	struct pump p;
	int child[3] = {-1, -1, -1}, r;

	r = what->spec ? exec_spec_check(what->spec, err) : 0;
	if (r < 0)
		return r;
	r = init_pump(&p, what, io, child, stdio, err);
	if (r < 0) {
		for (int i = 0; i < 3; i++)
			fd_close(child[i]);
		pump_done(&p);
		return r;
	}
	sigemptyset(&pipe_set);
	sigaddset(&pipe_set, SIGPIPE);
	sigpending(&pending);
	p.sigpipe_pending = sigismember(&pending, SIGPIPE) == 1;
	pthread_sigmask(SIG_BLOCK, &pipe_set, &old);
	r = run_one(c, what, &p, child, stdio, ret, err);
	unblock_sigpipe(&old, p.sigpipe_pending);
	pump_done(&p);
	return r;
}
