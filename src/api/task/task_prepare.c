/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a driver says what its agent needs (a program, a place for its state, hosts,
 * a credential); what the caller has configured wins over it. The credential is never put into the
 * room: it becomes a masked secret. */
#include "api/task/agent_sandbox.h"
#include "api/task/task.h"
#include "base/fd.h"
#include "fs/fs.h"
#include "provider/provider.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOM_HOME "/root"

static int find_program(const cloche_task *task, const cloche_sandbox *sb,
	struct agent_program *ret, struct cloche_err *err)
{
	_cleanup_(freep) char *cwd = getcwd(NULL, 0);
	struct agent_search search = {.binary = task->binary,
		.path = secure_getenv("PATH"),
		.home = secure_getenv("HOME"),
		.cwd = cwd};

	return task->driver->output->find(&search, ret, err);
}

/* The driver's mounts come last, so they would silently cover what the caller mounts there. */
static int task_refuse_covered(const cloche_task *task, const cloche_sandbox *sb,
	const char *target, const char *what, const char *instead, struct cloche_err *err)
{
	for (size_t i = 0; i < task->sb->mounts_n; i++) {
		const struct room_mount *m = &sb->mounts[i];

		if (!fs_is_within(m->target, target))
			continue;
		(void)err_set(err, E_USAGE, "mount %s: %s of the agent is mounted at %s", m->source,
			what, target);
		err_hint(err, "mount it somewhere else, or use %s", instead);
		return -E_USAGE;
	}
	return 0;
}

static bool has_no_room(const cloche_sandbox *sb)
{
	return sb->provider && !provider_makes_room(sb->provider);
}

/* Without a room the state is not in the room's home, so let the variables that name its place
 * point to it. */
static int point_to_state(
	const cloche_task *task, cloche_sandbox *sb, const char *state, struct cloche_err *err)
{
	const struct agent_environment *env = &task->driver->env;
	int r = 0;

	for (size_t i = 0; r == 0 && i < env->n; i++)
		if (env->v[i].in_home && strcmp(env->v[i].value, task->driver->state) == 0)
			r = cloche_sandbox_set_env(sb, env->v[i].name, state, err);
	return r;
}

