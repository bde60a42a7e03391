/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the interpreter of a context is a command of the sandbox whose input stays
 * open. A call waits for its turn (context.c), starts the interpreter if there is none, joins it
 * with pipes for its output, and writes one line to its input. What the interpreter prints between
 * "begin" and "end" with the call's nonce belongs to the call (code_value.h), which then leaves. So
 * no process of ours stays outside of the sandbox, and a call starts none inside.
 *
 * A call that has to end (its time is over, or a stop was requested) is interrupted. If that does
 * not help soon, the interpreter is killed from outside. */
#include "api/instance/instance.h"
#include "api/run/code.h"
#include "api/run/run.h"
#include "base/clock.h"

#include <signal.h>

#define LOOK_AGAIN (5 * USEC_PER_MSEC)     /* whether the output of a dead caller is free */
#define GRACE (2 * USEC_PER_SEC)           /* from the interrupt to KILL */
#define ERRORS_PATIENCE (1 * USEC_PER_SEC) /* from the end of one stream to that of the other */
#define PATIENCE (5 * USEC_PER_SEC)
#define EVER (100ULL * 365 * 86400 * USEC_PER_SEC)

static struct client *client_of(cloche_run *run)
{
	return atomic_load(&run->client);
}

static void set_timer(cloche_run *run, uint64_t in_usec, void (*cb)(struct loop_timer *timer))
{
	struct code_call *call = run->code->call;

	loop_timer_clear(&call->timer);
	if (loop_timer_set(
		    client_loop(client_of(run)), &call->timer, clock_mono_usec() + in_usec, cb) < 0)
		(void)client_signal(client_of(run), SIGKILL, CTL_SCOPE_TREE);
}

static cloche_run *run_of(struct loop_timer *timer)
{
	return container_of(timer, struct code_call, timer)->run;
}

/* --- ends --- */

static void run_context_on_kill_due(struct loop_timer *timer)
{
	(void)client_signal(client_of(run_of(timer)), SIGKILL, CTL_SCOPE_TREE);
}

static void give_up(cloche_run *run)
{
	run->code->call->interrupted = true;
	(void)client_signal(client_of(run), SIGINT, CTL_SCOPE_GROUP);
	set_timer(run, GRACE, run_context_on_kill_due);
}

static void on_timeout(struct loop_timer *timer)
{
	cloche_run *run = run_of(timer);

	run->code->call->timed_out = true;
	give_up(run);
}

static void on_errors_late(struct loop_timer *timer)
{
	client_leave(client_of(run_of(timer)));
}

static void run_context_on_wake(void *user)
{
	cloche_run *run = user;
	struct code_call *call = run->code->call;
	unsigned stops = atomic_load(&run->stops);

	if (!call->has_turn) {
		call->wake = true;
		return;
	}
	run_send_signals(run);
	if (stops > 1)
		(void)client_signal(client_of(run), SIGKILL, CTL_SCOPE_TREE);
	else if (stops == 1 && !call->interrupted)
		give_up(run);
}

/* --- output --- */

static int keep_errors(void *user, const char *p, size_t n)
{
	return run_keep_output(user, 2, p, n);
}

/* Leave if both streams have ended, or soon after standard output has. */
static void look_for_end(cloche_run *run)
{
	struct code_call *call = run->code->call;

	if (!run->code->value.ended)
		return;
	if (call->errors.ended)
		client_leave(client_of(run));
	else
		set_timer(run, ERRORS_PATIENCE, on_errors_late);
}

static int take_output(void *user, int stream, const char *p, size_t n)
{
	cloche_run *run = user;
	struct code *code = run->code;
	bool had_begun = code->value.began;
	int r = stream == 1 ? run_take_output(run, 1, p, n)
			    : run_lose_output(run,
				      code_value_feed(&code->call->errors, p, n, keep_errors, run));

	/* The first interrupt hit the code of a caller that had died, so interrupt this code,
	 * too. */
	if (!had_begun && code->value.began && code->call->interrupted)
		(void)client_signal(client_of(run), SIGINT, CTL_SCOPE_GROUP);
	look_for_end(run);
	return r;
}

/* --- the turn --- */

