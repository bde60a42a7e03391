/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a run is one client of one one-shot sandbox. Other threads and signal
 * handlers only leave a note in an atomic variable and wake the executing thread, which acts on it;
 * the client lives as long as the run, so that a late note finds it. */
#include "api/run.h"
#include "api/client.h"
#include "api/network.h"
#include "api/terminal.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fs.h"
#include "jail/trust.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { EXIT_TIMEOUT = 124, KEEP_MAX = 256 << 20, ROOT_IN_ROOM = 0 };

struct cloche_run {
	cloche_sandbox *sb;
	char **argv;
	struct client_io io;
	struct buf stdin_data;
	int tty_fd; /* -1: none */
	struct terminal terminal;
	cloche_output_fn on_output;
	void *on_output_user;
	cloche_warning_fn on_warning;
	void *on_warning_user;

	_Atomic(struct client *) client;
	atomic_uint stops;     /* how often stop was asked for */
	atomic_ullong signals; /* bit n: signal n waits to be sent */
	struct network network;

	bool executed;
	struct client_result result;
	struct ctl_ended ended;
	struct buf kept[2]; /* output where nobody takes it */
	char start_failure[1024];
	int start_exit; /* 126 or 127 where the command did not start, else 0 */
};

int run_new_take(cloche_sandbox *sb, char *const *argv, cloche_run **ret, struct cloche_err *err)
{
	_cleanup_(cloche_run_freep) cloche_run *run = calloc(1, sizeof(*run));

	if (!run) {
		cloche_sandbox_free(sb);
		return err_nomem(err);
	}
	run->sb = sb;
	run->io = CLIENT_IO_INIT;
	run->tty_fd = -1;
	run->stdin_data = BUF_INIT(SIZE_MAX / 4);
	run->kept[0] = run->kept[1] = BUF_INIT(KEEP_MAX);
	if (!sb || strv_copy(argv, &run->argv) < 0)
		return err_nomem(err);
	if (!run->argv)
		return err_set(err, E_USAGE, "no command");
	*ret = TAKE_PTR(run);
	return 0;
}

int cloche_run_new(
	const cloche_sandbox *sb, const char *const *argv, cloche_run **ret, cloche_err *err)
{
	_cleanup_(strv_freep) char **copy = NULL;

	for (size_t i = 0; argv[i]; i++)
		if (strv_add(&copy, str_from(argv[i])) < 0)
			return err_nomem(err);
	return run_new_take(sandbox_copy(sb), copy, ret, err);
}

void cloche_run_free(cloche_run *run)
{
	if (!run)
		return;
	client_free(atomic_load(&run->client));
	network_done(&run->network);
	cloche_sandbox_free(run->sb);
	strv_free(run->argv);
	buf_done_wiped(&run->stdin_data);
	buf_done(&run->kept[0]);
	buf_done(&run->kept[1]);
	free(run);
}

void cloche_run_set_stdin_fd(cloche_run *run, int fd)
{
	run->io.input = CLIENT_INPUT_FD;
	run->io.fd = fd;
}

int cloche_run_set_stdin_data(cloche_run *run, const void *data, size_t length, cloche_err *err)
{
	buf_clear(&run->stdin_data);
	if (buf_add(&run->stdin_data, data, length) < 0)
		return err_nomem(err);
	run->io.input = CLIENT_INPUT_BYTES;
	run->io.bytes = buf_str(&run->stdin_data);
	return 0;
}

void cloche_run_set_tty(cloche_run *run, int fd)
{
	run->tty_fd = fd;
}

void cloche_run_on_output(cloche_run *run, cloche_output_fn fn, void *user)
{
	run->on_output = fn;
	run->on_output_user = user;
}

void cloche_run_on_warning(cloche_run *run, cloche_warning_fn fn, void *user)
{
	run->on_warning = fn;
	run->on_warning_user = user;
}

static int take_output(void *user, int stream, const char *p, size_t n)
{
	cloche_run *run = user;
	struct buf *kept = &run->kept[stream - 1];
	size_t fits = MIN(n, buf_room(kept));

	if (run->on_output) {
		run->on_output(stream == 2, p, n, run->on_output_user);
		return 0;
	}
	if (fits < n)
		run->result.truncated[stream - 1] = true;
	return buf_add(kept, p, fits) < 0 ? -ENOMEM : 0;
}

static void take_warning(void *user, const char *text)
{
	cloche_run *run = user;

	if (run->on_warning)
		run->on_warning(text, run->on_warning_user);
}

/* Acts, in the executing thread, on what others asked for. */
static void on_wake(void *user)
{
	cloche_run *run = user;
	struct client *client = atomic_load(&run->client);
	unsigned stops = atomic_load(&run->stops);
	unsigned long long signals = atomic_exchange(&run->signals, 0);

	for (int signo = 1; signo < 64; signo++)
		if (signals & 1ULL << signo)
			(void)client_signal(client, signo, CTL_SCOPE_GROUP);
	if (stops > 0)
		(void)client_stop(client, stops > 1 ? 0 : CTL_DEFAULT_GRACE_USEC);
	terminal_resized(&run->terminal, client);
}

