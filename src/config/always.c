/* SPDX-License-Identifier: Apache-2.0 */
/* A file is {"directory", "allow": [{"since", "host"} or {"since", "rules", "as"}]}, where "as"
 * says in words what the rules are for. One that cannot be read is an error: what the user has
 * answered is not lost in silence. */
#include "config/always.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "config/consent.h"
#include "fs/fs.h"
#include "job/job.h"

#include <errno.h>
#include <sys/file.h>
#include <unistd.h>

/* A text of rules is what a question suggests, some KiB at most. */
enum { ALWAYS_FILE_MAX = 1 << 20, ALWAYS_MAX = 1000 };

#define ALWAYS_NAME "what you allow always"

static const char *always_key(const struct allow_source *s)
{
	return s->name ? "rules" : "host";
}

static int always_read(const char *dir, int fd, json_t **ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(ALWAYS_FILE_MAX);
	char name[CONSENT_NAME_MAX];
	int r;

	consent_name(dir, ".always", name);
	if (faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		return 0;
	r = fd_read_file(fd, name, &text, err);
	if (r < 0)
		return err_wrap(err, r, ALWAYS_NAME);
	if (json_text_read(buf_str(&text), 0, ret, NULL) < 0 ||
		!json_is_array(json_object_get(*ret, "allow"))) {
		err_set(err, E_CORRUPT, ALWAYS_NAME " in %s cannot be read: %s", dir, name);
		err_hint(err, "\"cloche trust --revoke DIR\" forgets it");
		return -E_CORRUPT;
	}
	return 1;
}

static bool always_has(const json_t *all, const struct allow_source *s)
{
	const json_t *one;
	size_t i;

	json_array_foreach (all, i, one)
		if (str_eq(json_str_at(one, always_key(s)), str_from(s->text)))
			return true;
	return false;
}

static int always_write(const char *dir, int fd, json_t *record, const struct allow_source *s,
	struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(ALWAYS_FILE_MAX);
	json_t *all = json_object_get(record, "allow");
	char since[CLOCK_ISO_MAX], name[CONSENT_NAME_MAX];

	if (always_has(all, s))
		return 0;
	if (json_array_size(all) >= ALWAYS_MAX)
		return err_set(
			err, E_LIMIT, ALWAYS_NAME " in %s: there are %d entries", dir, ALWAYS_MAX);
	clock_format_utc(clock_real_usec(), since);
	if (json_array_append_new(all,
		    json_pack("{s:s, s:o, s:o*}", "since", since, always_key(s), json_text(s->text),
			    "as", s->name ? json_text(s->name) : NULL)) < 0)
		return err_nomem(err);
	if (json_text_write(&text, record, 1) < 0)
		return err_set(err, E_LIMIT, ALWAYS_NAME " in %s is too much", dir);
	consent_name(dir, ".always", name);
	return fs_write_atomic(fd, name, buf_str(&text), 0600, true, err);
}

int always_add(const char *dir, const struct allow_source *s, struct cloche_err *err)
{
	_cleanup_json_ json_t *record = NULL;
	_cleanup_fd_ int fd = -1;
	int r = consent_open(true, &fd, err);

	if (r < 0)
		return r;
	r = job_lock(fd, LOCK_EX);
	if (r < 0)
		return err_sys(err, -r, "lock " ALWAYS_NAME);
	r = always_read(dir, fd, &record, err);
	if (r == 0)
		record = json_pack("{s:o, s:[]}", "directory", json_text(dir), "allow");
	if (r >= 0 && !record)
		return err_nomem(err);
	return r < 0 ? r : always_write(dir, fd, record, s, err);
}

static int always_list(const json_t *all, cloche_allowlist *list, struct cloche_err *err)
{
	const json_t *one;
	size_t i;
	int r = 0;

	json_array_foreach (all, i, one) {
		struct str rules = json_str_at(one, "rules");
		const char *host = json_string_value(json_object_get(one, "host"));
		const char *as = json_string_value(json_object_get(one, "as"));

		if (rules.n)
			r = cloche_allowlist_add_text(
				list, as ? as : ALWAYS_NAME, rules.p, rules.n, err);
		else
			r = cloche_allowlist_add_host(list, host ? host : "", err);
		if (r < 0)
			break;
	}
	return r;
}

int always_load(const char *dir, cloche_allowlist **ret, char **ret_file, struct cloche_err *err)
{
	_cleanup_(cloche_allowlist_freep) cloche_allowlist *list = NULL;
	_cleanup_json_ json_t *record = NULL;
	_cleanup_fd_ int fd = -1;
	int r;

	*ret = NULL;
	/* Where nothing can be kept, nobody is kept from running what needs none of it. */
	if (consent_open(false, &fd, NULL) <= 0)
		return 0;
	r = always_read(dir, fd, &record, err);
	if (r <= 0)
		return r;
	list = cloche_allowlist_new();
	*ret_file = list ? consent_path(dir, ".always") : NULL;
	if (!*ret_file)
		return err_nomem(err);
	r = always_list(json_object_get(record, "allow"), list, err);
	if (r < 0) {
		free(TAKE_PTR(*ret_file));
		return r;
	}
	*ret = TAKE_PTR(list);
	return 0;
}

int always_remove(const char *dir, struct cloche_err *err)
{
	return consent_unlink(dir, ".always", err);
}
