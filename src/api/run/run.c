/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a run is one client, of a one-shot sandbox of its own or of an existing one.
 * Other threads and signal handlers only set an atomic variable and wake the executing thread,
 * which acts on it (run_execute.c). The client lives as long as the run, so that a late request
 * still finds it. */
#include "api/run/run.h"
#include "api/instance/instance.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/sized.h"
#include "job/job.h"
#include "provider/names.h"

#include <errno.h>
#include <string.h>

/* Each stream is kept up to RUN_KEEP_MAX if the caller set a limit, else up to what a log keeps. */
enum { KEEP_UNASKED = 16 << 20 };

static cloche_run *run_alloc(enum run_where where)
{
	cloche_run *run = calloc(1, sizeof(*run));

	if (!run)
		return NULL;
	run->where = where;
	run->io = CLIENT_IO_INIT;
	run->tty_fd = run->input = run->input_command = run->with_it = -1;
	run->log_tail = UINT64_MAX;
	run->stdin_data = BUF_INIT(SIZE_MAX / 4);
	run->kept[0] = run->kept[1] = BUF_INIT(RUN_KEEP_MAX);
	return run;
}

int run_new_take(cloche_sandbox *sb, char *const *argv, cloche_run **ret, struct cloche_err *err)
{
	_cleanup_(cloche_run_freep) cloche_run *run = run_alloc(RUN_OWN);

	if (!run) {
		cloche_sandbox_free(sb);
		return err_nomem(err);
	}
	run->sb = sb;
	if (strv_copy(argv, &run->argv) < 0)
		return err_nomem(err);
	if (!run->argv)
		return err_set(err, E_USAGE, "no command");
	run_tell(run);
	*ret = TAKE_PTR(run);
	return 0;
}

static int copy_command(const char *const *argv, char ***ret)
{
	for (size_t i = 0; argv[i]; i++)
		if (strv_add(ret, str_from(argv[i])) < 0)
			return -ENOMEM;
	return 0;
}

int cloche_run_new(
	const cloche_sandbox *sb, const char *const *argv, cloche_run **ret, cloche_err *err)
{
	_cleanup_(strv_freep) char **copy = NULL;
	cloche_sandbox *own;

	/* As container engines do: the image's entrypoint, then the command or, if there is none,
	 * the image's. */
	if (strv_copy(sb->image_entrypoint, &copy) < 0 ||
		copy_command(argv[0] || !sb->image_cmd ? argv : (const char *const *)sb->image_cmd,
			&copy) < 0)
		return err_nomem(err);
	own = sandbox_copy(sb);
	return own ? run_new_take(own, copy, ret, err)
		   : err_sys(err, errno, "copy a sandbox's configuration");
}

static int new_there(const cloche_instance *instance, enum run_where where, cloche_run **ret,
	struct cloche_err *err)
{
	_cleanup_(cloche_run_freep) cloche_run *run = run_alloc(where);

	if (!run)
		return err_nomem(err);
	run->in = instance_copy(instance);
	if (!run->in)
		return err_sys(err, errno, "copy the handle of a sandbox");
	run_tell(run);
	*ret = TAKE_PTR(run);
	return 0;
}

int cloche_run_new_in(
	const cloche_instance *instance, const char *const *argv, cloche_run **ret, cloche_err *err)
{
	_cleanup_(cloche_run_freep) cloche_run *run = NULL;
	int r = new_there(instance, RUN_IN, &run, err);

	if (r < 0)
		return r;
	if (copy_command(argv, &run->argv) < 0)
		return err_nomem(err);
	if (!run->argv)
		return err_set(err, E_USAGE, "no command");
	*ret = TAKE_PTR(run);
	return 0;
}

int cloche_run_new_joining(
	const cloche_instance *instance, uint32_t number, cloche_run **ret, cloche_err *err)
{
	int r = new_there(instance, RUN_JOINED, ret, err);

	if (r == 0)
		(*ret)->join = number;
	return r;
}

void cloche_run_free(cloche_run *run)
{
	if (!run)
		return;
	run_drop_input(run);
	run_drop_network(run);
	client_free(atomic_load(&run->client));
	network_done(&run->network);
	cloche_log_free(run->log);
	cloche_instance_free(run->in);
	cloche_sandbox_free(run->sb);
	strv_free(run->argv);
	strv_free(run->env);
	free(run->cwd);
	code_free(run->code);
	fd_close(run->with_it);
	free(run->note);
	buf_done_wiped(&run->stdin_data);
	buf_done(&run->kept[0]);
	buf_done(&run->kept[1]);
	heard_done(&run->heard);
	free(run);
}

