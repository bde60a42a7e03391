/* SPDX-License-Identifier: Apache-2.0 */
#include "api/task/agent_sandbox.h"
#include "fs/fs.h"

#include <stdlib.h>
#include <string.h>

int agent_add_environment(cloche_sandbox *sb, const struct agent_environment *env, const char *home,
	struct cloche_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < env->n; i++) {
		const struct agent_env *e = &env->v[i];
		_cleanup_(freep) char *value =
			e->in_home ? fs_join(home, e->value) : strdup(e->value);

		if (!value)
			return err_nomem(err);
		if (!strv_env_get(sb->env, e->name))
			r = cloche_sandbox_set_env(sb, e->name, value, err);
	}
	return r;
}

static bool is_named(const cloche_sandbox *sb, const struct host *host)
{
	for (size_t k = 0; k < allowlist_count(sb->allowlist->rules); k++)
		if (host_pattern_matches(
			    str_from(allowlist_rule(sb->allowlist->rules, k)->host), host))
			return true;
	return false;
}

int agent_add_hosts(
	cloche_sandbox *sb, const char *driver, char *const *hosts, struct cloche_err *err)
{
	int r = 0;

	if (sb->net == CLOCHE_NET_NONE || sb->net == CLOCHE_NET_HOST)
		return 0;
	if (!sb->allowlist)
		sb->allowlist = cloche_allowlist_new();
	if (!sb->allowlist)
		return err_nomem(err);
	for (size_t i = 0; r == 0 && hosts && hosts[i]; i++) {
		struct host host;
		uint16_t port;

		if (host_parse_authority(str_from(hosts[i]), &host, &port) < 0)
			return err_set(err, E_CONFIG,
				"the driver %s names \"%s\", which is no host", driver, hosts[i]);
		if (!is_named(sb, &host))
			r = cloche_allowlist_add_host(sb->allowlist, hosts[i], err);
	}
	return r;
}

bool agent_has_key(const cloche_sandbox *sb, const struct agent_key *key)
{
	return (sb->secrets && secrets_has(sb->secrets, key->env)) ||
	       strv_env_get(sb->env, key->env);
}

const char *agent_key_value(const struct agent_key *key)
{
	const char *value = secure_getenv(key->env);

	for (char *const *from = key->from; (!value || !*value) && from && *from; from++)
		value = secure_getenv(*from);
	return value && *value ? value : NULL;
}

int agent_mask_key(cloche_sandbox *sb, const struct agent_key *key, char *const *hosts,
	const char *value, struct cloche_err *err)
{
	if (!sb->secrets)
		sb->secrets = cloche_secrets_new();
	if (!sb->secrets)
		return err_nomem(err);
	return cloche_secrets_add(sb->secrets, key->env, value, strlen(value),
		(const char *const *)hosts, (const char *const *)key->headers, false, err);
}

int agent_check_withheld(const cloche_sandbox *sb, const struct agent_key *key, const char *driver,
	struct cloche_err *err)
{
	for (size_t i = 0; sb->env && sb->env[i]; i++) {
		_cleanup_(freep) char *name = str_dup(
			str_prefix(str_from(sb->env[i]), str_chr(str_from(sb->env[i]), '=')));

		if (!name)
			return err_nomem(err);
		if (agent_key_withholds(key, name))
			return err_set(err, E_USAGE, "%s must not be set for %s", name, driver);
	}
	return 0;
}
