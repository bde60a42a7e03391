/* SPDX-License-Identifier: Apache-2.0 */
/* Options whose value has several parts, or that read the caller's environment or files. */
#include "base/envfile.h"
#include "sandbox/options.h"

#include <stdlib.h>

/* SRC[:DST[:ro]] */
int option_mount(cloche_sandbox *sb, const char *value, cloche_err *err)
{
	_cleanup_(freep) char *source = strdup(value);
	char *target, *mode = NULL;

	if (!source)
		return err_nomem(err);
	target = strchr(source, ':');
	if (target) {
		*target++ = '\0';
		mode = strchr(target, ':');
	}
	if (mode)
		*mode++ = '\0';
	/* SRC:ro without a destination is a common mistake with only one meaning. */
	if (target && !mode && (strcmp(target, "ro") == 0 || strcmp(target, "rw") == 0)) {
		mode = target;
		target = NULL;
	}
	if (mode && strcmp(mode, "ro") != 0 && strcmp(mode, "rw") != 0)
		return err_set(err, E_USAGE, "--mount: use SRC[:DST[:ro]], not \"%s\"", value);
	return cloche_sandbox_add_mount(sb, source, target, mode && mode[1] == 'o', err);
}

int option_env(cloche_sandbox *sb, const char *value, cloche_err *err)
{
	const char *equals = strchr(value, '=');
	_cleanup_(freep) char *name = NULL;

	if (!equals)
		return option_pass_env(sb, value, err);
	name = strndup(value, (size_t)(equals - value));
	return name ? cloche_sandbox_set_env(sb, name, equals + 1, err) : err_nomem(err);
}

int option_pass_env(cloche_sandbox *sb, const char *value, cloche_err *err)
{
	const char *here = secure_getenv(value);

	if (value[0] == '\0' || strchr(value, '='))
		return err_set(err, E_USAGE,
			"--pass-env \"%s\": use the name of a variable; --env sets NAME=VALUE",
			value);
	return here ? cloche_sandbox_set_env(sb, value, here, err) : 0;
}

static int option_set_variable(
	void *user, const char *name, const char *value, struct cloche_err *err)
{
	return cloche_sandbox_set_env(user, name, value, err);
}

int option_env_file(cloche_sandbox *sb, const char *value, cloche_err *err)
{
	return envfile_read(value, option_set_variable, sb, err);
}

static int option_make_allowlist(cloche_sandbox *sb, struct cloche_err *err)
{
	if (!sb->allowlist)
		sb->allowlist = cloche_allowlist_new();
	return sb->allowlist ? 0 : err_nomem(err);
}

int option_allow(cloche_sandbox *sb, const char *value, cloche_err *err)
{
	int r = option_make_allowlist(sb, err);

	return r < 0 ? r : cloche_allowlist_add_host(sb->allowlist, value, err);
}

int option_allowlist(cloche_sandbox *sb, const char *value, cloche_err *err)
{
	int r = option_make_allowlist(sb, err);

	return r < 0 ? r : cloche_allowlist_add_file(sb->allowlist, value, err);
}

int option_preset(cloche_sandbox *sb, const char *value, cloche_err *err)
{
	int r = option_make_allowlist(sb, err);

	return r < 0 ? r : cloche_allowlist_add_preset(sb->allowlist, value, err);
}

/* Secrets of a configuration file are replaced, but two options for the same secret are a
 * mistake. */
static int option_add_secret(cloche_sandbox *sb, const char *value,
	int (*add)(cloche_secrets *secrets, const char *specification, cloche_err *err),
	struct cloche_err *err)
{
	int r;

	if (!sb->named_secrets)
		sb->named_secrets = cloche_secrets_new();
	if (!sb->named_secrets)
		return err_nomem(err);
	sb->named_secrets->offline = sb->offline != NULL;
	r = add(sb->named_secrets, value, err);
	return r < 0 ? r : cloche_sandbox_add_secrets(sb, sb->named_secrets, err);
}

int option_secret(cloche_sandbox *sb, const char *value, cloche_err *err)
{
	return option_add_secret(sb, value, secrets_add_from_env, err);
}

int option_secret_file(cloche_sandbox *sb, const char *value, cloche_err *err)
{
	return option_add_secret(sb, value, secrets_add_from_file, err);
}

int option_aws_secret(cloche_sandbox *sb, const char *value, cloche_err *err)
{
	return option_add_secret(sb, value, secrets_add_aws_from_env, err);
}

int option_net(cloche_sandbox *sb, const char *value, cloche_err *err)
{
	if (strcmp(value, "none") == 0)
		sb->net = SANDBOX_NET_NONE;
	else if (strcmp(value, "gateway") == 0)
		sb->net = SANDBOX_NET_GATEWAY;
	else if (strcmp(value, "host") == 0)
		sb->net = SANDBOX_NET_HOST;
	else
		return err_set(err, E_USAGE, "--net is none, gateway or host, not \"%s\"", value);
	return 0;
}

int option_limits(cloche_sandbox *sb, const char *value, cloche_err *err)
{
	bool best_effort = strcmp(value, "best-effort") == 0;

	if (!best_effort && strcmp(value, "strict") != 0)
		return err_set(
			err, E_USAGE, "--limits is strict or best-effort, not \"%s\"", value);
	sandbox_set_limits_best_effort(sb, best_effort);
	return 0;
}

int option_no_record(cloche_sandbox *sb, const char *value, cloche_err *err)
{
	return sandbox_set_record(sb, "none", err);
}
