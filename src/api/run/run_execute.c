/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the executing thread is always in one of the client's functions that wait.
 * Everything else reaches it as a wake (run_on_wake) or through the client's loop, which watches
 * the broker's configuration, a timer and a log for us.
 *
 * In a sandbox of our own, a stop ends the sandbox. In an existing sandbox, it ends only the
 * command: TERM to its process group and, after a time, KILL. */
#include "api/instance/instance.h"
#include "api/record/state.h"
#include "api/run/run.h"
#include "api/start/ports.h"
#include "api/start/room.h"
#include "base/clock.h"
#include "fs/fs.h"
#include "job/job.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void run_warn(const cloche_run *run, const char *text)
{
	if (run->on_warning)
		job_tell_text(run->on_warning, text, run->on_warning_user);
}

static void run_execute_on_kill_due(struct loop_timer *timer)
{
	cloche_run *run = container_of(timer, struct cloche_run, kill_timer);

	(void)client_signal(atomic_load(&run->client), SIGKILL, CTL_SCOPE_GROUP);
}

/* End the command, but not its sandbox. */
static void stop_there(cloche_run *run, struct client *client, unsigned stops)
{
	if (stops == 1 && !run->kill_timer.loop &&
		loop_timer_set(client_loop(client), &run->kill_timer,
			clock_mono_usec() + CTL_DEFAULT_GRACE_USEC, run_execute_on_kill_due) < 0)
		stops = 2;
	(void)client_signal(client, stops > 1 ? SIGKILL : SIGTERM, CTL_SCOPE_GROUP);
}

/* The new size, if there is one, and a reason to draw the screen again, which others have used. */
void run_on_stopped(void *user)
{
	cloche_run *run = user;
	struct client *client = atomic_load(&run->client);

	if (!run->terminal.open)
		return;
	terminal_suspend(&run->terminal, client, &run->stops);
	terminal_resized(&run->terminal, client);
	(void)client_signal(client, SIGCONT, CTL_SCOPE_GROUP);
	(void)client_signal(client, SIGWINCH, CTL_SCOPE_GROUP);
}

void run_send_signals(cloche_run *run)
{
	unsigned long long signals = atomic_exchange(&run->signals, 0);

	for (int signo = 1; signo < 64; signo++)
		if (signals & 1ULL << signo)
			(void)client_signal(atomic_load(&run->client), signo, CTL_SCOPE_GROUP);
}

void run_on_wake(void *user)
{
	cloche_run *run = user;
	struct client *client = atomic_load(&run->client);
	unsigned stops = atomic_load(&run->stops);

	/* Before the command has started, requests for it wait. A second stop does not wait. */
	if (run->held && stops < 2)
		return;
	run_send_signals(run);
	if (stops > 0 && run->where != RUN_OWN)
		stop_there(run, client, stops);
	else if (stops > 0 && (stops == 1 || client_give_up(client) < 0))
		(void)client_stop(client, stops > 1 ? 0 : CTL_DEFAULT_GRACE_USEC);
	terminal_resized(&run->terminal, client);
}

static long filter_input(void *user, char *p, size_t n)
{
	cloche_run *run = user;
	const char *keys = run->detach_keys;
	char *at, *from = p;

	if (run->detach_begun) {
		memmove(p + 1, p, n++);
		p[0] = keys[0];
		run->detach_begun = false;
	}
	while ((at = memchr(from, keys[0], n - (size_t)(from - p)))) {
		if (at == p + n - 1) {
			run->detach_begun = true;
			return (long)n - 1;
		}
		if (at[1] == keys[1])
			return -1;
		from = at + 1;
	}
	return (long)n;
}

void run_begin(cloche_run *run, struct client *client)
{
	client_on_warning(client, run->on_warning, run->on_warning_user);
	client_on_wake(client, run_on_wake, run);
	atomic_store(&run->client, client);
	run_watch_input(run);
	run_tell(run);
	run->io.write = run_take_output;
	run->io.user = run;
	if (run->tty_fd >= 0 && run->detach_keys[0])
		run->io.filter = filter_input;
	/* Handle requests that came before there was a client. */
	if (atomic_load(&run->stops) > 0 || atomic_load(&run->signals) > 0)
		client_wake(client);
	if (atomic_load(&run->leave))
		client_leave(client);
}

/* Add what overrides the sandbox's own environment: variables for this command alone, and TERM. */
static int add_env(const cloche_run *run, char ***env)
{
	const char *term = secure_getenv("TERM");
	int r = 0;

	for (size_t i = 0; r == 0 && run->env && run->env[i]; i++) {
		_cleanup_(freep) char *name = strdup(run->env[i]);

		if (!name)
			return -ENOMEM;
		name[strcspn(name, "=")] = '\0';
		r = strv_env_set(env, name, strv_env_get(run->env, name));
	}
	if (r == 0 && run->tty_fd >= 0 && !strv_env_get(*env, "TERM"))
		r = strv_env_set(env, "TERM", term ? term : "xterm");
	return r;
}

/* What the caller's terminal and language are: into env or, if that is NULL, into ret, for the
 * supervisor, which knows the environment. */
