/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the text is a JSON object with a member for each row of the table, by its
 * type. Strings are bytes (paths, values of variables), so they are stored in base64. */
#include "sandbox/store.h"
#include "base/base64.h"
#include "base/fd.h"
#include "base/json.h"
#include "sandbox/options.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static json_t *text_out(const char *text)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(SANDBOX_STORE_MAX);

	if (!text)
		return json_null();
	if (base64_encode(&b, str_from(text)) < 0)
		return NULL;
	return json_stringn(buf_len(&b) ? buf_data(&b) : "", buf_len(&b));
}

static json_t *texts_out(char *const *texts)
{
	_cleanup_json_ json_t *all = json_array();

	for (size_t i = 0; all && texts && texts[i]; i++)
		if (json_array_append_new(all, text_out(texts[i])) < 0)
			return NULL;
	return TAKE_PTR(all);
}

static json_t *mounts_out(const cloche_sandbox *sb)
{
	_cleanup_json_ json_t *all = json_array();

	for (size_t i = 0; all && i < sb->mounts_n; i++) {
		const struct room_mount *m = &sb->mounts[i];
		struct stat st = {.st_dev = m->device, .st_ino = m->inode};

		if ((m->fd >= 0 && fstat(m->fd, &st) < 0) ||
			json_array_append_new(
				all, json_pack("[o, o, b, b, I, I, I, o]", text_out(m->source),
					     text_out(m->target), m->ro, m->found,
					     (json_int_t)m->guard, (json_int_t)st.st_dev,
					     (json_int_t)st.st_ino, text_out(m->also))) < 0)
			return NULL;
	}
	return TAKE_PTR(all);
}

static json_t *opened_out(int fd)
{
	struct stat st;

	return fd < 0 || fstat(fd, &st) < 0
		       ? json_null()
		       : json_pack("[I, I]", (json_int_t)st.st_dev, (json_int_t)st.st_ino);
}

static json_t *allowlist_out(const cloche_allowlist *list)
{
	_cleanup_json_ json_t *all = list ? json_array() : json_null();

	for (size_t i = 0; all && list && i < list->sources_n; i++) {
		const struct allow_source *s = &list->sources[i];

		if (json_array_append_new(
			    all, json_pack("[o, o]", text_out(s->name), text_out(s->text))) < 0)
			return NULL;
	}
	return TAKE_PTR(all);
}

static json_t *names_out(const cloche_secrets *secrets)
{
	_cleanup_json_ json_t *all = json_array();
	size_t n = secrets ? cloche_secrets_count(secrets) : 0;

	for (size_t i = 0; all && i < n; i++)
		if (json_array_append_new(all, text_out(cloche_secrets_name(secrets, i))) < 0)
			return NULL;
	return TAKE_PTR(all);
}

static json_t *member_out(const cloche_sandbox *sb, const struct sandbox_option *o)
{
	const void *at = option_at(sb, o);

	switch (o->type) {
	case OPTION_SIZE:
	case OPTION_CPUS:
	case OPTION_COUNT:
	case OPTION_TIME:
		return json_integer((json_int_t) * (const uint64_t *)at);
	case OPTION_FLAG:
		return json_boolean(*(const bool *)at);
	case OPTION_TEXT:
		return text_out(*(char *const *)at);
	case OPTION_TEXTS:
		return texts_out(*(char **const *)at);
	case OPTION_ROOT:
	case OPTION_NET:
		return json_integer(*(const int *)at);
	case OPTION_MOUNTS:
		return mounts_out(sb);
	case OPTION_ALLOWLIST:
		return allowlist_out(*(cloche_allowlist *const *)at);
	case OPTION_SECRETS:
		/* Other members of this type are a part of "secrets". */
		return names_out(
			strcmp(o->key, "secrets") == 0 ? *(cloche_secrets *const *)at : NULL);
	case OPTION_OPENED:
		return opened_out(*(const int *)at);
	case OPTION_NONE:
	case OPTION_FD:
		break;
	}
	return json_null();
}

int sandbox_store(
	const cloche_sandbox *sb, char *const *secrets, struct buf *out, struct cloche_err *err)
{
	_cleanup_json_ json_t *all = json_object();
	const struct sandbox_option *o;
	int r;

	for (size_t i = 0; all && (o = option_row(i)); i++)
		if (o->key && json_object_set_new(all, o->key, member_out(sb, o)) < 0)
			return err_nomem(err);
	if (all && secrets && json_object_set_new(all, "secrets", texts_out(secrets)) < 0)
		return err_nomem(err);
	r = all ? json_text_write(out, all, JSON_TEXT_COMPACT) : -ENOMEM;
	if (r == -E2BIG)
		return err_set(err, E_LIMIT, "the options of the sandbox are too large");
	return r < 0 ? err_nomem(err) : 0;
}

