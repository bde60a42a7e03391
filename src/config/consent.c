/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a record's name is the hash of its directory's path, so that any path has
 * one. A record that cannot be read is no consent. */
#include "config/consent.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/sha256.h"
#include "fs/fs.h"
#include "ipc/statedir.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* RECORD_MAX is more than two files of 1 MiB can ask for in words. */
enum { RECORD_MAX = 32 << 20 };

void consent_name(const char *dir, const char *end, char ret[static CONSENT_NAME_MAX])
{
	char hex[SHA256_HEX_MAX];

	sha256_text(str_from(dir), hex);
	snprintf(ret, CONSENT_NAME_MAX, "%s%s", hex, end);
}

char *consent_path(const char *dir, const char *end)
{
	_cleanup_(freep) char *path = NULL;
	char name[CONSENT_NAME_MAX];

	consent_name(dir, end, name);
	return statedir_path(STATEDIR_CONSENT, &path, NULL) < 0 ? NULL : fs_join(path, name);
}

int consent_open(bool make, int *ret, struct cloche_err *err)
{
	_cleanup_(freep) char *path = NULL;
	struct stat st;
	int fd, r = statedir_path(STATEDIR_CONSENT, &path, err);

	if (r < 0)
		return r;
	if (!make && lstat(path, &st) < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	fd = fs_open_private_dir(path, err);
	if (fd < 0) {
		err_wrap(err, fd, "consents");
		err_hint(err, "set CLOCHE_STATE_DIR to a directory of your own");
		return fd;
	}
	*ret = fd;
	return 1;
}

/* Returns 1 with a well-formed record, or 0 if there is none. */
static int read_record(int fd, const char *name, json_t **ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(RECORD_MAX);
	struct cloche_err why = CLOCHE_ERR_INIT;
	_cleanup_json_ json_t *record = NULL;

	if (fd_read_file(fd, name, &text, &why) < 0)
		return why.sys_errno == ENOENT
			       ? 0
			       : err_set(err, why.code, "consents: %s", why.message);
	if (json_text_read(buf_str(&text), 0, &record, NULL) < 0 ||
		!json_is_string(json_object_get(record, "directory")) ||
		!json_is_string(json_object_get(record, "sha256")) ||
		!json_is_string(json_object_get(record, "since")) ||
		!json_is_array(json_object_get(record, "asks")))
		return 0;
	*ret = TAKE_PTR(record);
	return 1;
}

int consent_load(const char *dir, json_t **ret, struct cloche_err *err)
{
	_cleanup_fd_ int fd = -1;
	char name[CONSENT_NAME_MAX];
	int r = consent_open(false, &fd, err);

	if (r <= 0)
		return r;
	consent_name(dir, ".json", name);
	return read_record(fd, name, ret, err);
}

int consent_save(const char *dir, const char *hash, char *const *asks, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(RECORD_MAX);
	_cleanup_json_ json_t *record = NULL;
	_cleanup_fd_ int fd = -1;
	char since[CLOCK_ISO_MAX], name[CONSENT_NAME_MAX];
	int r;

	clock_format_utc(clock_real_usec(), since);
	record = json_pack("{s:o, s:s, s:s, s:o}", "directory", json_text(dir), "sha256", hash,
		"since", since, "asks", json_texts(asks));
	if (!record || json_text_write(&text, record, 1) < 0)
		return err_nomem(err);
	r = consent_open(true, &fd, err);
	if (r < 0)
		return r;
	consent_name(dir, ".json", name);
	return fs_write_atomic(fd, name, buf_str(&text), 0600, true, err);
}

int consent_remove(const char *dir, struct cloche_err *err)
{
	return consent_unlink(dir, ".json", err);
}

int consent_unlink(const char *dir, const char *end, struct cloche_err *err)
{
	_cleanup_fd_ int fd = -1;
	char name[CONSENT_NAME_MAX];
	int r = consent_open(false, &fd, err);

	if (r <= 0)
		return r;
	consent_name(dir, end, name);
	if (unlinkat(fd, name, 0) == 0)
		return 1;
	return errno == ENOENT ? 0 : err_sys(err, errno, "forget the consent for %s", dir);
}

static int compare_records(const void *a, const void *b)
{
	return strcmp(json_string_value(json_object_get(*(json_t *const *)a, "directory")),
		json_string_value(json_object_get(*(json_t *const *)b, "directory")));
}

static int consents_gather(int fd, DIR *dir, json_t ***ret, size_t *ret_n, struct cloche_err *err)
{
	struct dirent *e;

	while ((e = readdir(dir))) {
		json_t **grown, *record = NULL;
		size_t n = strlen(e->d_name);
		int r;

		if (n < 6 || strcmp(e->d_name + n - 5, ".json") != 0)
			continue;
		r = read_record(fd, e->d_name, &record, err);
		if (r < 0)
			return r;
		if (r == 0)
			continue;
		grown = reallocarray(*ret, *ret_n + 1, sizeof(*grown));
		if (!grown) {
			json_decref(record);
			return err_nomem(err);
		}
		*ret = grown;
		grown[(*ret_n)++] = record;
	}
	return 0;
}

int consent_each(void (*fn)(const json_t *record, void *user), void *user, struct cloche_err *err)
{
	json_t **records = NULL;
	size_t n = 0;
	DIR *dir;
	int fd = -1, r = consent_open(false, &fd, err);

	if (r <= 0)
		return r;
	dir = fdopendir(fd);
	if (!dir) {
		r = err_sys(err, errno, "list consents");
		fd_close(fd);
		return r;
	}
	r = consents_gather(fd, dir, &records, &n, err);
	if (n > 0)
		qsort(records, n, sizeof(*records), compare_records);
	for (size_t i = 0; i < n; i++) {
		if (r == 0)
			fn(records[i], user);
		json_decref(records[i]);
	}
	free(records);
	closedir(dir);
	return r;
}
