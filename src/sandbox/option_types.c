/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a type of option is a row of operations at the end of this file. What is
 * stored is JSON (store.h). Strings are bytes (paths, values of variables), so they are stored in
 * base64. */
#include "base/base64.h"
#include "base/fd.h"
#include "base/parse.h"
#include "sandbox/options.h"
#include "sandbox/store.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* --- texts, as JSON --- */

static json_t *store_text(const char *text)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(SANDBOX_STORE_MAX);

	if (!text)
		return json_null();
	if (base64_encode(&b, str_from(text)) < 0)
		return NULL;
	return json_stringn(buf_len(&b) ? buf_data(&b) : "", buf_len(&b));
}

json_t *store_texts(char *const *texts)
{
	_cleanup_json_ json_t *all = json_array();

	for (size_t i = 0; all && texts && texts[i]; i++)
		if (json_array_append_new(all, store_text(texts[i])) < 0)
			return NULL;
	return TAKE_PTR(all);
}

static int load_text(const json_t *value, char **ret)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(SANDBOX_STORE_MAX);
	int r;

	free(*ret);
	*ret = NULL;
	if (json_is_null(value))
		return 0;
	if (!json_is_string(value))
		return -EINVAL;
	r = base64_decode(&b, json_str(value));
	if (r < 0 || (buf_len(&b) && memchr(buf_data(&b), 0, buf_len(&b))))
		return r == -ENOMEM ? r : -EINVAL;
	*ret = str_dup(buf_str(&b));
	return *ret ? 0 : -ENOMEM;
}

static int load_texts(const json_t *value, char ***ret)
{
	size_t i;
	const json_t *one;
	int r = json_is_array(value) ? 0 : -EINVAL;

	*ret = strv_free(*ret);
	json_array_foreach (value, i, one) {
		char *text = NULL;

		if (r == 0)
			r = json_is_string(one) ? load_text(one, &text) : -EPROTO;
		if (r == 0)
			r = text ? strv_take(ret, text) : -EINVAL;
	}
	return r;
}

/* What was granted is named by its path again, which a room may have exchanged meanwhile: it must
 * be the same file (INV-NAMED-ONCE). It cannot have been removed and its number used again, as long
 * as the sandbox runs. Return -1 if there is another one, or none. */
static int open_recorded(const char *path, uint64_t device, uint64_t inode)
{
	_cleanup_fd_ int fd = open(path, O_PATH | O_CLOEXEC);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == device && st.st_ino == inode
		       ? TAKE_FD(fd)
		       : -1;
}

/* --- numbers --- */

static int number_copy(
	const cloche_sandbox *sb, cloche_sandbox *copy, const struct sandbox_option *o)
{
	*(uint64_t *)option_at(copy, o) = *(uint64_t *)option_at(sb, o);
	return 0;
}

static json_t *number_put(const cloche_sandbox *sb, const struct sandbox_option *o)
{
	return json_integer((json_int_t) * (const uint64_t *)option_at(sb, o));
}

static int number_get(
	const json_t *value, cloche_sandbox *sb, const struct sandbox_option *o, char ***secrets)
{
	*(uint64_t *)option_at(sb, o) = (uint64_t)json_integer_value(value);
	return 0;
}

static json_t *number_describe(const cloche_sandbox *sb, const struct sandbox_option *o)
{
	return *(const uint64_t *)option_at(sb, o) ? number_put(sb, o) : json_null();
}

static json_t *cpus_describe(const cloche_sandbox *sb, const struct sandbox_option *o)
{
	uint64_t millis = *(const uint64_t *)option_at(sb, o);

	return millis ? json_real((double)millis / 1000) : json_null();
}

static int number_take(cloche_sandbox *sb, const struct sandbox_option *o, uint64_t number)
{
	uint64_t *at = option_at(sb, o);

	*at = number;
	/* Somebody asks for it now. */
	if (at == &sb->limits.memory_bytes)
		sb->memory_optional = false;
	else if (at == &sb->limits.cpus_milli)
		sb->cpus_optional = false;
	return 0;
}

static int size_set(cloche_sandbox *sb, const struct sandbox_option *o, const char *value,
	struct cloche_err *err)
{
	uint64_t n;

	if (parse_size(str_from(value), &n) < 0)
		return err_set(err, E_USAGE, "%s \"%s\": use a size such as 64k, 512m or 2g",
			o->name, value);
	if (n >= o->least)
		return number_take(sb, o, n);
	err_set(err, E_USAGE, "%s \"%s\": nothing can start with so little", o->name, value);
	err_hint(err, "at least %lluk is needed", (unsigned long long)(o->least / 1024));
	return -E_USAGE;
}

static int cpus_set(cloche_sandbox *sb, const struct sandbox_option *o, const char *value,
	struct cloche_err *err)
{
	uint64_t n;

