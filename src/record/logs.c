/* SPDX-License-Identifier: Apache-2.0 */
#include "record/logs.h"
#include "base/fd.h"
#include "base/strset.h"
#include "fs/fs.h"
#include "ipc/statedir.h"
#include "job/job.h"
#include "record/background.h"
#include "record/blobs.h"
#include "record/cassette.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int oplogs_open_kept(const char *name, struct cloche_err *err)
{
	return statedir_open(name, NULL, err);
}

int oplogs_open(struct cloche_err *err)
{
	return oplogs_open_kept(STATEDIR_LOGS, err);
}

int oplogs_open_blobs(struct cloche_err *err)
{
	return oplogs_open_kept(STATEDIR_BLOBS, err);
}

int oplogs_open_both(int *ret_logs, int *ret_blobs, struct cloche_err *err)
{
	*ret_logs = oplogs_open(err);
	if (*ret_logs < 0)
		return *ret_logs;
	*ret_blobs = oplogs_open_blobs(err);
	return MIN(*ret_blobs, 0);
}

bool oplog_is_snapshot_name(struct str name)
{
	return name.n > 0 && name.n <= OPLOG_SNAPSHOT_MAX &&
	       str_is_all(name, STR_LOWER STR_UPPER STR_DIGITS "-_.");
}

bool oplog_is_name(struct str name)
{
	struct str rest = str_from_index(name, RUNDIR_ID_BYTES);

	return rundir_is_id(str_prefix(name, RUNDIR_ID_BYTES)) &&
	       (rest.n == 0 ||
		       (rest.p[0] == '@' && oplog_is_snapshot_name(str_from_index(rest, 1))));
}

int oplogs_each(int logs, oplogs_fn fn, void *user, struct cloche_err *err)
{
	_cleanup_(fs_list_closep) DIR *d = fs_list(logs, ".");
	const struct dirent *e;
	int r = 0;

	if (!d)
		return err_sys(err, errno, "list the logs");
	while (r == 0 && (e = fs_list_next(d))) {
		struct str name = str_from(e->d_name);
		char id[OPLOG_NAME_MAX + 1];

		if (!str_ends(name, STR(OPLOG_SUFFIX)))
			continue;
		name.n -= sizeof(OPLOG_SUFFIX) - 1;
		if (!oplog_is_name(name))
			continue;
		snprintf(id, sizeof(id), "%.*s", STR_FMT(name));
		r = fn(logs, id, user, err);
	}
	return r < 0 ? r : 0;
}

/* --- the requests beside them --- */

int oplog_open_cassette(int dir, const char *name)
{
	const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	_cleanup_(freep) char *path = NULL;
	_cleanup_fd_ int fd = -1;
	const char *slash = strrchr(name, '/'), *dot = strrchr(name, '.');
	size_t n = dot && (!slash || dot > slash) ? (size_t)(dot - name) : strlen(name);
	struct stat st;

	if (asprintf(&path, "%.*s" CASSETTE_SUFFIX, (int)n, name) < 0) {
		path = NULL;
		return -1;
	}
	fd = openat(dir, path, flags | (dir == AT_FDCWD ? 0 : O_NOFOLLOW));
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? TAKE_FD(fd) : -1;
}

int oplog_create_cassette(const char *id, struct cloche_err *err)
{
	_cleanup_fd_ int logs = oplogs_open(err);
	char file[OPLOG_NAME_MAX + sizeof(CASSETTE_SUFFIX)];
	int fd;

	if (logs < 0)
		return logs;
	snprintf(file, sizeof(file), "%s" CASSETTE_SUFFIX, id);
	fd = fd_lift(openat(
		logs, file, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
	return fd < 0 ? err_sys(err, errno, "create %s", file) : fd;
}

int oplog_remove_cassette(int logs, const char *id, struct cloche_err *err)
{
	char file[OPLOG_NAME_MAX + sizeof(CASSETTE_SUFFIX)];

	snprintf(file, sizeof(file), "%s" CASSETTE_SUFFIX, id);
	if (unlinkat(logs, file, 0) < 0 && errno != ENOENT)
		return err_sys(err, errno, "remove %s", file);
	return 0;
}

/* --- contents that logs name --- */

static int keep_ref(const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	struct str ref;
	int r = 0;

	for (unsigned i = 0; r == 0 && state_op_ref(op, i, &ref); i++)
		r = strset_add(user, ref);
	return r < 0 ? err_nomem(err) : 0;
}

static bool is_kept(struct str ref, void *user)
{
	return strset_has(user, ref);
}

static int keep_refs_of(int logs, const char *id, void *user, struct cloche_err *err)
{
	_cleanup_(oplog_closep) struct oplog l = OPLOG_INIT;
	int r = oplog_open(&l, logs, id, false, err);

	return r < 0 ? r : oplog_read(&l, keep_ref, user, NULL, err);
}

int oplogs_collect(
	int logs, int blobs, uint64_t *ret_removed, uint64_t *ret_bytes, struct cloche_err *err)
{
	_cleanup_fd_ int lock = blobs_lock(blobs, true, err);
	_cleanup_(strset_done) struct strset refs = {0};
	int r;

	if (lock < 0)
		return lock;
	r = oplogs_each(logs, keep_refs_of, &refs, err);
	if (r == 0)
		r = blobs_collect(blobs, is_kept, &refs, ret_bytes, err);
	if (r < 0)
		return r;
	*ret_removed = (uint64_t)r;
	return 0;
}

int oplog_remove(int logs, const char *name, struct cloche_err *err)
{
	static const char *const suffixes[] = {
		CASSETTE_SUFFIX, OPLOG_SUFFIX ".new", OPLOG_SUFFIX, OPLOG_SUFFIX OPLOG_LOCK_SUFFIX};
	_cleanup_(oplog_closep) struct oplog l = OPLOG_INIT;
	_cleanup_fd_ int lock = -1;
	char file[OPLOG_NAME_MAX + 32];
	int r = oplog_open(&l, logs, name, true, err);

	if (r < 0)
		return r;
	lock = oplog_lock_compaction(&l, true, err);
	if (lock < 0)
		return lock;
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		snprintf(file, sizeof(file), "%s%s", name, suffixes[i]);
		if (unlinkat(logs, file, 0) < 0 && errno != ENOENT)
			return err_sys(err, errno, "remove %s", file);
	}
	return 0;
}

static bool has_log(int logs, const char *id)
{
	static const char *const suffixes[] = {OPLOG_SUFFIX, CASSETTE_SUFFIX};
	char file[OPLOG_NAME_MAX + 32];
	bool has = false;

	for (size_t i = 0; i < ARRAY_SIZE(suffixes) && !has; i++) {
		snprintf(file, sizeof(file), "%s%s", id, suffixes[i]);
		has = faccessat(logs, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	}
	return has;
}

void oplogs_forget(const char *id)
{
	_cleanup_(freep) char *path = NULL;
	_cleanup_fd_ int logs = -1, blobs = -1;
	uint64_t removed, bytes;

	/* Do not make the directory of logs for this. */
	if (statedir_path(STATEDIR_LOGS, &path, NULL) < 0 || access(path, F_OK) < 0 ||
		oplogs_open_both(&logs, &blobs, NULL) < 0 || !has_log(logs, id))
		return;
	/* Nobody else writes to it any more, so a cancelled job does not wait long either. */
	job_hold_cancel();
	if (oplog_remove(logs, id, NULL) == 0)
		(void)!oplogs_collect(logs, blobs, &removed, &bytes, NULL);
	job_release_cancel();
}
