/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration in the record of a sandbox. Users see it and it is kept on disk, so it has
 * neither secrets nor the values of variables, which often contain tokens. */
#include "base/json.h"
#include "base/utf8.h"
#include "ipc/control.h"
#include "sandbox/options.h"

#include <errno.h>

enum { MAX_TEXT = CTL_MAX_CONFIG - 1, MAX_ARG = 1024, MAX_ARGS = 32 };

static json_t *mounts_of(const cloche_sandbox *sb)
{
	_cleanup_json_ json_t *all = json_array();

	for (size_t i = 0; all && i < sb->mounts_n; i++) {
		const struct room_mount *m = &sb->mounts[i];
		const char *also = sandbox_second_path(sb, m);

		if (json_array_append_new(all,
			    json_pack("{s:o, s:o, s:o?, s:b}", "source", json_text(m->source),
				    "target", json_text(m->target ? m->target : m->source), "also",
				    also ? json_text(also) : NULL, "read_only", (int)m->ro)) < 0)
			return NULL;
	}
	return TAKE_PTR(all);
}

/* The names of the variables. */
static json_t *env_of(const cloche_sandbox *sb)
{
	_cleanup_json_ json_t *all = json_array();

	for (size_t i = 0; all && sb->env && sb->env[i]; i++) {
		struct str s = str_from(sb->env[i]);

		if (json_array_append_new(all, json_utf8(str_prefix(s, str_chr(s, '=')))) < 0)
			return NULL;
	}
	return TAKE_PTR(all);
}

/* The names of the files of the allowlist, or the hosts that were allowed without one. */
static json_t *allowed_of(const cloche_sandbox *sb, bool files)
{
	_cleanup_json_ json_t *all = json_array();

	for (size_t i = 0; all && sb->allowlist && i < sb->allowlist->sources_n; i++) {
		const struct allow_source *s = &sb->allowlist->sources[i];

		if (files == (s->name != NULL) && s->text[0] != '!' &&
			json_array_append_new(all, json_text(files ? s->name : s->text)) < 0)
			return NULL;
	}
	return TAKE_PTR(all);
}

static json_t *secrets_of(const cloche_sandbox *sb)
{
	_cleanup_json_ json_t *all = json_array();
	size_t n = sb->secrets ? cloche_secrets_count(sb->secrets) : 0;

	for (size_t i = 0; all && i < n; i++)
		if (json_array_append_new(all, json_text(cloche_secrets_name(sb->secrets, i))) < 0)
			return NULL;
	return TAKE_PTR(all);
}

/* Limits are the options with numbers, and --limits itself. */
static bool is_limit(const struct sandbox_option *o)
{
	return (o->type >= OPTION_SIZE && o->type <= OPTION_TIME) || strcmp(o->name, "limits") == 0;
}

static int add_options(json_t *object, const cloche_sandbox *sb, bool limits)
{
	const struct sandbox_option *o;
	int r = 0;

	for (size_t i = 0; r == 0 && (o = option_row(i)); i++)
		if (o->record && is_limit(o) == limits)
			r = json_put(object, o->record, option_ops(o)->describe(sb, o));
	return r;
}

static json_t *limits_of(const cloche_sandbox *sb)
{
	_cleanup_json_ json_t *limits = json_object();

	return limits && add_options(limits, sb, true) == 0 ? TAKE_PTR(limits) : NULL;
}

/* With the runtime node or python a sandbox is recorded by default, as api/record/state.c reads it.
 */
static const char *find_record(const cloche_sandbox *sb)
{
	bool runs_code = sb->runtime && strcmp(sb->runtime, "shell") != 0;

	return sb->kept_record ? sb->kept_record : runs_code ? "ops" : "none";
}

static const char *find_net(const cloche_sandbox *sb)
{
	if (sb->net == SANDBOX_NET_HOST)
		return "host";
	return sandbox_wants_gateway(sb) ? "gateway" : "none";
}

const char *sandbox_root(const cloche_sandbox *sb)
{
	/* One of the place's own has no layers here. */
	if (sb->image)
		return sb->image;
	return sb->root == ROOM_ROOT_HOST ? "host" : sb->root_dir;
}

static json_t *describe_rest(const cloche_sandbox *sb)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "record",
		json_text(find_record(sb)), "root", json_text(sandbox_root(sb)), "workdir",
		json_text(sandbox_workdir(sb)), "mounts", mounts_of(sb), "env", env_of(sb), "net",
		json_text(find_net(sb)), "allow", allowed_of(sb, false), "allowlists",
		allowed_of(sb, true), "secrets", secrets_of(sb), "limits", limits_of(sb));
}

/* JSON holds no name that is not UTF-8, so its bytes are there as well. */
static int add_workdir_bytes(json_t *o, const char *dir)
{
	_cleanup_(buf_donep) struct buf hex = BUF_INIT(MAX_TEXT);

	if (utf8_is_valid(str_from(dir)))
		return 0;
	for (; *dir; dir++)
		if (buf_printf(&hex, "%02x", (unsigned char)*dir) < 0)
			return -ENOMEM;
	return json_object_set_new(o, "workdir_hex", json_utf8(buf_str(&hex)));
}

char *sandbox_describe(const cloche_sandbox *sb)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(MAX_TEXT);
	_cleanup_json_ json_t *o = json_object(), *rest = describe_rest(sb);
	int r = o && rest ? add_options(o, sb, false) : -ENOMEM;

	if (r == 0)
		r = add_workdir_bytes(o, sandbox_workdir(sb));
	if (r == 0)
		r = json_object_update(o, rest) < 0 ? -ENOMEM : json_text_write(&text, o, 0);
	/* The record is only for users, so this is no reason to fail. */
	if (r == -E2BIG)
		return str_dup(STR("{\"too_large\": true}"));
	return r == 0 ? str_dup(buf_str(&text)) : NULL;
}

char *sandbox_describe_command(const cloche_sandbox *sb, const char *const *argv, size_t code_arg)
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
		r = json_put(o, "argv", json_incref(args));
	if (r == 0)
		r = json_put(o, "workdir", json_text(sandbox_workdir(sb)));
	if (r == 0)
		r = add_workdir_bytes(o, sandbox_workdir(sb));
	if (r == 0)
		r = json_text_write(&text, o, 0);
	if (r == -E2BIG)
		return str_dup(STR("{}"));
	return r == 0 ? str_dup(buf_str(&text)) : NULL;
}
