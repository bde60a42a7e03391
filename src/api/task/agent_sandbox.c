/* SPDX-License-Identifier: Apache-2.0 */
#include "api/task/agent_sandbox.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/program.h"
#include "fs/fs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { AGENT_LOGIN_MAX = 256 << 10, AGENT_ACCOUNT_MAX = 256 };

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

	if (sb->net == SANDBOX_NET_NONE || sb->net == SANDBOX_NET_HOST)
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

/* The value below these members; NULL: none. */
static const json_t *agent_login_member(const json_t *at, char *const *members)
{
	for (; at && members && *members; members++)
		at = json_object_get(at, *members);
	return at;
}

/* Read the person's file through no link: a room may have made what one leads to. */
static json_t *agent_login_load(const struct agent_key *key)
{
	_cleanup_(buf_done_wipedp) struct buf text = BUF_INIT(AGENT_LOGIN_MAX);
	_cleanup_(freep) char *home = fs_home();
	_cleanup_fd_ int dir = home ? open(home, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	_cleanup_fd_ int fd = dir < 0 ? -1 : fs_open_beneath(dir, key->login.file, O_RDONLY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || fd_read_to_end(fd, &text) < 0)
		return NULL;
	return json_loadb(buf_str(&text).p, buf_str(&text).n, 0, NULL);
}

/* Whether a login can be renewed that has a refresh token. */
static int agent_login_renews(const struct agent_driver *d, const struct agent_key *key,
	struct agent_found *ret, struct cloche_err *err)
{
	_cleanup_(freep) char *program = NULL;

	ret->renews = !key->client_secret_begins;
	if (ret->renews)
		return 0;
	program = program_on_path(d->program);
	if (program &&
		agent_client_secret(program, key->client_secret_begins, &ret->client_secret) < 0)
		return err_nomem(err);
	ret->renews = ret->client_secret;
	return 0;
}

static int agent_login_find(const struct agent_driver *d, const struct agent_key *key,
	struct agent_found *ret, struct cloche_err *err)
{
	_cleanup_json_ json_t *login = agent_login_load(key);
	const struct login_spec *spec = &key->login;
	const char *account;
	const char *token = json_string_value(agent_login_member(login, spec->token));
	const char *refresh =
		json_string_value(spec->url ? agent_login_member(login, spec->refresh) : NULL);
	json_int_t expires =
		spec->expires ? json_integer_value(agent_login_member(login, spec->expires)) : 0;

	if (!token || !*token)
		return 0;
	if (refresh && *refresh && agent_login_renews(d, key, ret, err) < 0)
		return -E_NO_MEMORY;
	ret->expires_msec = expires > 0 ? (uint64_t)expires : 0;
	ret->expired = !ret->renews && expires > 0 &&
		       ret->expires_msec <= clock_real_usec() / USEC_PER_MSEC;
	if (ret->expired)
		return 0;
	account = json_string_value(key->account ? agent_login_member(login, key->account) : NULL);
	if (account && strlen(account) <= AGENT_ACCOUNT_MAX && str_is_visible(str_from(account)) &&
		set_string(&ret->account, account, err) < 0)
		return -E_NO_MEMORY;
	return set_string(&ret->value, token, err);
}

int agent_key_find(const struct agent_driver *d, const struct agent_key *key,
	struct agent_found *ret, struct cloche_err *err)
{
	const char *value = secure_getenv(key->env);

	*ret = (struct agent_found){0};
	for (char *const *from = key->from; (!value || !*value) && from && *from; from++)
		value = secure_getenv(*from);
	if (value && *value)
		return set_string(&ret->value, value, err);
	return key->login.file ? agent_login_find(d, key, ret, err) : 0;
}

void agent_found_done(struct agent_found *found)
{
	if (found->value)
		explicit_bzero(found->value, strlen(found->value));
	free(found->value);
	free(found->client_secret);
	free(found->account);
}

int agent_mask_key(cloche_sandbox *sb, const struct agent_key *key, char *const *hosts,
	const struct agent_found *found, struct cloche_err *err)
{
	struct login_spec login = key->login;
	int r;

	if (found->client_secret)
		login.client_secret = found->client_secret;
	if (!sb->secrets)
		sb->secrets = cloche_secrets_new();
	if (!sb->secrets)
		return err_nomem(err);
	r = cloche_secrets_add(sb->secrets, key->env, found->value, strlen(found->value),
		(const char *const *)hosts, (const char *const *)key->headers, false, err);
	if (r == 0 && found->account && !strv_env_get(sb->env, key->account_env))
		r = cloche_sandbox_set_env(sb, key->account_env, found->account, err);
	if (r == 0 && found->renews)
		r = secrets_add_login(sb->secrets, key->env, &login, found->expires_msec, err);
	return r;
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