	if (parse_cpus(str_from(value), &n) < 0)
		return err_set(err, E_USAGE,
			"%s \"%s\": use a number such as 0.5 or 2, at least 0.01", o->name, value);
	return number_take(sb, o, n);
}

static int count_set(cloche_sandbox *sb, const struct sandbox_option *o, const char *value,
	struct cloche_err *err)
{
	uint64_t n;

	if (parse_u64(str_from(value), o->most, &n) < 0 || n < o->least)
		return err_set(err, E_USAGE, "%s \"%s\": use a number from %llu to %llu", o->name,
			value, (unsigned long long)o->least, (unsigned long long)o->most);
	return number_take(sb, o, n);
}

static int time_set(cloche_sandbox *sb, const struct sandbox_option *o, const char *value,
	struct cloche_err *err)
{
	uint64_t n;

	if (parse_duration(str_from(value), &n) < 0)
		return err_set(err, E_USAGE, "%s \"%s\": use a time such as 500ms, 30s or 5m",
			o->name, value);
	return number_take(sb, o, MAX(n / 1000, (uint64_t)1));
}

static void number_unset(cloche_sandbox *sb, const struct sandbox_option *o)
{
	(void)number_take(sb, o, 0);
}

/* --- flags, and enumerations and borrowed descriptors, which are ints --- */

static int flag_copy(const cloche_sandbox *sb, cloche_sandbox *copy, const struct sandbox_option *o)
{
	*(bool *)option_at(copy, o) = *(bool *)option_at(sb, o);
	return 0;
}

static json_t *flag_put(const cloche_sandbox *sb, const struct sandbox_option *o)
{
	return json_boolean(*(const bool *)option_at(sb, o));
}

static int flag_get(
	const json_t *value, cloche_sandbox *sb, const struct sandbox_option *o, char ***secrets)
{
	*(bool *)option_at(sb, o) = json_is_true(value);
	return 0;
}

static int flag_set(cloche_sandbox *sb, const struct sandbox_option *o, const char *value,
	struct cloche_err *err)
{
	*(bool *)option_at(sb, o) = true;
	return 0;
}

static int int_copy(const cloche_sandbox *sb, cloche_sandbox *copy, const struct sandbox_option *o)
{
	memcpy(option_at(copy, o), option_at(sb, o), sizeof(int));
	return 0;
}

static json_t *int_put(const cloche_sandbox *sb, const struct sandbox_option *o)
{
	return json_integer(*(const int *)option_at(sb, o));
}

static int int_get(
	const json_t *value, cloche_sandbox *sb, const struct sandbox_option *o, char ***secrets)
{
	*(int *)option_at(sb, o) = (int)json_integer_value(value);
	return 0;
}

/* --- a text, several texts --- */

static int text_copy(const cloche_sandbox *sb, cloche_sandbox *copy, const struct sandbox_option *o)
{
	return set_string(option_at(copy, o), *(char **)option_at(sb, o), NULL) == 0 ? 0 : -ENOMEM;
}

static void text_free(cloche_sandbox *sb, const struct sandbox_option *o)
{
	free(*(char **)option_at(sb, o));
}

static json_t *text_put(const cloche_sandbox *sb, const struct sandbox_option *o)
{
	return store_text(*(char *const *)option_at(sb, o));
}

static int text_get(
	const json_t *value, cloche_sandbox *sb, const struct sandbox_option *o, char ***secrets)
{
	return load_text(value, option_at(sb, o));
}

static json_t *text_describe(const cloche_sandbox *sb, const struct sandbox_option *o)
{
	return json_text(*(char *const *)option_at(sb, o));
}

static int texts_copy(
	const cloche_sandbox *sb, cloche_sandbox *copy, const struct sandbox_option *o)
{
	return strv_copy(*(char ***)option_at(sb, o), option_at(copy, o));
}

static void texts_free(cloche_sandbox *sb, const struct sandbox_option *o)
{
	strv_free(*(char ***)option_at(sb, o));
}

static json_t *texts_put(const cloche_sandbox *sb, const struct sandbox_option *o)
{
	return store_texts(*(char **const *)option_at(sb, o));
}

static int texts_get(
	const json_t *value, cloche_sandbox *sb, const struct sandbox_option *o, char ***secrets)
{
	return load_texts(value, option_at(sb, o));
}

/* --- a descriptor of its own: what root_dir, in a row before, was opened on --- */

static int opened_copy(
	const cloche_sandbox *sb, cloche_sandbox *copy, const struct sandbox_option *o)
{
	int from = *(int *)option_at(sb, o), *to = option_at(copy, o);

	*to = from < 0 ? -1 : fcntl(from, F_DUPFD_CLOEXEC, 0);
	return from < 0 || *to >= 0 ? 0 : -errno;
}

