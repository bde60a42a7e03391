/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration in the record of a sandbox. Users see it and it is kept on disk, so it has
 * neither secrets nor the values of variables, which often contain tokens. */
#include "base/json.h"
#include "ipc/control.h"
#include "sandbox/options.h"

#include <errno.h>

enum { MAX_TEXT = CTL_MAX_CONFIG - 1, MAX_ARG = 1024, MAX_ARGS = 32 };

static int add(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value) < 0 ? -ENOMEM : 0;
}

static int append_text(json_t *array, const char *text)
{
	return json_array_append_new(array, json_utf8(str_from(text))) < 0 ? -ENOMEM : 0;
}

static int add_text(json_t *object, const char *key, const char *text)
{
	return text ? add(object, key, json_utf8(str_from(text))) : add(object, key, json_null());
}

static int add_number(json_t *object, const char *key, uint64_t value)
{
	return value ? add(object, key, json_integer((json_int_t)value))
		     : add(object, key, json_null());
}

static int add_mounts(json_t *object, const cloche_sandbox *sb)
{
	_cleanup_json_ json_t *mounts = json_array();
	int r = mounts ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < sb->mounts_n; i++) {
		json_t *one = json_object();
		const struct room_mount *m = &sb->mounts[i];

		if (!one || json_array_append_new(mounts, one) < 0)
			return -ENOMEM;
		r = add_text(one, "source", m->source);
		if (r == 0)
			r = add_text(one, "target", m->target ? m->target : m->source);
		if (r == 0)
			r = add(one, "read_only", json_boolean(m->ro));
	}
	return r == 0 ? add(object, "mounts", json_incref(mounts)) : r;
}

static int add_env(json_t *object, const cloche_sandbox *sb)
{
	_cleanup_json_ json_t *names = json_array();
	int r = names ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && sb->env && sb->env[i]; i++) {
		struct str s = str_from(sb->env[i]);

		if (json_array_append_new(names, json_utf8(str_prefix(s, str_chr(s, '=')))) < 0)
			return -ENOMEM;
	}
	return r == 0 ? add(object, "env", json_incref(names)) : r;
}

static int add_allowed(json_t *object, const cloche_sandbox *sb)
{
	_cleanup_json_ json_t *hosts = json_array();
	_cleanup_json_ json_t *files = json_array();
	int r = hosts && files ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && sb->allowlist && i < sb->allowlist->sources_n; i++) {
		const struct allow_source *s = &sb->allowlist->sources[i];

		r = s->name ? append_text(files, s->name) : append_text(hosts, s->text);
	}
	if (r == 0)
		r = add(object, "allow", json_incref(hosts));
	return r == 0 ? add(object, "allowlists", json_incref(files)) : r;
}

static int add_network(json_t *object, const cloche_sandbox *sb)
{
	_cleanup_json_ json_t *secrets = json_array();
	size_t n = sb->secrets ? cloche_secrets_count(sb->secrets) : 0;
	int r = secrets ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = append_text(secrets, cloche_secrets_name(sb->secrets, i));
	if (r == 0)
		r = add_text(object, "net",
			sb->net == CLOCHE_NET_HOST  ? "host"
			: sandbox_wants_gateway(sb) ? "gateway"
						    : "none");
	if (r == 0)
		r = add_allowed(object, sb);
	return r == 0 ? add(object, "secrets", json_incref(secrets)) : r;
}

/* Limits are the options with numbers, and --limits itself. */
static bool is_limit(const struct sandbox_option *o)
{
	return (o->type >= OPTION_SIZE && o->type <= OPTION_TIME) || strcmp(o->name, "limits") == 0;
}

static int add_option(json_t *object, const cloche_sandbox *sb, const struct sandbox_option *o)
{
	const void *at = option_at(sb, o);

	if (o->type == OPTION_TEXT)
		return add_text(object, o->record, *(char *const *)at);
	if (o->type == OPTION_FLAG)
		return add(object, o->record, json_boolean(*(const bool *)at));
	if (o->type == OPTION_CPUS && *(const uint64_t *)at)
		return add(object, o->record, json_real((double)*(const uint64_t *)at / 1000));
	return add_number(object, o->record, *(const uint64_t *)at);
}

static int add_options(json_t *object, const cloche_sandbox *sb, bool limits)
{
	const struct sandbox_option *o;
	int r = 0;

	for (size_t i = 0; r == 0 && (o = option_row(i)); i++)
		if (o->record && is_limit(o) == limits)
			r = add_option(object, sb, o);
	return r;
}

static int add_limits(json_t *object, const cloche_sandbox *sb)
{
	_cleanup_json_ json_t *limits = json_object();
	int r = limits ? add_options(limits, sb, true) : -ENOMEM;

	return r == 0 ? add(object, "limits", json_incref(limits)) : r;
}

/* With the runtime node or python a sandbox is recorded by default, as api/state.c reads it. */
static const char *find_record(const cloche_sandbox *sb)
{
	bool runs_code = sb->runtime && strcmp(sb->runtime, "shell") != 0;

	return sb->kept_record ? sb->kept_record : runs_code ? "ops" : "none";
}

char *sandbox_describe(const cloche_sandbox *sb)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(MAX_TEXT);
	_cleanup_json_ json_t *o = json_object();
	int r = o ? add_options(o, sb, false) : -ENOMEM;

	if (r == 0)
		r = add_text(o, "record", find_record(sb));
	if (r == 0)
		r = add_text(o, "root",
			sb->root == ROOM_ROOT_HOST ? "host"
			: sb->image                ? sb->image
						   : sb->root_dir);
	if (r == 0)
		r = add_text(o, "workdir", sandbox_workdir(sb));
	if (r == 0)
		r = add_mounts(o, sb);
	if (r == 0)
		r = add_env(o, sb);
	if (r == 0)
		r = add_network(o, sb);
	if (r == 0)
		r = add_limits(o, sb);
	if (r == 0)
		r = json_text_write(&text, o, 0);
	/* The record is only for users, so this is no reason to fail. */
	if (r == -E2BIG)
		return str_dup(STR("{\"too_large\": true}"));
	return r == 0 ? str_dup(buf_str(&text)) : NULL;
}

char *sandbox_describe_command(const char *const *argv, size_t code_arg)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(MAX_TEXT);
	_cleanup_json_ json_t *o = json_object();
	_cleanup_json_ json_t *args = json_array();
	int r = o && args ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && argv[i] && i < MAX_ARGS; i++) {
		struct str shown = i > 0 && i == code_arg ? STR(CTL_CODE) : str_from(argv[i]);
		json_t *arg = json_utf8(str_prefix(shown, MAX_ARG));

		r = json_array_append_new(args, arg) < 0 ? -ENOMEM : 0;
	}
	if (r == 0)
		r = add(o, "argv", json_incref(args));
	if (r == 0)
		r = json_text_write(&text, o, 0);
	if (r == -E2BIG)
		return str_dup(STR("{}"));
	return r == 0 ? str_dup(buf_str(&text)) : NULL;
}