int cloche_run_set_env(cloche_run *run, const char *name, const char *value, cloche_err *err)
{
	if (name[0] == '\0' || strchr(name, '='))
		return err_set(err, E_USAGE, "\"%s\" is not the name of a variable", name);
	return strv_env_set(&run->env, name, value) < 0 ? err_nomem(err) : 0;
}

static int run_check_options(
	const cloche_run *run, const cloche_run_options *o, struct cloche_err *err)
{
	size_t keys = o->detach_keys ? strlen(o->detach_keys) : 0;

	if (o->workdir && o->workdir[0] != '/')
		return err_set(
			err, E_USAGE, "working directory \"%s\" is not absolute", o->workdir);
	if (keys != 0 && keys != sizeof(run->detach_keys))
		return err_set(
			err, E_USAGE, "%zu keys are given, and two are needed to detach", keys);
	if ((o->uid == UINT32_MAX) != (o->gid == UINT32_MAX))
		return err_set(err, E_USAGE, "a user without a group, or a group without a user");
	if (run->code && o->stdin_data)
		return err_set(
			err, E_USAGE, "code takes no input: its standard input carries the code");
	return 0;
}

static void run_set_keys(cloche_run *run, const char *keys)
{
	memset(run->detach_keys, 0, sizeof(run->detach_keys));
	memcpy(run->detach_keys, keys, strlen(keys));
}

static int run_set_input(cloche_run *run, const cloche_run_options *o, struct cloche_err *err)
{
	if (run->code)
		return 0;
	if (o->tty_fd >= 0)
		run->tty_fd = o->tty_fd;
	if (o->stdin_fd >= 0) {
		run->io.input = CLIENT_INPUT_FD;
		run->io.fd = o->stdin_fd;
	}
	if (!o->stdin_data)
		return 0;
	buf_clear(&run->stdin_data);
	if (buf_add(&run->stdin_data, o->stdin_data, o->stdin_length) < 0)
		return err_nomem(err);
	run->io.input = CLIENT_INPUT_BYTES;
	run->io.bytes = buf_str(&run->stdin_data);
	return 0;
}

