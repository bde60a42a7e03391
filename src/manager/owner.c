/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a file that can be locked has a dead owner, and any process that finds one
 * may remove it, as names are never used again. The promises of all owners are added up and changed
 * under a lock on their directory. Sandboxes that run on without their owner are looked for after
 * that: one whose owner dies meanwhile counts twice, and not never. */
#include "manager/owner.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/strv.h"
#include "fs/fs.h"
#include "job/job.h"
#include "manager/sandboxes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define OWNERS ".owners"

enum { DIGITS = 20, MAX_RECORD = 1024 * 1024 };

static int open_owners(int base)
{
	return openat(base, OWNERS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void make_id(char ret[OWNER_ID_BYTES + 1])
{
	char id[RUNDIR_ID_BYTES + 1];

	rundir_make_id(id);
	memcpy(ret, id + RUNDIR_ID_BYTES - OWNER_ID_BYTES, OWNER_ID_BYTES + 1);
}

/* Make a locked file under a new name; return -errno on failure. A process that sees the
 * file before it is locked takes its owner for dead and removes it; then try again. */
static int make_file(int dir, char id[OWNER_ID_BYTES + 1])
{
	for (;;) {
		_cleanup_fd_ int fd = -1;
		struct stat st;
		int r;

		make_id(id);
		fd = fd_lift(
			openat(dir, id, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
		if (fd < 0)
			return -errno;
		r = job_lock(fd, LOCK_EX);
		if (r < 0)
			return r;
		if (fstat(fd, &st) < 0)
			return -errno;
		if (st.st_nlink > 0)
			return TAKE_FD(fd);
	}
}

int owner_make(int base, struct owner *ret, struct cloche_err *err)
{
	_cleanup_fd_ int dir = -1;
	int r;

	if (mkdirat(base, OWNERS, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "make the directory of managers");
	dir = open_owners(base);
	r = dir < 0 ? -errno : make_file(dir, ret->id);
	if (r < 0)
		return err_sys(err, -r, "make a manager's file");
	ret->fd = r;
	return 0;
}

void owner_done(int base, struct owner *o)
{
	_cleanup_fd_ int dir = o->fd >= 0 ? open_owners(base) : -1;

	if (dir >= 0)
		unlinkat(dir, o->id, 0);
	o->fd = fd_close(o->fd);
}

/* Return a descriptor of the locked file of a live owner. If the owner is dead, remove the file and
 * return -1. */
static int open_live(int dir, const char *id)
{
	_cleanup_fd_ int fd = openat(dir, id, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -1;
	if (flock(fd, LOCK_SH | LOCK_NB) < 0)
		return TAKE_FD(fd);
	unlinkat(dir, id, 0);
	return -1;
}

static bool is_id(const char *id)
{
	return strlen(id) == OWNER_ID_BYTES &&
	       strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789") == OWNER_ID_BYTES;
}

bool owner_is_live(int base, const char *id)
{
	_cleanup_fd_ int dir = open_owners(base), fd = -1;

	if (!is_id(id) || (dir < 0 && errno == ENOENT))
		return false;
	if (dir < 0)
		return true;
	fd = open_live(dir, id);
	return fd >= 0;
}

static uint64_t read_promise(int fd)
{
	char text[DIGITS + 1] = "";

	return pread(fd, text, DIGITS, 0) > 0 ? strtoull(text, NULL, 10) : 0;
}

static uint64_t add(uint64_t sum, uint64_t n)
{
	return sum + n < sum ? UINT64_MAX : sum + n;
}

/* Add up the promises of all live owners except o. Return 0 or -errno. */
static int add_up(int dir, const struct owner *o, uint64_t *ret)
{
	_cleanup_(fs_list_closep) DIR *list = fs_list(dir, ".");
	const struct dirent *e;
	uint64_t sum = 0;

	if (!list)
		return -errno;
	while ((e = fs_list_next(list))) {
		_cleanup_fd_ int fd = -1;
		uint64_t promise;

		if (!is_id(e->d_name) || strcmp(e->d_name, o->id) == 0)
			continue;
		fd = open_live(dir, e->d_name);
		promise = fd >= 0 ? read_promise(fd) : 0;
		sum = add(sum, promise);
	}
	*ret = sum;
	return 0;
}

/* Return the memory limit of a live sandbox if its owner is dead, else 0. */
static uint64_t orphan_limit(int base, const char *id)
{
	_cleanup_(sandbox_entry_donep) struct sandbox_entry e = SANDBOX_ENTRY_INIT;
	_cleanup_(buf_donep) struct buf text = BUF_INIT(MAX_RECORD);
	_cleanup_json_ json_t *record = NULL;
	const char *owner;

	if (sandbox_open(base, id, &e, NULL) < 0 || e.life != SANDBOX_LIVE ||
		sandbox_read_record(&e, &text, NULL) < 0 ||
		json_text_read(buf_str(&text), 0, &record, NULL) < 0)
		return 0;
	owner = json_string_value(json_object_get(json_object_get(record, "labels"), OWNER_LABEL));
	return owner && !owner_is_live(base, owner)
		       ? json_count_at(json_object_get(json_object_get(record, "config"), "limits"),
				 "memory_bytes")
		       : 0;
}

int owner_each_orphan(int base, owner_orphan_fn fn, void *user, struct cloche_err *err)
{
	_cleanup_(strv_freep) char **ids = NULL;
	int r = sandboxes_list(base, &ids, err);

	for (size_t i = 0; ids && ids[i]; i++) {
		uint64_t limit = orphan_limit(base, ids[i]);

		if (limit > 0)
			fn(ids[i], limit, user);
	}
	return r;
}

static void add_orphan(const char *id, uint64_t limit, void *user)
{
	uint64_t *sum = user;

	*sum = add(*sum, limit);
}

int owner_lock(int base, struct cloche_err *err)
{
	_cleanup_fd_ int dir = open_owners(base);
	int r = dir < 0 ? -errno : job_lock(dir, LOCK_EX);

	return r < 0 ? err_sys(err, -r, "lock the directory of managers") : TAKE_FD(dir);
}

int owner_promise(int base, int promises, struct owner *o, uint64_t bytes, uint64_t most,
	uint64_t *ret_others, struct cloche_err *err)
{
	uint64_t others = 0, before = read_promise(o->fd);
	char text[DIGITS + 1];
	int r = add_up(promises, o, &others);

	if (r < 0)
		return err_sys(err, -r, "list managers");
	r = bytes > before ? owner_each_orphan(base, add_orphan, &others, err) : 0;
	if (r < 0)
		return r;
	*ret_others = others;
	if (bytes > before && (others > most || bytes > most - others))
		return err_set(err, E_BUSY, "more memory is promised than there is");
	/* Whoever watches is told of a change, and only then. */
	if (bytes == before)
		return 0;
	snprintf(text, sizeof(text), "%0*" PRIu64, DIGITS, bytes);
	if (pwrite(o->fd, text, DIGITS, 0) != DIGITS)
		return err_sys(err, errno, "write a manager's file");
	return 0;
}

int owner_watch(int base, struct cloche_err *err)
{
	_cleanup_fd_ int dir = open_owners(base);
	int fd = dir < 0 ? -errno : fs_notify(dir, IN_MODIFY | IN_DELETE | IN_CLOSE_WRITE);

	return fd < 0 ? err_sys(err, -fd, "watch the directory of managers") : fd;
}

/* Only its owner can write to the file, so it has just closed it. The kernel tells that before it
 * unlocks the file: wait that moment. */
static void await_unlock(int dir, const char *id)
{
	_cleanup_fd_ int fd = openat(dir, id, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 && is_id(id))
		(void)!job_lock(fd, LOCK_SH);
}

void owner_watch_take(int base, int watch)
{
	_Alignas(struct inotify_event) char events[4096];
	_cleanup_fd_ int dir = open_owners(base);
	ssize_t n;

	while ((n = read(watch, events, sizeof(events))) > 0)
		for (char *at = events; at < events + n;) {
			const struct inotify_event *e = (void *)at;

			if (dir >= 0 && e->mask & IN_CLOSE_WRITE && e->len)
				await_unlock(dir, e->name);
			at += sizeof(*e) + e->len;
		}
}