static bool wake(cloche_run *run)
{
	struct client *client = atomic_load(&run->client);

	if (client)
		client_wake(client);
	return client != NULL;
}

bool cloche_run_stop(cloche_run *run)
{
	atomic_fetch_add(&run->stops, 1);
	return wake(run);
}

bool cloche_run_signal(cloche_run *run, int signal_number)
{
	if (signal_number < 1 || signal_number > 63)
		return false;
	atomic_fetch_or(&run->signals, 1ULL << signal_number);
	return wake(run);
}

/* The whole environment of the command: the configured one, what makes runtimes trust the gateway,
 * and surrogates, each over the one before. */
static int make_env(const cloche_sandbox *sb, char ***ret)
{
	_cleanup_(strv_freep) char **env = NULL;
	const struct trust_env *trust;
	size_t n, secrets = sb->secrets ? cloche_secrets_count(sb->secrets) : 0;
	int r = strv_copy(sb->env, &env);

	trust = trust_env_table(&n);
	for (size_t i = 0; r == 0 && sandbox_wants_gateway(sb) && i < n; i++)
		r = strv_env_set(&env, trust[i].name, trust[i].value);
	for (size_t i = 0; r == 0 && i < secrets; i++)
		r = strv_env_set(&env, cloche_secrets_name(sb->secrets, i),
			cloche_secrets_surrogate(sb->secrets, i));
	if (r < 0)
		return r;
	*ret = TAKE_PTR(env);
	return 0;
}

static const char *workdir(const cloche_sandbox *sb)
{
	if (sb->workdir)
		return sb->workdir;
	return sb->workspace ? "/workspace" : "/";
}

static int make_exec(cloche_run *run, struct exec_spec *ret, struct cloche_err *err)
{
	_cleanup_(strv_freep) char **env = NULL;
	int r;

	if (make_env(run->sb, &env) < 0)
		return err_nomem(err);
	if (run->tty_fd >= 0 && !strv_env_get(env, "TERM")) {
		const char *term = getenv("TERM");

		if (strv_env_set(&env, "TERM", term ? term : "xterm") < 0)
			return err_nomem(err);
	}
	r = exec_spec_set(ret, run->argv, env, workdir(run->sb), err);
	if (r < 0)
		return r;
	ret->timeout_usec = run->sb->timeout_ms * USEC_PER_MSEC;
	ret->uid = ret->gid = ROOT_IN_ROOM;
	if (run->tty_fd >= 0) {
		ret->tty = true;
		terminal_size(run->tty_fd, &ret->rows, &ret->cols);
	}
	return 0;
}

static int make_room(const cloche_sandbox *sb, struct room_spec *ret, struct cloche_err *err)
{
	int r = 0;

	ret->root = sb->root;
	ret->net = sandbox_wants_gateway(sb) ? ROOM_NET_GATEWAY : ROOM_NET_NONE;
	ret->limits = (struct room_limits){.memory_bytes = sb->memory,
		.cpus_milli = sb->millicpus,
		.pids = sb->pids,
		.best_effort = sb->best_effort};
	ret->root_dir = sb->root_dir ? strdup(sb->root_dir) : NULL;
	ret->host_home = fs_home();
	if (sb->root_dir && !ret->root_dir)
		return err_nomem(err);
	for (size_t i = 0; r == 0 && i < sb->mounts_n; i++) {
		r = room_spec_add_mount(
			ret, sb->mounts[i].source, sb->mounts[i].target, sb->mounts[i].ro, err);
		if (r == 0)
			ret->mounts[ret->mounts_n - 1].no_link = sb->mounts[i].no_link;
	}
	return r;
}

static int check_provider(const cloche_sandbox *sb, struct cloche_err *err)
{
	if (strcmp(sb->provider, "auto") == 0 || strcmp(sb->provider, "native") == 0)
		return 0;
	err_set(err, E_UNSUPPORTED, "provider %s is not part of this version", sb->provider);
	err_hint(err, "use --provider native (the default); \"cloche doctor\" says whether it "
		      "works here");
	return -E_UNSUPPORTED;
}

