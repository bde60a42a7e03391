/* SPDX-License-Identifier: Apache-2.0 */
#include "api/start/room.h"
#include "api/start/hidden.h"
#include "api/start/network.h"
#include "api/start/protect.h"
#include "base/clock.h"
#include "base/strv.h"
#include "fs/fs.h"
#include "ipc/statedir.h"
#include "jail/trust.h"
#include "job/job.h"
#include "policy/allowlist.h"
#include "provider/names.h"
#include "record/logs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include <utlist.h>

static int prepend_path(char ***env, const char *dirs)
{
	_cleanup_(freep) char *path = NULL;
	const char *rest = strv_env_get(*env, "PATH");

	if (asprintf(&path, "%s%s%s", dirs, rest ? ":" : "", rest ? rest : "") < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return strv_env_set(env, "PATH", path);
}

static int set_venv(char ***env, const cloche_sandbox *sb)
{
	_cleanup_(freep) char *dir = fs_join(sandbox_workdir(sb), sb->venv),
			      *bin = dir ? fs_join(dir, "bin") : NULL;
	int r = bin ? strv_env_set(env, "VIRTUAL_ENV", dir) : -ENOMEM;

	return r == 0 ? prepend_path(env, bin) : r;
}

static int set_trust(char ***env, const struct trust_env *t)
{
	const char *own = t->joined ? strv_env_get(*env, t->name) : NULL;
	_cleanup_(freep) char *both = NULL;

	if (!own || !own[0])
		return strv_env_set(env, t->name, t->value);
	if (asprintf(&both, "%s %s", t->value, own) < 0) {
		both = NULL;
		return -ENOMEM;
	}
	return strv_env_set(env, t->name, both);
}

/* For npm, which would silently retry for minutes, although no name can be resolved. */
static int set_offline(char ***env)
{
	return strv_env_get(*env, "npm_config_fetch_retries")
		       ? 0
		       : strv_env_set(env, "npm_config_fetch_retries", "0");
}

/* For git, which asks the room's end of an inspected leg of SSH: nobody is between the two, and the
 * key is made anew each time. With rules for plain TCP, SSH may also go to a real host, whose key
 * must be looked at. */
static int set_ssh(char ***env, const cloche_sandbox *sb)
{
	const struct allowlist *rules = sb->allowlist ? sb->allowlist->rules : NULL;
	uint8_t ports[ALLOWLIST_PORT_BYTES];

	if (!rules || !allowlist_has_ssh(rules) || allowlist_tcp_ports(rules, ports) ||
		strv_env_get(*env, "GIT_SSH_COMMAND"))
		return 0;
	return strv_env_set(env, "GIT_SSH_COMMAND",
		"ssh -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null "
		"-o GlobalKnownHostsFile=/dev/null -o LogLevel=ERROR");
}

/* Set a variable of the image, unless the user has set it. Of two of one name the last holds. */
static int add_of_image(const cloche_sandbox *sb, char ***env, const char *entry)
{
	size_t n = strcspn(entry, "=");
	_cleanup_(freep) char *name = strndup(entry, n);
	const char *own = name ? strv_env_get(sb->env, name) : NULL;

	if (!name)
		return -ENOMEM;
	return own && !sandbox_env_is_default(name, own) ? 0
							 : strv_env_set(env, name, entry + n + 1);
}

int room_make_env(const cloche_sandbox *sb, char ***ret)
{
	_cleanup_(strv_freep) char **env = NULL;
	const struct trust_env *trust;
	size_t n, secrets = sb->secrets ? cloche_secrets_count(sb->secrets) : 0;
	int r = strv_copy(sb->env, &env);

	for (size_t i = 0; r == 0 && sb->image_env && sb->image_env[i]; i++)
		r = add_of_image(sb, &env, sb->image_env[i]);
	if (r == 0 && sb->tool_path)
		r = prepend_path(&env, sb->tool_path);
	if (r == 0 && sb->venv)
		r = set_venv(&env, sb);
	trust = trust_env_table(&n);
	for (size_t i = 0; r == 0 && sandbox_wants_gateway(sb) && i < n; i++)
		r = set_trust(&env, &trust[i]);
	if (r == 0 && sandbox_wants_gateway(sb))
		r = set_ssh(&env, sb);
	if (r == 0 && !sandbox_wants_gateway(sb))
		r = set_offline(&env);
	for (size_t i = 0; r == 0 && i < secrets; i++)
		r = strv_env_set(&env, cloche_secrets_name(sb->secrets, i),
			cloche_secrets_surrogate(sb->secrets, i));
	if (r < 0)
		return r;
	*ret = TAKE_PTR(env);
	return 0;
}

/* Add mount i of sb with its guards; number: what its earlier mounts have become in ret. Both paths
 * of a mount lead to what is mounted in either. */
static int add_mount(const cloche_sandbox *sb, size_t i, size_t *number,
	const struct network_logs *logs, struct room_spec *ret, const char **ret_crowded,
	struct cloche_err *err)
{
	const struct room_mount *m = &sb->mounts[i];
	_cleanup_(freep) char *target = sandbox_path_inside(sb, m->target);
	size_t n = number[i] = ret->mounts_n;
	int r;

	if (m->guard) {
		const struct room_mount *in = &sb->mounts[m->guard - 1];
		const struct stat st = {.st_dev = m->device, .st_ino = m->inode};

		r = room_spec_add_guard(ret, number[m->guard - 1], fs_below(m->source, in->source),
			&st, m->ro, err);
		if (r == 0)
			ret->mounts[n].found = m->found;
		return r;
	}
	r = target ? room_spec_add_opened(ret, m->fd, m->source, target, m->ro, err)
		   : err_nomem(err);
	if (r < 0)
		return r;
	ret->mounts[n].found = m->found;
	ret->mounts[n].unobeyed = m->unobeyed;
	r = set_string(&ret->mounts[n].also, sandbox_second_path(sb, m), err);
	if (r == 0)
		r = protect_own_file(ret, n, logs->plain, err);
	if (r == 0)
		r = protect_own_file(ret, n, logs->json, err);
	return r == 0 && !m->unobeyed ? protect_mount(sb, ret, n, ret_crowded, err) : r;
}

static int add_mounts(const cloche_sandbox *sb, const struct network_logs *logs,
	struct room_spec *ret, const char **ret_crowded, struct cloche_err *err)
{
	_cleanup_(freep) size_t *number = calloc(sb->mounts_n + 1, sizeof(*number));
	int r = number ? protect_open(sb, ret, err) : err_nomem(err);

	for (size_t i = 0; r == 0 && i < sb->mounts_n; i++)
		r = add_mount(sb, i, number, logs, ret, ret_crowded, err);
	return r;
}

static int add_user(const cloche_sandbox *sb, struct room_spec *ret, struct cloche_err *err)
{
	struct sandbox_user user;
	int r = sandbox_find_user(sb, &user, err);

	if (r < 0)
		return r;
	ret->uid = user.uid;
	ret->gid = user.gid;
	ret->own_user = user.own;
	return user.name[0] ? set_string(&ret->user, user.name, err) : 0;
}

/* Refuse what would have no effect elsewhere. */
static int check_elsewhere(const cloche_sandbox *sb, struct cloche_err *err)
{
	if (!sandbox_is_elsewhere(sb))
		return 0;
	if (sb->image && sb->pull && strcmp(sb->pull, "missing") != 0) {
		err_set(err, E_USAGE,
			"--pull %s: a sandbox elsewhere has the images of its place, which gets "
			"them as it is set up to",
			sb->pull);
		err_hint(err, "leave --pull out, and pull or remove the image there");
		return -E_USAGE;
	}
	if (!sb->sync || strcmp(sb->sync, "none") != 0 || strv_count(sb->tools) == 0)
		return 0;
	err_set(err, E_USAGE, "--sync none copies nothing, so a tool of this machine is not there");
	err_hint(err, "leave out --sync or --tool");
	return -E_USAGE;
}

static int add_place(const cloche_sandbox *sb, struct room_spec *ret, struct cloche_err *err)
{
	int r = check_elsewhere(sb, err);

	if (r == 0)
		r = set_string(&ret->place, sb->place, err);

	if (r == 0 && sandbox_is_elsewhere(sb) && sb->image)
		r = set_string(&ret->place_image, sb->image + strlen("image:"), err);
	ret->far_usec = clock_usec_of_msec(sb->far_timeout_ms);
	return r < 0 ? r : set_string(&ret->sync, sb->sync, err);
}

static int make_room(const cloche_sandbox *sb, bool kept, const struct network_logs *logs,
	struct room_spec *ret, const char **ret_crowded, struct cloche_err *err)
{
	int r = set_string(&ret->keep_dir, sb->keep_changes, err);

	if (r < 0)
		return r;
	ret->root = sb->root;
	/* A run of one command can avoid the cost of an overlay (docs/design/roots.md). */
	ret->overlay = kept || sb->keep_changes || sandbox_is_recorded(sb);
	ret->net = sb->net == SANDBOX_NET_HOST ? ROOM_NET_HOST
		   : sandbox_wants_gateway(sb) ? ROOM_NET_GATEWAY
					       : ROOM_NET_NONE;
	r = add_user(sb, ret, err);
	if (r < 0)
		return r;
	r = add_place(sb, ret, err);
	if (r < 0)
		return r;
	ret->nested = sb->nested;
	ret->masked = sb->secrets && cloche_secrets_count(sb->secrets) > 0;
	ret->keeps_home = sb->keeps_home;
	ret->limits = sb->limits;
	ret->limits.best_effort = sb->best_effort;
	ret->limits.memory_optional = sb->memory_optional;
	ret->limits.cpus_optional = sb->cpus_optional;
	ret->root_dir = sb->root_dir ? strdup(sb->root_dir) : NULL;
	ret->host_home = fs_home();
	if (sb->root_dir && !ret->root_dir)
		return err_nomem(err);
	if (sb->root_fd >= 0 && (ret->root_fd = fcntl(sb->root_fd, F_DUPFD_CLOEXEC, 0)) < 0)
		return err_sys(err, errno, "root %s", sb->root_dir);
	r = set_string(&ret->image, sb->image_id, err);
	if (r < 0)
		return r;
	if (strv_copy(sb->image_layers, &ret->layers) < 0 ||
		strv_copy(sb->image_places, &ret->places) < 0)
		return err_nomem(err);
	return add_mounts(sb, logs, ret, ret_crowded, err);
}

/* Fill in what the supervisor gets besides the room. */
static int describe_start(const cloche_sandbox *sb, const struct room_spec *room,
	struct ctl_start *m, struct cloche_err *err)
{
	const char *provider;
	int r = provider_name_choose(sb->provider, &provider, err);

	if (r == 0)
		r = set_string(&m->provider, provider, err);
	if (r == 0)
		r = set_string(&m->name, sb->name, err);
	m->record_limit = sb->record_limit;
	m->record_sync = oplog_sync_named(str_from(sb->record_sync));
	m->grace_usec = CTL_DEFAULT_GRACE_USEC;
	if (r < 0)
		return r;
	if (m->kept) {
		m->log_bytes = sb->output_limit;
		m->timeout_usec = clock_usec_of_msec(sb->ttl_ms);
	}
	/* Also for what somebody starts beside the command of a run. */
	m->has_user = !room->own_user;
	m->uid = room->uid;
	m->gid = room->gid;
	m->exec_timeout_usec = clock_usec_of_msec(sb->timeout_ms);
	if (room_make_env(sb, &m->env) < 0 || strv_copy(sb->labels, &m->labels) < 0)
		return err_nomem(err);
	return set_string(&m->cwd, sandbox_workdir(sb), err);
}

/* Open the directory of the login's file before a room can be, through no link. */
static int open_login_dir(const struct sandbox_login *l, struct cloche_err *err)
{
	_cleanup_(freep) char *home = fs_home(), *dir = strdup(l->spec.file);
	_cleanup_fd_ int at = home ? open(home, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	char *slash = dir ? strrchr(dir, '/') : NULL;
	int fd;

	if (!dir)
		return err_nomem(err);
	*(slash ? slash : dir) = '\0';
	fd = at < 0 ? -ENOENT : fs_open_beneath(at, dir, O_RDONLY | O_DIRECTORY);
	return fd < 0 ? err_sys(err, -fd, "the directory of the login in ~/%s", l->spec.file) : fd;
}

/* Name the logins that the broker will renew, and open their directories. */
static int describe_logins(const cloche_sandbox *sb, struct ctl_start *m, int dirs[CTL_MAX_LOGINS],
	struct cloche_err *err)
{
	const struct sandbox_login *l;

	if (!sb->secrets || sb->offline || !sandbox_wants_gateway(sb))
		return 0;
	LL_FOREACH (sb->secrets->logins, l) {
		const char *slash = strrchr(l->spec.file, '/');
		size_t n = strv_count(m->logins);

		if (n >= CTL_MAX_LOGINS)
			return err_set(err, E_LIMIT, "more than %d logins", CTL_MAX_LOGINS);
		dirs[n] = open_login_dir(l, err);
		if (dirs[n] < 0)
			return dirs[n];
		if (strv_add(&m->logins, str_from(slash ? slash + 1 : l->spec.file)) < 0 ||
			strv_add(&m->login_locks, str_from(l->spec.lock)) < 0)
			return err_nomem(err);
	}
	return 0;
}

/* A record that cannot be kept is refused before anything runs. */
static int open_record_dirs(int dirs[2], struct cloche_err *err)
{
	static const char *const names[] = {STATEDIR_LOGS, STATEDIR_BLOBS};
	int r = oplogs_open_both(&dirs[0], &dirs[1], err);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(names); i++)
		if (faccessat(dirs[i], ".", W_OK, AT_EACCESS) < 0) {
			r = err_sys(
				err, errno, "keep a record in the state directory's %s", names[i]);
			err_hint(err, "CLOCHE_STATE_DIR names another directory for what outlives "
				      "sandboxes");
		}
	return r;
}

/* Start the supervisor. *ret_config_fd: as client_new(). */
static int start_client(const cloche_sandbox *sb, struct client_start *start, struct client **ret,
	int *ret_config_fd, struct cloche_err *err)
{
	int dirs[2] = {-1, -1}, logins[CTL_MAX_LOGINS], r;

	for (size_t i = 0; i < ARRAY_SIZE(logins); i++)
		logins[i] = -1;
	r = describe_logins(sb, &start->m, logins, err);
	start->login_dirs = logins;
	if (r == 0 && sandbox_is_recorded(sb)) {
		r = open_record_dirs(dirs, err);
		start->record_dirs = dirs;
	}
	if (r == 0)
		r = client_new(start, ret, ret_config_fd, err);
	start->record_dirs = start->login_dirs = NULL;
	fd_close(dirs[0]);
	fd_close(dirs[1]);
	for (size_t i = 0; i < ARRAY_SIZE(logins); i++)
		fd_close(logins[i]);
	return r;
}

/* What a command cannot change, and how to let it is an option. A copy of a configuration can be
 * changed, and who shows a file that is hidden is told at the beginning. */
static int listen_for(const struct room_spec *room, struct heard *heard)
{
	int r = 0;

	for (size_t i = 0; heard && r == 0 && i < room->mounts_n; i++) {
		const struct room_mount *m = &room->mounts[i];
		_cleanup_(freep) char *also = NULL;
		const char *above, *name;

		if (!m->guard || !m->ro || m->config || m->hidden)
			continue;
		above = room->mounts[m->guard - 1].also;
		name = room_spec_guarded(room, m);
		also = above ? fs_join(above, name) : NULL;
		r = above && !also ? -ENOMEM : heard_add(heard, name, m->target, also);
	}
	return r;
}

int room_start(const cloche_sandbox *sb, const struct ctl_start *how, struct network *net,
	struct heard *heard, cloche_warning_fn fn, void *user, struct client **ret,
	struct cloche_err *err)
{
	_cleanup_(room_spec_donep) struct room_spec room;
	_cleanup_(client_freep) struct client *client = NULL;
	_cleanup_(network_logs_close) struct network_logs logs = NETWORK_LOGS_NULL;
	struct client_start start = {.m = *how, .room = &room};
	const char *crowded = NULL;
	int config_fd = -1, r = statedir_check(err);

	*net = (struct network){0};
	room_spec_init(&room);
	if (r == 0 && sb->offline && sb->net == SANDBOX_NET_NONE)
		r = err_set(err, E_USAGE,
			"--offline answers requests, and --net none leaves nobody to ask: "
			"leave out one of them");
	if (r == 0)
		r = network_logs_open(sb, &logs, err);
	if (r == 0)
		r = make_room(sb, start.m.kept, &logs, &room, &crowded, err);
	if (r == 0)
		r = describe_start(sb, &room, &start.m, err);
	if (r == 0)
		r = start_client(sb, &start, &client, &config_fd, err);
	ctl_start_done(&start.m);
	if (r == 0)
		r = hidden_tell(client, &room, fn, user, err);
	if (r == 0 && listen_for(&room, heard) < 0)
		r = err_nomem(err);
	if (r == 0 && config_fd >= 0)
		r = network_start(net, client, sb, &logs, config_fd, err);
	if (r < 0)
		return r;
	if (crowded && fn)
		job_tell_text(fn, crowded, user);
	*ret = TAKE_PTR(client);
	return 0;
}