static void opened_free(cloche_sandbox *sb, const struct sandbox_option *o)
{
	fd_close(*(int *)option_at(sb, o));
}

static json_t *opened_put(const cloche_sandbox *sb, const struct sandbox_option *o)
{
	int fd = *(const int *)option_at(sb, o);
	struct stat st;

	return fd < 0 || fstat(fd, &st) < 0
		       ? json_null()
		       : json_pack("[I, I]", (json_int_t)st.st_dev, (json_int_t)st.st_ino);
}

static int opened_get(
	const json_t *value, cloche_sandbox *sb, const struct sandbox_option *o, char ***secrets)
{
	uint64_t device = (uint64_t)json_integer_value(json_array_get(value, 0));
	uint64_t inode = (uint64_t)json_integer_value(json_array_get(value, 1));

	*(int *)option_at(sb, o) = sb->root_dir && json_is_array(value)
					   ? open_recorded(sb->root_dir, device, inode)
					   : -1;
	return 0;
}

/* --- mounts: there is one member of this type --- */

static int mounts_copy(
	const cloche_sandbox *sb, cloche_sandbox *copy, const struct sandbox_option *o)
{
	for (size_t i = 0; i < sb->mounts_n; i++) {
		const struct room_mount *m = &sb->mounts[i];
		int fd = m->fd < 0 ? m->fd : fcntl(m->fd, F_DUPFD_CLOEXEC, 0);

		if (m->fd >= 0 && fd < 0)
			return -errno;
		if (sandbox_put_mount(copy, fd, m, NULL) < 0)
			return -ENOMEM;
	}
	return 0;
}

static void mounts_free(cloche_sandbox *sb, const struct sandbox_option *o)
{
	for (size_t i = 0; i < sb->mounts_n; i++) {
		fd_close(sb->mounts[i].fd);
		free(sb->mounts[i].source);
		free(sb->mounts[i].target);
		free(sb->mounts[i].also);
	}
	free(sb->mounts);
}

static json_t *mounts_put(const cloche_sandbox *sb, const struct sandbox_option *o)
{
	_cleanup_json_ json_t *all = json_array();

	for (size_t i = 0; all && i < sb->mounts_n; i++) {
		const struct room_mount *m = &sb->mounts[i];
		struct stat st = {.st_dev = m->device, .st_ino = m->inode};

		if ((m->fd >= 0 && fstat(m->fd, &st) < 0) ||
			json_array_append_new(all,
				json_pack("[o, o, b, b, I, I, I, o, b]", store_text(m->source),
					store_text(m->target), m->ro, m->found,
					(json_int_t)m->guard, (json_int_t)st.st_dev,
					(json_int_t)st.st_ino, store_text(m->also), m->unobeyed)) <
				0)
			return NULL;
	}
	return TAKE_PTR(all);
}

