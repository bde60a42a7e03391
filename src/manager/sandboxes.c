/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: see own.c for the meaning of a lock. A process that only looks takes it
 * shared and releases it at once; a process that removes takes it exclusively and keeps it. An
 * orderly end is recognised by the record's first bytes, which the supervisor wrote last. Files of
 * other users in the directory (if it is shared with root) are left alone. */
#include "manager/sandboxes.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/program.h"
#include "base/strv.h"
#include "fs/fs.h"
#include "job/job.h"
#include "manager/cleanup.h"
#include "manager/internal.h"
#include "manager/looks.h"
#include "manager/own.h"
#include "provider/provider.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_RECORD = 1024 * 1024, MAX_OWNED = 64 * 1024, MAX_CANDIDATES = 8 };
enum {
	PATIENCE_LOOKERS_MS = 100, /* for processes that only look */
	PATIENCE_END_MS = 3000     /* for a supervisor that is ending */
};

/* Return whether the errno of a call that failed tells of this process and not of the file: who
 * takes that for the file's absence removes what is in use. */
static bool is_shortage(int errnum)
{
	return errnum == EMFILE || errnum == ENFILE || errnum == ENOMEM;
}

void sandbox_entry_done(struct sandbox_entry *e)
{
	e->dir = fd_close(e->dir);
}

void manager_remove_dir(int base, int dir, const char *name)
{
	_cleanup_(fs_list_closep) DIR *list = fs_list(dir, ".");
	struct dirent *e;

	while (list && (e = fs_list_next(list)))
		if (strcmp(e->d_name, RUNDIR_LOCK) != 0)
			fs_remove_tree(dir, e->d_name);
	fs_remove_tree(base, name);
}

/* The file `owned` is trusted because only we can write to its directory. It is written before
 * anything is made that could outlive its maker, so if it is missing, nothing is left. A power cut
 * may have emptied it: then nothing can be named, and processes have not outlived that. */
int manager_reap(int dir, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(MAX_OWNED);
	struct cloche_err own = CLOCHE_ERR_INIT;
	const struct provider *p;
	struct str text;
	size_t n;
	int r;

	r = fd_read_file(dir, RUNDIR_OWNED, &b, &own);
	if (r < 0 && is_shortage(own.sys_errno)) {
		err_set(err, own.code, "%s", own.message);
		return r;
	}
	if (r < 0)
		return 0;
	text = buf_str(&b);
	n = str_chr(text, '\n');
	if (n == text.n)
		return 0;
	p = provider_find(str_prefix(text, n), err);
	r = p ? p->reap(p, str_from_index(text, n + 1), err) : -E_NOT_FOUND;
	if (r == 0)
		unlinkat(dir, RUNDIR_OWNED, 0);
	return r;
}

void manager_tidy(int dir)
{
	unlinkat(dir, RUNDIR_SOCKET, 0);
	unlinkat(dir, RUNDIR_WORD, 0);
	unlinkat(dir, RUNDIR_MADE, 0);
}

/* Return 1 or 0, or -errno if that could not be seen. */
static int has_ended_in_order(int dir)
{
	_cleanup_fd_ int fd =
		openat(dir, RUNDIR_RECORD, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[sizeof(RECORD_ENDED) - 1];

	if (fd < 0 && is_shortage(errno))
		return -errno;
	return fd >= 0 && read(fd, text, sizeof(text)) == (ssize_t)sizeof(text) &&
	       memcmp(text, RECORD_ENDED, sizeof(text)) == 0;
}

/* Open a directory that is ours. Return -ENOENT if there is none, or another -errno if that could
 * not be seen. */
static int open_dir(int base, const char *name)
{
	_cleanup_fd_ int fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 && is_shortage(errno))
		return -errno;
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid())
		return -ENOENT;
	return TAKE_FD(fd);
}

static int sandbox_open_failed(const char *id, int errnum, struct cloche_err *err)
{
	if (errnum == ENOENT)
		return err_set(err, E_NOT_FOUND, "there is no sandbox \"%.100s\"", id);
	return err_sys(err, errnum, "open sandbox %.100s", id);
}

