/* SPDX-License-Identifier: Apache-2.0 */
#include "api/room.h"
#include "api/protect.h"
#include "base/clock.h"
#include "base/fs.h"
#include "jail/trust.h"
#include "provider/names.h"

#include <errno.h>
#include <stdio.h>

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

/* Programs that would go on trying for minutes, in silence, although no name can be found. */
static const struct {
	const char *name, *value;
} offline_env[] = {{"npm_config_fetch_retries", "0"}};

static int set_offline(char ***env)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(offline_env); i++)
		if (!strv_env_get(*env, offline_env[i].name))
			r = strv_env_set(env, offline_env[i].name, offline_env[i].value);
	return r;
}

int room_make_env(const cloche_sandbox *sb, char ***ret)
{
	_cleanup_(strv_freep) char **env = NULL;
	const struct trust_env *trust;
	size_t n, secrets = sb->secrets ? cloche_secrets_count(sb->secrets) : 0;
	int r = strv_copy(sb->env, &env);

	if (r == 0 && sb->tool_path)
		r = prepend_path(&env, sb->tool_path);
	trust = trust_env_table(&n);
	for (size_t i = 0; r == 0 && sandbox_wants_gateway(sb) && i < n; i++)
		r = set_trust(&env, &trust[i]);
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

static int add_mounts(
	const cloche_sandbox *sb, struct room_spec *ret, bool *ret_crowded, struct cloche_err *err)
{
	int r = protect_open(sb, ret, err);

	for (size_t i = 0; r == 0 && i < sb->mounts_n; i++) {
		r = room_spec_add_mount(
			ret, sb->mounts[i].source, sb->mounts[i].target, sb->mounts[i].ro, err);
		if (r < 0)
			break;
		ret->mounts[ret->mounts_n - 1].no_link = sb->mounts[i].no_link;
		r = protect_last_mount(ret, ret_crowded, err);
	}
	return r;
}

static int make_room(const cloche_sandbox *sb, struct client_start *start, struct room_spec *ret,
	struct cloche_err *err)
{
	int r = set_string(&ret->keep_dir, sb->keep_changes, err);

	if (r < 0)
		return r;
	ret->root = sb->root;
	/* Who runs one command and is gone can spare its cost (docs/design/roots.md). */
	ret->overlay = start->kept || sb->keep_changes;
	ret->net = sandbox_wants_gateway(sb) ? ROOM_NET_GATEWAY : ROOM_NET_NONE;
	ret->nested = sb->nested;
	ret->limits = sb->limits;
	ret->limits.best_effort = sb->best_effort;
	ret->root_dir = sb->root_dir ? strdup(sb->root_dir) : NULL;
	ret->host_home = fs_home();
	if (sb->root_dir && !ret->root_dir)
		return err_nomem(err);
	return add_mounts(sb, ret, &start->crowded, err);
}

int room_start(const cloche_sandbox *sb, struct client_start *start, struct network *net,
	struct client **ret, struct cloche_err *err)
{
	_cleanup_(room_spec_donep) struct room_spec room;
	_cleanup_(strv_freep) char **env = NULL;
	_cleanup_(client_freep) struct client *client = NULL;
	int config_fd = -1, r;

	*net = (struct network){0};
	room_spec_init(&room);
	r = provider_name_choose(sb->provider, &start->provider, err);
	if (r == 0)
		r = make_room(sb, start, &room, err);
	if (r < 0)
		return r;
	start->grace_usec = CTL_DEFAULT_GRACE_USEC;
	start->name = sb->name;
	if (start->kept) {
		if (room_make_env(sb, &env) < 0)
			return err_nomem(err);
		start->env = env;
		start->cwd = sandbox_workdir(sb);
		start->labels = sb->labels;
		start->log_bytes = sb->output_limit;
		start->timeout_usec = sb->ttl_ms * USEC_PER_MSEC;
		start->exec_timeout_usec = sb->timeout_ms * USEC_PER_MSEC;
	}
	start->room = &room;
	r = client_new(start, &client, &config_fd, err);
	start->room = NULL;
	start->env = NULL;
	if (r == 0 && config_fd >= 0)
		r = network_start(net, client, sb, config_fd, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(client);
	return 0;
}