static void on_look_again(struct loop_timer *timer)
{
	run_of(timer)->code->call->wake = true;
}

static int wait_a_moment(cloche_run *run, struct cloche_err *err)
{
	struct code_call *call = run->code->call;

	call->wake = false;
	set_timer(run, LOOK_AGAIN, on_look_again);
	return client_wait_for(client_of(run), &call->wake, err);
}

static int wait_turn(cloche_run *run, struct cloche_err *err)
{
	struct code_call *call = run->code->call;
	int r = context_queue(&call->file, err);

	while (r == 0) {
		if (atomic_load(&run->stops) > 0 || atomic_load(&run->signals) > 0)
			return err_set(err, E_CANCELLED,
				"stopped before its turn: context %s is busy", call->name);
		r = context_wait_first(&call->file, client_wake_fd(client_of(run)), err);
		if (r != 0)
			break;
		client_take_wake(client_of(run));
	}
	call->has_turn = r > 0;
	return r < 0 ? r : 0;
}

/* --- the interpreter --- */

static int begin_interpreter(cloche_run *run, struct cloche_err *err)
{
	_cleanup_(exec_spec_donep) struct exec_spec spec;
	_cleanup_(freep) char *note = code_note(run->code, NULL);
	const struct client_exec what = {.spec = &spec,
		.note = note,
		.code_arg = code_driver_arg(run),
		.detached = true,
		.flags = CTL_EXEC_INHERIT | CTL_EXEC_KEEP_INPUT};
	struct code_call *call = run->code->call;
	struct client_result started = {0};
	struct client_io none = CLIENT_IO_INIT;
	int r;

	exec_spec_init(&spec);
	r = note ? run_make_spec(run, &spec, err) : err_nomem(err);
	if (r < 0)
		return r;
	/* Timeouts are for calls, not for the interpreter. */
	spec.timeout_usec = EVER;
	r = client_exec(client_of(run), &what, &none, &started, err);
	if (r < 0)
		return r;
	call->use.began = true;
	/* If it does not start, its standard error says why. */
	call->errors.quiet = false;
	return context_set(
		&call->file, call->file.number, started.number, run->code->runtime->name, err);
}

/* A caller that died in its turn may hold the output a moment longer than its place. */
static int join_when_free(cloche_run *run, struct client_result *ret, struct cloche_err *err)
{
	const struct client_exec what = {
		.join = run->code->call->file.number, .outputs = true, .cancel_signal = SIGINT};
	uint64_t until = clock_mono_usec() + PATIENCE;

	for (;;) {
		int r;

		if (run->timeout_ms > 0)
			set_timer(run, clock_usec_of_msec(run->timeout_ms), on_timeout);
		r = client_exec(client_of(run), &what, &run->io, ret, err);
		if (r != -E_BUSY || clock_mono_usec() >= until)
			return r;
		err_clear(err);
		r = wait_a_moment(run, err);
		if (r < 0)
			return r;
	}
}

/* Return 1 if the interpreter had ended before it took the code. */
static int join_interpreter(cloche_run *run, struct client_result *ret, struct cloche_err *err)
{
	struct code_call *call = run->code->call;
	uint64_t from = clock_mono_usec();
	int r;

	run->io.write = take_output;
	run->io.user = run;
	call->number = call->file.number;
	r = context_set_executes(&call->file, true, err);
	if (r == 0)
		r = join_when_free(run, ret, err);
	loop_timer_clear(&call->timer);
	if (r == -E_NOT_FOUND && !call->use.began)
		return 1;
	if (r < 0)
		return r;
	ret->end.duration_usec = clock_mono_usec() - from;
	ret->end.timed_out = call->timed_out;
	if (run->code->value.ended) {
		ret->left = false;
		ret->end.status = (uint8_t)run->code->value.status;
		return context_set_executes(&call->file, false, err);
	}
	call->use.ended = !ret->left;
	return call->use.ended && !call->use.began && !run->code->value.began && !call->interrupted;
}