int cloche_run_set_options(cloche_run *run, const cloche_run_options *options, cloche_err *err)
{
	cloche_run_options o = CLOCHE_RUN_OPTIONS_INIT;
	int r = sized_take(&o, sizeof(o), options, "cloche_run_options", err);

	if (r == 0)
		r = run_check_options(run, &o, err);
	if (r == 0 && o.workdir)
		r = set_string(&run->cwd, o.workdir, err);
	if (r == 0)
		r = run_set_input(run, &o, err);
	if (r < 0)
		return r;
	if (o.uid != UINT32_MAX) {
		run->has_user = true;
		run->uid = o.uid;
		run->gid = o.gid;
	}
	if (o.timeout_ms != CLOCHE_RUN_UNCHANGED) {
		run->has_timeout = true;
		run->timeout_ms = o.timeout_ms;
	}
	if (o.detach_keys)
		run_set_keys(run, o.detach_keys);
	run->detached |= o.detached;
	run->keep_input |= o.keep_input;
	if (o.log_tail != CLOCHE_RUN_UNCHANGED)
		run->log_tail = o.log_tail;
	return 0;
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

void cloche_run_on_start(cloche_run *run, cloche_start_fn fn, void *user)
{
	run->on_start = fn;
	run->on_start_user = user;
}

void cloche_run_on_network(cloche_run *run, cloche_network_fn fn, void *user)
{
	run->on_network = fn;
	run->on_network_user = user;
}

JOB_TELL3(run_call_output, cloche_output_fn, bool, const void *, size_t)

int run_keep_output(cloche_run *run, int stream, const char *p, size_t n)
{
	struct buf *kept = &run->kept[stream - 1];
	size_t fits;

	if (run->code && code_has_value(run->code) && !run->code->call &&
		code_keep_printed(run->code, stream, p, n) < 0)
		return -ENOMEM;
	if (run->on_output) {
		run_call_output(run->on_output, stream == 2, p, n, run->on_output_user);
		return 0;
	}
	kept->max = run->io.output_limit ? RUN_KEEP_MAX : KEEP_UNASKED;
	fits = MIN(n, buf_room(kept));
	if (fits < n)
		run->result.truncated[stream - 1] = true;
	return buf_add(kept, p, fits) < 0 ? -ENOMEM : 0;
}

static int run_keep_stdout(void *user, const char *p, size_t n)
{
	return run_keep_output(user, 1, p, n);
}

int run_lose_output(cloche_run *run, int r)
{
	struct client *client = atomic_load(&run->client);
	struct cloche_err why = CLOCHE_ERR_INIT;

	if (r >= 0 || !client)
		return r;
	(void)err_nomem(&why);
	if (run->where == RUN_OWN)
		client_fail(client, &why);
	else
		client_break_off(client, &why);
	return r;
}

int run_take_output(void *user, int stream, const char *p, size_t n)
{
	cloche_run *run = user;
	int r;

	if (stream == 2 || run->tty_fd >= 0)
		heard_feed(&run->heard, p, n);
	if (stream != 1 || !run->code || !code_has_value(run->code))
		r = run_keep_output(run, stream, p, n);
	else
		r = code_value_feed(&run->code->value, p, n, run_keep_stdout, run);
	return run_lose_output(run, r);
}

int run_end_output(cloche_run *run, struct cloche_err *err)
{
	struct code *code = run->code;
	int r;

	if (!code || !code_has_value(code))
		return 0;
	r = code_value_end(&code->value, run_keep_stdout, run);
	if (r == 0)
		r = code_value_settle(&code->value);
	code->finished = true;
	return r < 0 ? err_nomem(err) : 0;
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
	if (atomic_load(&run->over))
		return false;
	atomic_fetch_add(&run->stops, 1);
	return wake(run);
}

bool cloche_run_leave(cloche_run *run)
{
	struct client *client = atomic_load(&run->client);

	if (run->where == RUN_OWN || atomic_load(&run->over))
		return false;
	atomic_store(&run->leave, true);
	if (client)
		client_leave(client);
	return client != NULL;
}

bool cloche_run_signal(cloche_run *run, int signal_number)
{
	if (signal_number < 1 || signal_number > 63 || atomic_load(&run->over))
		return false;
	atomic_fetch_or(&run->signals, 1ULL << signal_number);
	return wake(run);
}

void run_tell(cloche_run *run)
{
	struct client *client = atomic_load(&run->client);
	const struct client_result *result = &run->result;
	const struct ctl_exec_exited *end = &result->end;
	const struct ctl_usage *usage = &run->ended.usage;
	cloche_result *told = &run->told;

	told->size = sizeof(*told);
	told->id = run->in ? run->in->id : client ? client_id(client) : "";
	told->provider = client ? client_provider(client) : "";
	told->isolation = told->provider[0] ? client_isolation(client) : "none";
	told->is_recorded = run->sb && sandbox_is_recorded(run->sb);
	told->start_failure = run->start_failure;
	told->number = result->number;
	told->left = result->left;
	told->exit_code = run->start_exit ? run->start_exit : ctl_exit_code(end);
	told->signal = end->signaled ? end->status : 0;
	told->timed_out = end->timed_out;
	told->oom_killed = end->oom_killed;
	told->pids_refused = end->pids_refused;
	told->stopped = end->stopped || atomic_load(&run->stops) > 0;
	told->duration_ms = end->duration_usec / USEC_PER_MSEC;
	told->stdout_data = buf_data(&run->kept[0]);
	told->stdout_length = buf_len(&run->kept[0]);
	told->stdout_truncated = result->truncated[0];
	told->input_errno = result->input_errno;
	told->stderr_data = buf_data(&run->kept[1]);
	told->stderr_length = buf_len(&run->kept[1]);
	told->stderr_truncated = result->truncated[1];
	told->cpu_ms = usage->cpu_usec / USEC_PER_MSEC;
	told->memory_peak_bytes = usage->memory_peak_bytes;
	told->pids_peak = usage->pids_peak;
	told->network_allowed = run->network.counts.allowed;
	told->network_blocked = run->network.counts.blocked;
}

const cloche_result *cloche_run_result(const cloche_run *run)
{
	return &run->told;
}