/* --- reading; each function returns 0, -EINVAL, -ENOMEM, or -EPROTO for what another version has
 * written --- */

static int text_in(const json_t *value, char **ret)
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

static int texts_in(const json_t *value, char ***ret)
{
	size_t i;
	const json_t *one;
	int r = json_is_array(value) ? 0 : -EINVAL;

	*ret = strv_free(*ret);
	json_array_foreach (value, i, one) {
		char *text = NULL;

		if (r == 0)
			r = json_is_string(one) ? text_in(one, &text) : -EPROTO;
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

static int mounts_in(const json_t *value, cloche_sandbox *sb)
{
	size_t i;
	const json_t *one;

	json_array_foreach (value, i, one) {
		_cleanup_(freep) char *source = NULL, *target = NULL, *also = NULL;
		struct room_mount m = {0};
		int r = text_in(json_array_get(one, 0), &source);

		if (r == 0)
			r = text_in(json_array_get(one, 1), &target);
		if (r == 0)
			r = text_in(json_array_get(one, 7), &also);
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
		if (m.guard > sb->mounts_n)
			return -EINVAL;
		if (sandbox_put_mount(sb, m.guard ? -1 : open_recorded(source, m.device, m.inode),
			    &m, NULL) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int allowlist_in(const json_t *value, cloche_allowlist **ret)
{
	size_t i;
	const json_t *one;

	if (json_is_null(value))
		return 0;
	*ret = cloche_allowlist_new();
	if (!*ret)
		return -ENOMEM;
	json_array_foreach (value, i, one) {
		_cleanup_(freep) char *name = NULL, *text = NULL;
		int r = text_in(json_array_get(one, 0), &name);

		if (r == 0)
			r = text_in(json_array_get(one, 1), &text);
		if (r < 0 || !text)
			return r < 0 ? r : -EINVAL;
		r = name ? cloche_allowlist_add_text(*ret, name, text, strlen(text), NULL)
			 : cloche_allowlist_add_host(*ret, text, NULL);
		if (r < 0)
			return -EINVAL;
	}
	return 0;
}

static int member_in(
	const json_t *value, cloche_sandbox *sb, const struct sandbox_option *o, char ***secrets)
{
	void *at = option_at(sb, o);

	switch (o->type) {
	case OPTION_SIZE:
	case OPTION_CPUS:
	case OPTION_COUNT:
	case OPTION_TIME:
		*(uint64_t *)at = (uint64_t)json_integer_value(value);
		break;
	case OPTION_FLAG:
		*(bool *)at = json_is_true(value);
		break;
	case OPTION_TEXT:
		return text_in(value, at);
	case OPTION_TEXTS:
		return texts_in(value, at);
	case OPTION_ROOT:
	case OPTION_NET:
		*(int *)at = (int)json_integer_value(value);
		break;
	case OPTION_MOUNTS:
		return mounts_in(value, sb);
	case OPTION_ALLOWLIST:
		return allowlist_in(value, at);
	case OPTION_SECRETS:
		return strcmp(o->key, "secrets") == 0 ? texts_in(value, secrets) : 0;
	case OPTION_OPENED:
		/* The row before has its path. */
		*(int *)at =
			sb->root_dir && json_is_array(value)
				? open_recorded(sb->root_dir,
					  (uint64_t)json_integer_value(json_array_get(value, 0)),
					  (uint64_t)json_integer_value(json_array_get(value, 1)))
				: -1;
		break;
	case OPTION_NONE:
	case OPTION_FD:
		break;
	}
	return 0;
}

int sandbox_load(struct str text, cloche_sandbox **ret, char ***ret_secrets, struct cloche_err *err)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *sb = cloche_sandbox_new();
	_cleanup_(strv_freep) char **secrets = NULL;
	_cleanup_json_ json_t *all = NULL;
	const struct sandbox_option *o;
	int r = sb ? json_text_read(text, 0, &all, NULL) : -ENOMEM;

	/* Members that only another version or only this one knows are left as they are. */
	for (size_t i = 0; r == 0 && (o = option_row(i)); i++) {
		const json_t *value = o->key ? json_object_get(all, o->key) : NULL;

		if (value)
			r = member_in(value, sb, o, &secrets);
	}
	if (r == -ENOMEM)
		return err_nomem(err);
	if (r == -EPROTO)
		return err_set(err, E_UNSUPPORTED,
			"another version of cloche made the sandbox: its options cannot be read");
	if (r < 0)
		return err_set(err, E_CORRUPT,
			"the options that the sandbox was made with cannot be read");
	*ret = TAKE_PTR(sb);
	*ret_secrets = TAKE_PTR(secrets);
	return 0;
}