static int execute(cloche_run *run, struct client_result *ret, struct cloche_err *err)
{
	struct code_call *call = run->code->call;
	bool runs = false;
	int r = 0;

	if (call->file.number) {
		r = context_look(run->in, &call->file, &runs, &call->use, err);
		call->use.lost = !runs;
	}
	if (r == 0 && runs) {
		r = join_interpreter(run, ret, err);
		if (r <= 0)
			return r;
		call->use.lost = true;
		call->use.ended = false;
		*ret = (struct client_result){0};
		r = context_look(run->in, &call->file, &runs, &call->use, err);
	}
	if (r == 0)
		r = begin_interpreter(run, err);
	return r == 0 ? join_interpreter(run, ret, err) : r;
}

int run_execute_context(cloche_run *run, struct client_result *ret, struct cloche_err *err)
{
	struct code_call *call = run->code->call;
	struct client *client;
	int r;

	if (run->env || run->cwd)
		return err_set(err, E_USAGE,
			"a context keeps the environment and the directory that it began with");
	if (!instance_is_kept(run->in)) {
		err_set(err, E_UNSUPPORTED, "sandbox %s has no contexts",
			cloche_instance_id(run->in));
		err_hint(err, "sandboxes of \"cloche create\" have contexts");
		return -E_UNSUPPORTED;
	}
	r = context_open(run->in, call->name, true, &call->file, err);
	if (r == 0)
		r = instance_attach(run->in, &client, err);
	if (r < 0)
		return r;
	run_begin(run, client);
	client_on_wake(client, run_context_on_wake, run);
	r = wait_turn(run, err);
	if (r == 0)
		r = execute(run, ret, err);
	context_done(&call->file);
	return r;
}

/* --- interrupting and restarting --- */

struct visit {
	struct client *client;
	int signo;
	enum ctl_scope scope;
	bool leave;
};

static void on_visited(void *user, const struct ctl_exec_started *m)
{
	struct visit *v = user;

	(void)client_signal(v->client, v->signo, v->scope);
	if (v->leave)
		client_leave(v->client);
}

/* Send the signal. Unless v->leave, wait for the end of the interpreter. */
static int visit(
	const cloche_instance *instance, uint32_t number, struct visit *v, struct cloche_err *err)
{
	const struct client_exec what = {.join = number, .started = on_visited, .user = v};
	struct client_io none = CLIENT_IO_INIT;
	struct client_result result;
	int r = instance_attach(instance, &v->client, err);

	if (r < 0)
		return r;
	r = client_exec(v->client, &what, &none, &result, err);
	client_free(v->client);
	return r;
}

static int find_interpreter(const cloche_instance *instance, const char *name,
	struct context_file *file, bool *ret_runs, struct cloche_err *err)
{
	struct cloche_context_use use;
	int r = context_open(instance, name, false, file, err);

	return r == 0 && file->number ? context_look(instance, file, ret_runs, &use, err) : r;
}

int cloche_instance_interrupt_context(
	const cloche_instance *instance, const char *name, cloche_err *err)
{
	struct visit v = {.signo = SIGINT, .scope = CTL_SCOPE_GROUP, .leave = true};
	struct context_file file = CONTEXT_FILE_INIT;
	bool runs = false;
	int r = find_interpreter(instance, name, &file, &runs, err);

	if (r == 0 && !runs)
		r = err_set(err, E_NOT_FOUND, "context %s has ended", name);
	/* Send nothing if no code is executed: init may be late, and the signal would hit the next
	 * call. */
	if (r == 0 && file.executes)
		r = visit(instance, file.number, &v, err);
	context_done(&file);
	return r;
}

int cloche_instance_restart_context(
	const cloche_instance *instance, const char *name, cloche_err *err)
{
	struct visit v = {.signo = SIGKILL, .scope = CTL_SCOPE_TREE};
	struct context_file file = CONTEXT_FILE_INIT;
	bool runs = false;
	int r = find_interpreter(instance, name, &file, &runs, err);

	if (r == 0 && runs)
		r = visit(instance, file.number, &v, err);
	if (r == 0)
		r = context_set(&file, file.number, 0, NULL, err);
	context_done(&file);
	return r;
}

const cloche_context_use *cloche_run_context(const cloche_run *run)
{
	return run->code && run->code->call ? &run->code->call->use : NULL;
}