static int add_terminal(const cloche_run *run, char ***env, char ***ret)
{
	_cleanup_(strv_freep) char **defaults = NULL;
	int r = run->tty_fd >= 0 ? terminal_variables(&defaults) : 0;

	if (r < 0 || !env) {
		*ret = TAKE_PTR(defaults);
		return r;
	}
	return exec_env_default(env, defaults);
}

static int take_user(const cloche_sandbox *sb, struct exec_spec *ret, struct cloche_err *err)
{
	struct sandbox_user user;
	int r = sandbox_names_user(sb) ? sandbox_find_user(sb, &user, err) : 1;

	if (r)
		return MIN(r, 0);
	ret->has_user = true;
	ret->uid = user.uid;
	ret->gid = user.gid;
	return 0;
}

int run_make_spec(cloche_run *run, struct exec_spec *ret, struct cloche_err *err)
{
	_cleanup_(strv_freep) char **env = NULL, **unset = NULL, **defaults = NULL;
	const char *cwd = run->cwd;
	/* For a kept sandbox, the supervisor knows the environment. */
	bool own = run->where == RUN_OWN && !run->detached;
	int r = own ? room_make_env(run->sb, &env) : 0;

	if (r == 0 && run->where == RUN_IN) {
		r = state_add_env(run->in, &env, &unset, err);
		if (r < 0)
			return r;
	}
	if (r == 0)
		r = add_env(run, &env);
	if (r == 0)
		r = add_terminal(run, own ? &env : NULL, &defaults);
	if (r < 0)
		return err_nomem(err);
	if (own && !cwd)
		cwd = sandbox_workdir(run->sb);
	r = exec_spec_set(ret, run->argv, env, cwd, err);
	if (r < 0)
		return r;
	ret->unset = TAKE_PTR(unset);
	ret->defaults = TAKE_PTR(defaults);
	if (run->has_timeout)
		ret->timeout_usec = clock_usec_of_msec(run->timeout_ms);
	else if (run->sb)
		ret->timeout_usec = clock_usec_of_msec(run->sb->timeout_ms);
	ret->has_user = run->has_user;
	ret->uid = run->uid;
	ret->gid = run->gid;
	if (run->sb && !run->has_user) {
		r = take_user(run->sb, ret, err);
		if (r < 0)
			return r;
	}
	ret->umask = (uint16_t)fs_umask();
	if (run->tty_fd >= 0) {
		ret->tty = true;
		terminal_size(run->tty_fd, &ret->rows, &ret->cols);
	}
	return 0;
}

JOB_TELL1(run_call_start, cloche_start_fn, const char *)

static int start_own(cloche_run *run, struct cloche_err *err)
{
	struct client *client = NULL;
	const struct ctl_start how = {.one_shot = true,
		.detached = run->detached,
		.kept = run->detached,
		.config = run->detached || sandbox_is_recorded(run->sb)
				  ? sandbox_describe(run->sb)
				  : sandbox_describe_command(run->sb,
					    (const char *const *)run->argv, code_driver_arg(run))};
	int r;

	if (!how.config)
		return err_nomem(err);
	r = room_start(run->sb, &how, &run->network, &run->heard, run->on_warning,
		run->on_warning_user, &client, err);
	if (r < 0)
		return r;
	run_begin(run, client);
	run_watch_network(run);
	sandbox_tell_doubtful(run->sb, run->on_warning, run->on_warning_user);
	r = ports_publish(run->sb, client, err);
	if (r == 0 && run->on_start) {
		r = client_wait_started(client, err);
		if (r == 0)
			run_call_start(run->on_start, client_id(client), run->on_start_user);
	}
	return r;
}

/* If only the broker can judge a part of the configuration, wait for its answer before the command
 * begins, so that a run whose configuration is refused has done nothing. For a detached run always
 * wait, because a later refusal could not be reported. The room is made meanwhile. */
static int wait_for_network(cloche_run *run, struct cloche_err *err)
{
	struct client *client = atomic_load(&run->client);
	int r;

	if (!run->network.open || !(run->detached || network_may_be_refused(run->sb)))
		return 0;
	run->held = true;
	r = client_wait_for(client, &run->network.accepted, err);
	run->held = false;
	if (r == 0 && (atomic_load(&run->signals) > 0 || atomic_load(&run->stops) > 0))
		client_wake(client);
	return r;
}

/* Execute the command (what has its spec, flags and kept). If it has a terminal, ours is connected
 * to it as long as it runs. */
static int execute_command(cloche_run *run, struct client_exec *what, struct client_result *ret,
	struct cloche_err *err)
{
	struct client *client = atomic_load(&run->client);
	int r;

	what->detached = run->detached;
	what->note = run->note;
	what->cancel_signal = SIGKILL;
	what->stopped = run_on_stopped;
	what->user = run;
	what->code_arg = code_driver_arg(run);
	/* Output that contains results of code belongs neither in a log nor on record. */
	if (run->code && code_has_value(run->code))
		what->flags |= CTL_EXEC_RAW;
	if (run->detached && run->keep_input)
		what->flags |= CTL_EXEC_KEEP_INPUT;
	if (run->tty_fd >= 0 && !what->detached)
		terminal_open(&run->terminal, run->tty_fd, client);
	r = client_exec(client, what, &run->io, ret, err);
	terminal_close(&run->terminal);
	return r;
}

