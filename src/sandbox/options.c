/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a row has everything about an option; the code here needs only the row's
 * type. */
#include "sandbox/options.h"
#include "base/parse.h"
#include "job/job.h"
#include "provider/names.h"

#include <stddef.h>
#include <stdio.h>

static const struct sandbox_option rows[] = {
#define OPTION(member, kind, ...)                                                                  \
	{.key = #member,                                                                           \
		.type = OPTION_##kind,                                                             \
		.offset = offsetof(cloche_sandbox, member),                                        \
		__VA_ARGS__},
#define LIMIT(member, word, ...)                                                                   \
	{.key = #member,                                                                           \
		.name = word,                                                                      \
		.offset = offsetof(cloche_sandbox, limits.member),                                 \
		__VA_ARGS__},
#define VERB(...) {__VA_ARGS__},
#define MEMBER(member, kind)                                                                       \
	{.key = #member, .type = OPTION_##kind, .offset = offsetof(cloche_sandbox, member)},
#include "provider/options.def"
};

const struct sandbox_option *option_row(size_t i)
{
	return i < ARRAY_SIZE(rows) ? &rows[i] : NULL;
}

const struct sandbox_option *option_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].name && strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}

const cloche_option *cloche_sandbox_option(size_t i)
{
	/* The last rows are members that are not options. */
	return i < ARRAY_SIZE(rows) && rows[i].name ? &rows[i].shown : NULL;
}

bool option_is_list(const struct sandbox_option *o)
{
	return o->is_list || o->type == OPTION_TEXTS || o->type == OPTION_MOUNTS ||
	       o->type == OPTION_ALLOWLIST || o->type == OPTION_SECRETS;
}

bool option_is_flag(const struct sandbox_option *o)
{
	return o->type == OPTION_FLAG && !o->argument;
}

uint64_t *option_number(const cloche_sandbox *sb, const struct sandbox_option *o)
{
	bool is_number = o->type == OPTION_SIZE || o->type == OPTION_CPUS ||
			 o->type == OPTION_COUNT || o->type == OPTION_TIME;

	return is_number ? option_at(sb, o) : NULL;
}

void *option_at(const cloche_sandbox *sb, const struct sandbox_option *o)
{
	return (char *)(uintptr_t)sb + o->offset;
}

int option_set(cloche_sandbox *sb, const struct sandbox_option *o, const char *value,
	struct cloche_err *err)
{
	if (o->set)
		return o->set(sb, value, err);
	return option_ops(o)->set ? option_ops(o)->set(sb, o, value, err) : -E_INTERNAL;
}

/* Take a setting away. */
static int option_unset(cloche_sandbox *sb, const struct sandbox_option *o, struct cloche_err *err)
{
	if (o->set && o->unset)
		return o->set(sb, NULL, err);
	if (o->set || !option_ops(o)->unset)
		return err_set(err, E_USAGE, "%s: a value is missing", o->name);
	option_ops(o)->unset(sb, o);
	return 0;
}

int cloche_sandbox_settle(cloche_sandbox *sb, const char *name, cloche_err *err)
{
	const struct sandbox_option *o = option_find(name);

	if (!o)
		return err_set(err, E_USAGE, "unknown option \"%s\"", name);
	if (option_is_list(o))
		return 0;
	return strv_add(&sb->settled, str_from(name)) < 0 ? err_nomem(err) : 0;
}

bool sandbox_is_settled(const cloche_sandbox *sb, const char *name)
{
	for (char **v = sb->settled; v && *v; v++)
		if (strcmp(*v, name) == 0)
			return true;
	return false;
}

const char *option_key(const struct sandbox_option *o, char ret[static 64])
{
	if (o->file || !o->config)
		return o->file ? o->file : o->name;
	snprintf(ret, 64, "limits.%s", o->config);
	return ret;
}

JOB_TELL1(option_call_setting, cloche_setting_fn, const cloche_setting *)

void sandbox_tell_setting(const cloche_sandbox *sb, const cloche_setting *setting)
{
	if (sb->on_setting)
		option_call_setting(sb->on_setting, setting, sb->on_setting_user);
}

void cloche_sandbox_on_setting(cloche_sandbox *sb, cloche_setting_fn fn, void *user)
{
	sb->on_setting = fn;
	sb->on_setting_user = user;
}

int cloche_sandbox_set(cloche_sandbox *sb, const char *name, const char *value, cloche_err *err)
{
	const struct sandbox_option *o = option_find(name);
	char key[64];
	int r;

	if (!o)
		return err_set(err, E_USAGE, "unknown option \"%s\"", name);
	if (o->argument && !value)
		return option_unset(sb, o, err);
	r = option_set(sb, o, value, err);
	if (r == 0)
		sandbox_tell_setting(sb, &(cloche_setting){.key = option_key(o, key),
						 .value = o->argument ? value : "true",
						 .adds = option_is_list(o)});
	return r;
}

int cloche_parse_duration(const char *text, uint64_t *ret_milliseconds, cloche_err *err)
{
	uint64_t v;

	if (parse_duration(str_from(text), &v) < 0)
		return err_set(
			err, E_USAGE, "\"%s\" is not a time: use 500ms, 30s, 5m or 2h", text);
	*ret_milliseconds = MAX(v / 1000, (uint64_t)1);
	return 0;
}