static int mounts_get(
	const json_t *value, cloche_sandbox *sb, const struct sandbox_option *o, char ***secrets)
{
	size_t i;
	const json_t *one;

	json_array_foreach (value, i, one) {
		_cleanup_(freep) char *source = NULL, *target = NULL, *also = NULL;
		struct room_mount m = {0};
		int r = load_text(json_array_get(one, 0), &source);

		if (r == 0)
			r = load_text(json_array_get(one, 1), &target);
		if (r == 0)
			r = load_text(json_array_get(one, 7), &also);
		if (r < 0 || !source || !target)
			return r < 0 ? r : -EINVAL;
		m.source = source;
		m.target = target;
		m.also = also;
		m.ro = json_is_true(json_array_get(one, 2));
		m.found = json_is_true(json_array_get(one, 3));
		m.guard = (uint32_t)json_integer_value(json_array_get(one, 4));
		m.device = (uint64_t)json_integer_value(json_array_get(one, 5));
		m.inode = (uint64_t)json_integer_value(json_array_get(one, 6));
		m.unobeyed = json_is_true(json_array_get(one, 8));
		if (m.guard > sb->mounts_n)
			return -EINVAL;
		if (sandbox_put_mount(sb, m.guard ? -1 : open_recorded(source, m.device, m.inode),
			    &m, NULL) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* --- allowlists --- */

static int allowlist_member_copy(
	const cloche_sandbox *sb, cloche_sandbox *copy, const struct sandbox_option *o)
{
	cloche_allowlist *from = *(cloche_allowlist **)option_at(sb, o), **to = option_at(copy, o);

	*to = allowlist_copy(from);
	return *to || !from ? 0 : -ENOMEM;
}

static void allowlist_member_free(cloche_sandbox *sb, const struct sandbox_option *o)
{
	cloche_allowlist_free(*(cloche_allowlist **)option_at(sb, o));
}

static json_t *allowlist_member_put(const cloche_sandbox *sb, const struct sandbox_option *o)
{
	const cloche_allowlist *list = *(cloche_allowlist *const *)option_at(sb, o);
	_cleanup_json_ json_t *all = list ? json_array() : json_null();

	for (size_t i = 0; all && list && i < list->sources_n; i++) {
		const struct allow_source *s = &list->sources[i];

		if (json_array_append_new(
			    all, json_pack("[o, o]", store_text(s->name), store_text(s->text))) < 0)
			return NULL;
	}
	return TAKE_PTR(all);
}

static int allowlist_member_get(
	const json_t *value, cloche_sandbox *sb, const struct sandbox_option *o, char ***secrets)
{
	cloche_allowlist **ret = option_at(sb, o);
	size_t i;
	const json_t *one;

	if (json_is_null(value))
		return 0;
	*ret = cloche_allowlist_new();
	if (!*ret)
		return -ENOMEM;
	json_array_foreach (value, i, one) {
		_cleanup_(freep) char *name = NULL, *text = NULL;
		int r = load_text(json_array_get(one, 0), &name);

		if (r == 0)
			r = load_text(json_array_get(one, 1), &text);
		if (r < 0 || !text)
			return r < 0 ? r : -EINVAL;
		r = allowlist_add_source(
			*ret, &(struct allow_source){.name = name, .text = text}, NULL);
		if (r < 0)
			return -EINVAL;
	}
	return 0;
}

/* --- secrets: only the names of the member "secrets" are stored; the others are a part of it ---
 */

static int secrets_member_copy(
	const cloche_sandbox *sb, cloche_sandbox *copy, const struct sandbox_option *o)
{
	cloche_secrets *from = *(cloche_secrets **)option_at(sb, o), **to = option_at(copy, o);

	*to = secrets_copy(from);
	return *to || !from ? 0 : -ENOMEM;
}

static void secrets_member_free(cloche_sandbox *sb, const struct sandbox_option *o)
{
	cloche_secrets_free(*(cloche_secrets **)option_at(sb, o));
}

static json_t *secrets_member_put(const cloche_sandbox *sb, const struct sandbox_option *o)
{
	_cleanup_json_ json_t *all = json_array();
	const cloche_secrets *secrets = strcmp(o->key, "secrets") == 0 ? sb->secrets : NULL;
	size_t n = secrets ? cloche_secrets_count(secrets) : 0;

	for (size_t i = 0; all && i < n; i++)
		if (json_array_append_new(all, store_text(cloche_secrets_name(secrets, i))) < 0)
			return NULL;
	return TAKE_PTR(all);
}

static int secrets_member_get(
	const json_t *value, cloche_sandbox *sb, const struct sandbox_option *o, char ***secrets)
{
	return strcmp(o->key, "secrets") == 0 ? load_texts(value, secrets) : 0;
}

/* --- the table --- */

static const struct option_ops by_type[] = {
	[OPTION_NONE] = {0},
	[OPTION_SIZE] = {number_copy, NULL, number_put, number_get, number_describe, size_set,
		number_unset},
	[OPTION_CPUS] = {number_copy, NULL, number_put, number_get, cpus_describe, cpus_set,
		number_unset},
	[OPTION_COUNT] = {number_copy, NULL, number_put, number_get, number_describe, count_set,
		number_unset},
	[OPTION_TIME] = {number_copy, NULL, number_put, number_get, number_describe, time_set,
		number_unset},
	[OPTION_FLAG] = {flag_copy, NULL, flag_put, flag_get, flag_put, flag_set, NULL},
	[OPTION_TEXT] = {text_copy, text_free, text_put, text_get, text_describe, NULL, NULL},
	[OPTION_TEXTS] = {texts_copy, texts_free, texts_put, texts_get, NULL, NULL, NULL},
	[OPTION_FD] = {int_copy, NULL, NULL, NULL, NULL, NULL, NULL},
	[OPTION_OPENED] = {opened_copy, opened_free, opened_put, opened_get, NULL, NULL, NULL},
	[OPTION_ROOT] = {int_copy, NULL, int_put, int_get, NULL, NULL, NULL},
	[OPTION_NET] = {int_copy, NULL, int_put, int_get, NULL, NULL, NULL},
	[OPTION_MOUNTS] = {mounts_copy, mounts_free, mounts_put, mounts_get, NULL, NULL, NULL},
	[OPTION_ALLOWLIST] = {allowlist_member_copy, allowlist_member_free, allowlist_member_put,
		allowlist_member_get, NULL, NULL, NULL},
	[OPTION_SECRETS] = {secrets_member_copy, secrets_member_free, secrets_member_put,
		secrets_member_get, NULL, NULL, NULL},
};
_Static_assert(ARRAY_SIZE(by_type) == OPTION_TYPES, "a type of option has no row");

const struct option_ops *option_ops(const struct sandbox_option *o)
{
	return &by_type[o->type];
}