static int execute_own(cloche_run *run, struct client_result *ret, struct cloche_err *err)
{
	_cleanup_(exec_spec_donep) struct exec_spec spec;
	struct client_exec what = {.spec = &spec};
	int r;

	exec_spec_init(&spec);
	if (!run->on_output && !run->detached && run->sb->output_limit > RUN_KEEP_MAX) {
		err_set(err, E_USAGE, "the output limit is more than can be kept for a result");
		err_hint(err, "ask for at most 256m, or take the output as it comes (without "
			      "--json)");
		return -E_USAGE;
	}
	what.kept = run->tty_fd >= 0 && sandbox_is_recorded(run->sb);
	/* Prepare the command while the supervisor starts. */
	r = start_own(run, err);
	if (r < 0)
		return r;
	run->io.output_limit = run->sb->output_limit;
	if (run->detached)
		what.flags = CTL_EXEC_INHERIT;
	r = run_make_spec(run, &spec, err);
	if (r == 0)
		r = wait_for_network(run, err);
	if (r == 0)
		r = execute_command(run, &what, ret, err);
	/* The caller does not get the id of a failed sandbox, so remove it here. */
	if (r < 0 && run->detached && atomic_load(&run->client))
		instance_discard(atomic_load(&run->client));
	return r;
}

static int execute_in(cloche_run *run, struct client_result *ret, struct cloche_err *err)
{
	_cleanup_(exec_spec_donep) struct exec_spec spec;
	struct client_exec what = {.spec = &spec};
	struct client *client;
	int r;

	exec_spec_init(&spec);
	r = run_make_spec(run, &spec, err);
	if (r == 0)
		r = instance_attach(run->in, &client, err);
	if (r < 0)
		return r;
	run_begin(run, client);
	/* This matters only for terminals. */
	what.kept = run->tty_fd >= 0 && instance_is_kept(run->in);
	what.flags = CTL_EXEC_INHERIT;
	return execute_command(run, &what, ret, err);
}

/* A command that cannot be started is a result, not an error. */
static int settle(cloche_run *run, int r, struct cloche_err *err)
{
	if (r != -E_COMMAND_NOT_FOUND && r != -E_CANNOT_EXEC)
		return r;
	run->start_exit = cloche_error_exit_status(r);
	if (run->code && r == -E_COMMAND_NOT_FOUND)
		snprintf(run->start_failure, sizeof(run->start_failure),
			"there is no %s in the sandbox: install it (apt-get install %s), or mount "
			"it and name its directory in the PATH",
			run->code->runtime->argv[0], run->code->runtime->package);
	else
		snprintf(run->start_failure, sizeof(run->start_failure), "%s", err->message);
	err_clear(err);
	return 0;
}

/* It is advice, which the result does not depend on. */
static void run_tell_heard(cloche_run *run)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(256 * 1024);

	if (heard_tell(&run->heard, &text) == 0 && buf_len(&text) && buf_cstr(&text))
		run_warn(run, buf_cstr(&text));
}

static int execute_once(cloche_run *run, struct cloche_err *err)
{
	struct cloche_err own = CLOCHE_ERR_INIT;
	struct client_result result = {0};
	uint64_t began = clock_mono_usec();
	int r;

	if (run->code && run->detached)
		return err_set(
			err, E_USAGE, "code cannot run detached: somebody has to wait for it");
	if (run->where == RUN_OWN)
		r = execute_own(run, &result, err);
	else if (run->code && run->code->call)
		r = run_execute_context(run, &result, err);
	else if (run->where == RUN_IN)
		r = execute_in(run, &result, err);
	else
		r = run_execute_joined(run, &result, err);
	for (int i = 0; i < 2; i++)
		result.truncated[i] |= run->result.truncated[i];
	run->result = result;
	r = settle(run, r, err);
	if (r == 0)
		r = run_end_output(run, err);
	if (r == 0 && run->code && code_record_call(run, &own) < 0)
		run_warn(run, own.message);
	if (r < 0 || run->where != RUN_OWN || run->detached)
		return r;
	r = client_finish(atomic_load(&run->client), &run->ended, err);
	run->lasted_usec = clock_mono_usec() - began;
	network_finish(&run->network);
	run_end_network(run);
	run_tell_heard(run);
	return r;
}

int cloche_run_execute(cloche_run *run, cloche_err *err)
{
	struct cloche_err own = CLOCHE_ERR_INIT;
	int r;

	err = err ? err : &own;
	if (atomic_exchange(&run->executed, true))
		return err_set(err, E_USAGE, "a run can be executed only once");
	r = execute_once(run, err);
	/* A sandbox of its own would else go on until the run is freed. */
	if (r == -E_CANCELLED && run->where == RUN_OWN && atomic_load(&run->client))
		(void)client_stop(atomic_load(&run->client), 0);
	run_drop_input(run);
	run_drop_network(run);
	run_tell(run);
	atomic_store(&run->over, true);
	return r;
}