static int start(cloche_run *run, struct cloche_err *err)
{
	_cleanup_(room_spec_donep) struct room_spec room;
	struct client *client = NULL;
	struct client_start start = {.room = &room,
		.one_shot = true,
		.grace_usec = CTL_DEFAULT_GRACE_USEC,
		.name = run->sb->name};
	int config_fd = -1, r;

	room_spec_init(&room);
	r = check_provider(run->sb, err);
	if (r == 0)
		r = make_room(run->sb, &room, err);
	if (r == 0)
		r = client_new(&start, &client, &config_fd, err);
	if (r < 0)
		return r;
	client_on_warning(client, take_warning, run);
	client_on_wake(client, on_wake, run);
	atomic_store(&run->client, client);
	if (config_fd >= 0) {
		r = network_start(&run->network, run->sb, config_fd, err);
		if (r < 0)
			return r;
		client_watch_add(client, &run->network.watch);
	}
	/* Whoever asked before there was a client. */
	if (atomic_load(&run->stops) > 0 || atomic_load(&run->signals) > 0)
		client_wake(client);
	return 0;
}

/* A command that cannot be started is a result like any other. */
static int settle(cloche_run *run, int r, struct cloche_err *err)
{
	if (r != -E_COMMAND_NOT_FOUND && r != -E_CANNOT_EXEC)
		return r;
	run->start_exit = cloche_error_exit_status(r);
	snprintf(run->start_failure, sizeof(run->start_failure), "%s", err->message);
	err_clear(err);
	return 0;
}

int cloche_run_execute(cloche_run *run, cloche_err *err)
{
	_cleanup_(exec_spec_donep) struct exec_spec spec;
	struct cloche_err own = CLOCHE_ERR_INIT;
	struct client_result result = {0};
	int r;

	err = err ? err : &own;
	exec_spec_init(&spec);
	if (run->executed)
		return err_set(err, E_USAGE, "a run can be executed once");
	run->executed = true;
	r = make_exec(run, &spec, err);
	if (r == 0)
		r = start(run, err);
	if (r < 0)
		return r;
	run->io.write = take_output;
	run->io.user = run;
	run->io.output_limit = run->sb->output_limit;
	if (run->tty_fd >= 0)
		terminal_open(&run->terminal, run->tty_fd, atomic_load(&run->client));
	r = client_exec(atomic_load(&run->client), &spec, &run->io, &result, err);
	terminal_close(&run->terminal);
	for (int i = 0; i < 2; i++)
		result.truncated[i] |= run->result.truncated[i];
	run->result = result;
	r = settle(run, r, err);
	if (r < 0)
		return r;
	r = client_finish(atomic_load(&run->client), &run->ended, err);
	network_finish(&run->network);
	return r;
}

const char *cloche_run_id(const cloche_run *run)
{
	struct client *client = atomic_load(&run->client);

	return client ? client_id(client) : "";
}

const char *cloche_run_provider(const cloche_run *run)
{
	struct client *client = atomic_load(&run->client);

	return client ? client_provider(client) : "";
}

int cloche_run_exit_code(const cloche_run *run)
{
	if (run->start_exit)
		return run->start_exit;
	if (run->result.timed_out)
		return EXIT_TIMEOUT;
	return run->result.signaled ? 128 + run->result.status : run->result.status;
}

int cloche_run_exit_signal(const cloche_run *run)
{
	return run->result.signaled ? run->result.status : 0;
}

bool cloche_run_timed_out(const cloche_run *run)
{
	return run->result.timed_out;
}

bool cloche_run_oom_killed(const cloche_run *run)
{
	return run->result.oom_killed;
}

bool cloche_run_pids_refused(const cloche_run *run)
{
	return run->result.pids_refused;
}

bool cloche_run_stopped(const cloche_run *run)
{
	return run->result.stopped || atomic_load(&run->stops) > 0;
}

const char *cloche_run_start_failure(const cloche_run *run)
{
	return run->start_failure;
}

uint64_t cloche_run_duration_ms(const cloche_run *run)
{
	return run->result.duration_usec / USEC_PER_MSEC;
}

const void *cloche_run_stdout(const cloche_run *run, size_t *ret_length)
{
	*ret_length = buf_len(&run->kept[0]);
	return buf_data(&run->kept[0]);
}

const void *cloche_run_stderr(const cloche_run *run, size_t *ret_length)
{
	*ret_length = buf_len(&run->kept[1]);
	return buf_data(&run->kept[1]);
}

bool cloche_run_stdout_truncated(const cloche_run *run)
{
	return run->result.truncated[0];
}

bool cloche_run_stderr_truncated(const cloche_run *run)
{
	return run->result.truncated[1];
}

cloche_usage cloche_run_usage(const cloche_run *run)
{
	const struct ctl_usage *u = &run->ended.usage;

	return (cloche_usage){.cpu_ms = u->cpu_usec / USEC_PER_MSEC,
		.memory_peak_bytes = u->memory_peak_bytes,
		.pids_peak = u->pids_peak};
}

uint64_t cloche_run_network_allowed(const cloche_run *run)
{
	return run->network.counts.allowed;
}

uint64_t cloche_run_network_blocked(const cloche_run *run)
{
	return run->network.counts.blocked;
}