/* The agent's own state: a directory of the context, writable in the room's home. */
static int mount_state(cloche_task *task, cloche_sandbox *sb, struct cloche_err *err)
{
	const char *name = task->driver->context;
	_cleanup_(freep) char *dir = fs_absolute(session_dir(task->session));
	_cleanup_(freep) char *named = dir ? fs_join(dir, name) : NULL;
	_cleanup_(freep) char *target = fs_join(ROOM_HOME, task->driver->state);
	_cleanup_(freep) char *same = named ? fs_lexical(named) : NULL;
	_cleanup_fd_ int fd = -1;
	int r = 0, context = session_dir_fd(task->session);

	if (!named || !same || !target)
		return err_nomem(err);
	if (mkdirat(context, name, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "create %s", named);
	fd = fs_open_beneath(context, name, O_PATH | O_DIRECTORY);
	if (fd < 0)
		return err_sys(err, -fd, "open %s", named);
	if (has_no_room(sb))
		r = point_to_state(task, sb, same, err);
	else
		r = task_refuse_covered(task, sb, target, "the state", named, err);
	return r < 0 ? r
		     : sandbox_add_mount(sb, TAKE_FD(fd),
			       &(struct room_mount){.source = named,
				       .target = has_no_room(sb) ? same : target,
				       .found = true},
			       err);
}

/* Guard a part of a mount, and keep the directories around it in their places: a guard goes with
 * what is renamed. */
static int protect_with_parents(cloche_sandbox *sb, size_t mount, const char *path,
	const struct stat *st, struct cloche_err *err)
{
	int r = 0;

	for (const char *slash = strchr(path, '/'); r == 0 && slash;
		slash = strchr(slash + 1, '/')) {
		_cleanup_(freep) char *dir = strndup(path, (size_t)(slash - path));
		_cleanup_fd_ int fd =
			dir ? fs_open_beneath(sb->mounts[mount].fd, dir, O_PATH | O_DIRECTORY) : -1;
		struct stat around;

		if (!dir)
			return err_nomem(err);
		if (fd < 0 || fstat(fd, &around) < 0)
			return err_sys(err, fd < 0 ? -fd : errno, "find %s", dir);
		r = sandbox_add_guard(sb, mount, dir, &around, false, err);
	}
	return r < 0 ? r : sandbox_add_guard(sb, mount, path, st, true, err);
}

/* Guard the context in a mount that the room may write to. */
static int protect_context_in(cloche_task *task, cloche_sandbox *sb, size_t mount, const char *path,
	struct cloche_err *err)
{
	const struct room_mount *m = &sb->mounts[mount];
	char top[PATH_MAX];
	const char *below;
	struct stat st;
	int r = fd_path(m->fd, top);

	if (r < 0 || fstat(session_dir_fd(task->session), &st) < 0)
		return err_sys(err, r < 0 ? -r : errno, "find %s", m->source);
	below = fs_below(path, top);
	if (!below)
		return 0;
	return below[0] ? protect_with_parents(sb, mount, below, &st, err)
			: err_set(err, E_USAGE,
				  "%s cannot be the context and be mounted for writing", path);
}

/* A context is read-only if it is in a directory that the room may write to: the agent must not
 * change the record, and the next run would follow what the agent puts in its place
 * (INV-INSIDE-PATHS). */
static int protect_context(cloche_task *task, cloche_sandbox *sb, struct cloche_err *err)
{
	char path[PATH_MAX];
	size_t n = sb->mounts_n;
	int r = fd_path(session_dir_fd(task->session), path);

	if (r < 0)
		return err_sys(err, -r, "find %s", session_dir(task->session));
	for (size_t i = 0; i < n && r == 0; i++)
		if (!sb->mounts[i].ro && !sb->mounts[i].guard)
			r = protect_context_in(task, sb, i, path, err);
	return r;
}

/* The agent is root unless the caller or an image names a user, and its home is where its state is
 * mounted. All of a room with one user is that user's. Where root makes it, the state is root's. On
 * another machine it is whoever the room's commands are. */
static int set_user(cloche_sandbox *sb, struct cloche_err *err)
{
	bool one_user = geteuid() != 0;
	struct sandbox_user user;
	int r;

	if (has_no_room(sb) || (sandbox_is_elsewhere(sb) && !sandbox_names_user(sb)))
		return 0;
	r = sandbox_names_user(sb) ? 0 : set_string(&sb->user, "0", err);
	if (r == 0)
		r = sandbox_find_user(sb, &user, err);
	if (r < 0)
		return r;
	if (sb->user && user.uid != 0 && !one_user)
		return err_set(err, E_UNSUPPORTED,
			"--user %s: the state of an agent that root runs belongs to root",
			sb->user);
	if (!strv_env_get(sb->env, "HOME") && (one_user || user.uid == 0))
		r = cloche_sandbox_set_env(sb, "HOME", ROOM_HOME, err);
	return r;
}

/* The credential that is used: the first that the caller has given, in one way or another. */
static const struct agent_key *task_key(const cloche_task *task, const cloche_sandbox *sb)
{
	const struct agent_driver *d = task->driver;

	for (size_t i = 0; i < d->keys_n; i++) {
		_cleanup_(agent_found_done) struct agent_found found = {0};

		if (agent_has_key(sb, &d->keys[i]) ||
			(agent_key_find(d, &d->keys[i], &found, NULL) == 0 && found.value))
			return &d->keys[i];
	}
	return &d->keys[0];
}

static int set_environ(cloche_task *task, cloche_sandbox *sb, struct cloche_err *err)
{
	int r = set_user(sb, err);

	if (r == 0)
		r = agent_add_environment(sb, &task->driver->env, ROOM_HOME, err);
	if (r == 0)
		r = agent_add_environment(sb, &task->driver->headless_env, ROOM_HOME, err);
	return r < 0 ? r : agent_check_withheld(sb, task_key(task, sb), task->driver->name, err);
}

/* What the caller gives up in case that no sandbox can be made is not given up in one. */
static int task_give_nothing_up(cloche_task *task, cloche_sandbox *sb, struct cloche_err *err)
{
	const struct agent_key *key = task_key(task, sb);
	char *value = (char *)(uintptr_t)strv_env_get(sb->env, key->env);
	int r = 0;

	if (sb->net == SANDBOX_NET_HOST)
		sb->net = SANDBOX_NET_AUTO;
	if (value && *value)
		r = agent_mask_key(sb, key, key->hosts, &(struct agent_found){.value = value}, err);
	if (r == 0 && value)
		strv_env_unset(sb->env, key->env);
	return r;
}

static bool task_has_credential(const struct agent_driver *d)
{
	bool has = false;

	for (size_t i = 0; !has && i < d->keys_n; i++) {
		_cleanup_(agent_found_done) struct agent_found found = {0};

		has = agent_key_find(d, &d->keys[i], &found, NULL) == 0 && found.value;
	}
	return has;
}

/* Say how the agent gets a credential: by another driver of the same program, if there is one for
 * what the person has. */
static void task_hint_credential(
	const cloche_task *task, const struct agent_key *key, struct cloche_err *err)
{
	_cleanup_(strv_freep) char **names = NULL;
	_cleanup_(buf_donep) struct buf other = BUF_INIT(512);
	const char *words;
	int r = agent_driver_names(&names, NULL);

	for (char *const *n = names; r == 0 && *n && buf_len(&other) == 0; n++) {
		_cleanup_(agent_driver_freep) struct agent_driver *d = NULL;

		if (agent_driver_get(*n, &d, NULL) == 0 && d->output &&
			strcmp(d->program, task->driver->program) == 0 && task_has_credential(d))
			r = buf_printf(
				&other, "for the credential that is here: --driver %s; else ", *n);
	}
	words = buf_cstr(&other);
	err_hint(err, "%sexport %s, or name one with --secret %s=VARIABLE@%s:%s",
		words ? words : "", key->env, key->env, key->hosts[0], key->headers[0]);
}

static int add_credential(cloche_task *task, cloche_sandbox *sb, struct cloche_err *err)
{
	const struct agent_key *key = task_key(task, sb);
	_cleanup_(agent_found_done) struct agent_found found;
	char stand_in[SECRETS_STAND_IN + 1];
	int r = agent_key_find(task->driver, key, &found, err);

	if (r < 0 || agent_has_key(sb, key))
		return r;
	if (has_no_room(sb)) {
		err_set(err, E_UNSUPPORTED, "without a sandbox nothing keeps %s from the agent",
			key->env);
		err_hint(err, "say --net host --pass-env %s to give it the real one", key->env);
		return -E_UNSUPPORTED;
	}
	if (!found.value && sb->offline) {
		secrets_stand_in(stand_in);
		r = set_string(&found.value, stand_in, err);
	}
	if (r < 0)
		return r;
	if (!found.value) {
		err_set(err, E_CONFIG, "%s needs a credential: %s is not set%s", task->driver->name,
			key->env, found.expired ? ", and the login has expired" : "");
		task_hint_credential(task, key, err);
		return -E_CONFIG;
	}
	return agent_mask_key(sb, key, key->hosts, &found, err);
}

static int set_logs(cloche_task *task, cloche_sandbox *sb, struct cloche_err *err)
{
	if (sb->network_log || sb->net == SANDBOX_NET_HOST)
		return 0;
	sb->network_log = strdup(task->network_log);
	sb->network_log_json = fs_join(session_dir(task->session), "network-sandbox.jsonl");
	return sb->network_log && sb->network_log_json ? 0 : err_nomem(err);
}

static int build_argv(
	const cloche_task *task, const char *program, char ***ret, struct cloche_err *err)
{
	const char *kept = cloche_session_info_of(task->session)->model;
	struct agent_request request = {.model = task->model ? task->model : kept,
		.resume = task->resume,
		.effort = task->effort,
		.system_prompt = task->system_prompt,
		.max_turns = task->max_turns,
		.is_command = task->is_command};

	return agent_driver_argv(task->driver, &request, program, ret, err);
}

/* Choose between a room and none first: what is mounted for the agent depends on it. */
static int choose_place(cloche_task *task, cloche_sandbox *sb, bool no_room, struct cloche_err *err)
{
	bool or_none = sb->provider && strcmp(sb->provider, PROVIDER_AUTO_OR_NONE) == 0;
	int r = 0;

	if (!no_room && !or_none)
		return 0;
	if (!no_room)
		r = task_give_nothing_up(task, sb, err);
	return r < 0 ? r : sandbox_set_provider(sb, no_room ? PROVIDER_UNSANDBOXED : "auto", err);
}

bool task_may_do_without_room(const cloche_task *task)
{
	const cloche_run *run = atomic_load(&task->run);
	const char *provider = task->sb->provider;

	return provider && strcmp(provider, PROVIDER_AUTO_OR_NONE) == 0 && run->told.number == 0 &&
	       !run->told.stopped && task->failure.code == 0 && !provider_any_works();
}

static int mount_program(cloche_task *task, cloche_sandbox *sb, const struct agent_program *program,
	struct cloche_err *err)
{
	const char *target = has_no_room(sb) ? NULL : program->destination;
	int r = target ? task_refuse_covered(task, sb, target, "the program", "--agent-binary", err)
		       : 0;

	return r < 0 ? r
		     : sandbox_add_mount(sb, fs_open_beneath(AT_FDCWD, program->source, O_PATH),
			       &(struct room_mount){.source = program->source,
				       .target =
					       target ? (char *)(uintptr_t)target : program->source,
				       .ro = true,
				       .found = true},
			       err);
}

int task_prepare_run(cloche_task *task, bool no_room, cloche_run **ret, struct cloche_err *err)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = sandbox_copy(task->sb);
	_cleanup_(agent_program_donep) struct agent_program program = {0};
	_cleanup_(strv_freep) char **argv = NULL;
	int r;

	if (!sb)
		return err_sys(err, errno, "copy a sandbox's configuration");
	r = choose_place(task, sb, no_room, err);
	if (r == 0)
		r = find_program(task, sb, &program, err);
	if (r == 0)
		r = mount_program(task, sb, &program, err);
	if (r == 0)
		r = sandbox_add_needs(sb, program.host, err);
	if (r == 0)
		r = protect_context(task, sb, err);
	if (r == 0)
		r = mount_state(task, sb, err);
	if (r == 0)
		r = set_environ(task, sb, err);
	if (r == 0)
		r = add_credential(task, sb, err);
	if (r == 0)
		r = agent_add_hosts(sb, task->driver->name, task->driver->hosts, err);
	if (r == 0)
		r = set_logs(task, sb, err);
	if (r == 0)
		r = build_argv(task, has_no_room(sb) ? program.host : program.path, &argv, err);
	if (r == 0 && task->model)
		r = cloche_session_set_model(task->session, task->model, err);
	if (r < 0)
		return r;
	sb->output_limit = 0; /* one of what is kept: the events are read whole */
	if (sb->timeout_ms == 0)
		sb->timeout_ms = AGENT_DEFAULT_TIMEOUT_MS;
	return run_new_take(TAKE_PTR(sb), argv, ret, err);
}