/* Return the lock's descriptor if it could be taken this way; else -1 with errno: EWOULDBLOCK if
 * another process holds it. */
static int open_locked(int dir, const char *path, int how)
{
	_cleanup_fd_ int lock = openat(dir, path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (lock < 0 || flock(lock, how | LOCK_NB) < 0)
		return -1;
	return TAKE_FD(lock);
}

static int try_lock(int dir, int how)
{
	return open_locked(dir, RUNDIR_LOCK, how);
}

int sandbox_open(int base, const char *id, struct sandbox_entry *ret, struct cloche_err *err)
{
	_cleanup_fd_ int dir = -1, lock = -1;
	int r;

	*ret = SANDBOX_ENTRY_INIT;
	dir = rundir_is_id(str_from(id)) ? open_dir(base, id) : -ENOENT;
	if (dir < 0)
		return sandbox_open_failed(id, -dir, err);
	lock = try_lock(dir, LOCK_SH);
	if (lock < 0 && is_shortage(errno))
		return sandbox_open_failed(id, errno, err);
	if (lock < 0 && errno == EWOULDBLOCK) {
		ret->life = SANDBOX_LIVE;
	} else {
		r = has_ended_in_order(dir);
		if (r < 0)
			return sandbox_open_failed(id, -r, err);
		ret->life = r > 0 ? SANDBOX_ENDED : SANDBOX_CRASHED;
	}
	memcpy(ret->id, id, RUNDIR_ID_BYTES + 1);
	ret->dir = TAKE_FD(dir);
	return 0;
}

static int compare_ids(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Add the names in the directory for which wanted() is true. Return 0 or -errno. */
static int list_names(int base, bool (*wanted)(struct str name), char ***ret)
{
	_cleanup_(fs_list_closep) DIR *dir = fs_list(base, ".");
	struct dirent *e;
	int r = 0;

	if (!dir)
		return -errno;
	while (r == 0 && (e = fs_list_next(dir)))
		if (wanted(str_from(e->d_name)))
			r = strv_add(ret, str_from(e->d_name));
	return r;
}

int sandboxes_list(int base, char ***ret, struct cloche_err *err)
{
	_cleanup_(strv_freep) char **ids = NULL;
	int r = list_names(base, rundir_is_id, &ids);

	if (r < 0)
		return err_sys(err, -r, "list the sandboxes");
	if (ids)
		qsort(ids, strv_count(ids), sizeof(*ids), compare_ids);
	*ret = TAKE_PTR(ids);
	return 0;
}

bool sandbox_id_begins(const char *id, const char *text)
{
	struct str s = str_from(id), rest = str_from_index(s, sizeof("sandbox-") - 1);
	struct str t = str_from(text);

	return str_starts(rest, t) || (t.n > s.n - rest.n && str_starts(s, t));
}

static int find_beginning(
	int base, const char *text, char ret_id[RUNDIR_ID_BYTES + 1], struct cloche_err *err)
{
	_cleanup_(strv_freep) char **ids = NULL;
	_cleanup_(buf_donep) struct buf found = BUF_INIT(4096);
	int r = sandboxes_list(base, &ids, err), n = 0;

	if (r < 0)
		return r;
	for (size_t i = 0; ids && ids[i]; i++) {
		if (!sandbox_id_begins(ids[i], text))
			continue;
		memcpy(ret_id, ids[i], RUNDIR_ID_BYTES + 1);
		if (n++ < MAX_CANDIDATES &&
			buf_printf(&found, "%s%s", n > 1 ? ", " : "", ids[i]) < 0)
			return err_nomem(err);
	}
	if (n == 0)
		return err_set(err, E_NOT_FOUND, "there is no sandbox \"%.100s\"", text);
	if (n > 1)
		return err_set(err, E_USAGE, "\"%.100s\" fits %d sandboxes: %.*s%s", text, n,
			STR_FMT(buf_str(&found)), n > MAX_CANDIDATES ? ", ..." : "");
	return 0;
}

int sandbox_resolve(
	int base, const char *text, char ret_id[RUNDIR_ID_BYTES + 1], struct cloche_err *err)
{
	_cleanup_fd_ int dir = -1;
	char id[RUNDIR_ID_BYTES + 1];

	if (rundir_is_id(str_from(text)))
		memcpy(id, text, sizeof(id));
	else if (!text[0])
		return err_set(err, E_USAGE, "the name of a sandbox is empty");
	else if (names_find(base, text, id) < 0)
		return find_beginning(base, text, ret_id, err);
	dir = open_dir(base, id);
	if (dir < 0)
		return sandbox_open_failed(text, -dir, err);
	memcpy(ret_id, id, sizeof(id));
	return 0;
}

int sandbox_read_record(const struct sandbox_entry *e, struct buf *ret, struct cloche_err *err)
{
	struct stat st;

	if (fstatat(e->dir, RUNDIR_RECORD, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(err, E_NOT_FOUND, "sandbox %s has no record", e->id);
	if (!S_ISREG(st.st_mode) || st.st_size > MAX_RECORD)
		return err_set(err, E_CORRUPT, "the record of sandbox %s is damaged", e->id);
	return fd_read_file(e->dir, RUNDIR_RECORD, ret, err);
}

int sandbox_watch(int base, const char *id)
{
	_cleanup_(sandbox_entry_donep) struct sandbox_entry e = SANDBOX_ENTRY_INIT;
	_cleanup_(buf_donep) struct buf text = BUF_INIT(MAX_RECORD);
	_cleanup_json_ json_t *record = NULL;

	if (sandbox_open(base, id, &e, NULL) < 0 || sandbox_read_record(&e, &text, NULL) < 0 ||
		json_text_read(buf_str(&text), 0, &record, NULL) < 0)
		return -ENOENT;
	return program_open((pid_t)json_integer_value(json_object_get(record, "pid")),
		json_count_at(record, "pid_start"),
		json_string_value(json_object_get(record, "boot_id")));
}

/* Return whether the supervisor has recorded its end, or the sandbox is being removed, as the
 * record is removed early. */
static bool is_going(int dir)
{
	return has_ended_in_order(dir) > 0 ||
	       faccessat(dir, RUNDIR_RECORD, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
}

int sandbox_await_end(int base, const char *id, int watch, int timeout_ms)
{
	_cleanup_fd_ int dir = open_dir(base, id), lock = -1;

	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	lock = openat(dir, RUNDIR_LOCK, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (lock < 0)
		return is_shortage(errno) ? -errno : 0;
	return job_lock_within(lock, LOCK_SH, timeout_ms, watch);
}

/* Wait for processes that only look, and longer for a sandbox that is ending. Return the lock's
 * descriptor or -errno. */
static int lock_alone(int dir)
{
	_cleanup_fd_ int lock = openat(dir, RUNDIR_LOCK, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	int r;

	if (lock < 0)
		return -errno;
	r = job_lock_within(lock, LOCK_EX, PATIENCE_LOOKERS_MS, -1);
	if (r == -EWOULDBLOCK && is_going(dir))
		r = job_lock_within(lock, LOCK_EX, PATIENCE_END_MS, -1);
	return r < 0 ? r : TAKE_FD(lock);
}

/* Return looks_after_crash()'s failure; it is removed in any case. */
static int remove_locked(int base, int dir, const char *id, struct cloche_err *err)
{
	int r = rundir_is_id(str_from(id)) ? looks_after_crash(base, dir, id, err) : 0;

	names_drop(base, id);
	manager_remove_dir(base, dir, id);
	return r;
}

int sandbox_remove(int base, const char *id, struct cloche_err *err)
{
	_cleanup_fd_ int dir = rundir_is_id(str_from(id)) ? open_dir(base, id) : -ENOENT, lock = -1;
	int r, looked;

	if (dir < 0)
		return dir == -ENOENT ? 0 : sandbox_open_failed(id, -dir, err);
	lock = lock_alone(dir);
	if (lock == -EWOULDBLOCK)
		return err_set(err, E_BUSY, "sandbox %s runs", id);
	/* Without a lock file, another process has begun to remove it and did not finish. */
	if (lock < 0 && lock != -ENOENT)
		return err_sys(err, -lock, "lock sandbox %s", id);
	/* The user wants it removed, and is told what could not be. */
	r = manager_reap(dir, err);
	looked = remove_locked(base, dir, id, r < 0 ? NULL : err);
	if (r == 0 && looked == 0 && faccessat(base, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return err_set(
			err, E_SYSTEM, "sandbox %s: not all of its files could be removed", id);
	return r < 0 ? r : looked;
}

/* Return true if it was removed. */
static bool sweep_one(int base, const char *id, struct cloche_err *err)
{
	_cleanup_fd_ int dir = open_dir(base, id), lock = -1;
	struct stat st;
	int r;

	if (dir < 0)
		return false;
	lock = try_lock(dir, LOCK_EX);
	if (lock < 0) {
		/* Remove it only if it is empty: its maker may be about to make the lock file. */
		if (errno == ENOENT)
			unlinkat(base, id, AT_REMOVEDIR);
		return false;
	}
	/* The previous holder may have removed it. */
	if (fstat(lock, &st) < 0 || st.st_nlink == 0)
		return false;
	r = has_ended_in_order(dir);
	if (r < 0)
		return false;
	if (r > 0) {
		(void)!manager_reap(dir, err);
		manager_tidy(dir);
		return false;
	}
	/* What could not be removed stays on record, for the next sweep. */
	if (manager_reap(dir, err) < 0)
		return false;
	(void)!remove_locked(base, dir, id, err);
	return true;
}

static bool is_sweepable(struct str name)
{
	return rundir_is_id(name) || str_starts(name, STR(MANAGER_NEW));
}

void sandboxes_sweep(int base, void (*removed)(void *user, const char *id), void *user)
{
	_cleanup_(strv_freep) char **names = NULL;
	struct cloche_err failed = CLOCHE_ERR_INIT;
	bool any = false;

	if (list_names(base, is_sweepable, &names) < 0)
		return;
	for (size_t i = 0; names && names[i]; i++) {
		struct cloche_err err = CLOCHE_ERR_INIT;
		bool gone = sweep_one(base, names[i], &err);

		if (err.code)
			err_set(&failed, err.code, "%s: %s", names[i], err.message);
		any |= gone;
		if (gone && removed && rundir_is_id(str_from(names[i])))
			removed(user, names[i]);
	}
	names_drop(base, NULL);
	if (any || failed.code)
		cleanup_note(base, failed.code ? failed.message : NULL);
}

static void look_one(int base, const char *id, sandboxes_failed_fn failed, void *user)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	_cleanup_fd_ int dir = -1, lock = -1;
	char path[RUNDIR_ID_BYTES + sizeof("/" RUNDIR_LOOK) + sizeof("/" RUNDIR_LOCK)];

	/* Every command makes this call for each sandbox, so what decides comes first: whether
	 * there is a plan, and whether it is a supervisor's. */
	snprintf(path, sizeof(path), "%s/" RUNDIR_LOOK, id);
	if (faccessat(base, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	snprintf(path, sizeof(path), "%s/" RUNDIR_LOCK, id);
	lock = open_locked(base, path, LOCK_EX);
	dir = lock < 0 ? -1 : open_dir(base, id);
	if (dir >= 0 && has_ended_in_order(dir) == 0 && looks_after_crash(base, dir, id, &err) < 0)
		failed(user, id, err.message);
}

void sandboxes_look(int base, sandboxes_failed_fn failed, void *user)
{
	_cleanup_(fs_list_closep) DIR *dir = fs_list(base, ".");
	const struct dirent *e;

	while (dir && (e = fs_list_next(dir)))
		if (rundir_is_id(str_from(e->d_name)))
			look_one(base, e->d_name, failed, user);
}
