/* SPDX-License-Identifier: Apache-2.0 */
#include "record/blobs.h"
#include "base/fd.h"
#include "base/rand.h"
#include "fs/fs.h"
#include "job/job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMPORARY "new-"
enum { CHUNK = 64 << 10 };

/* A hollow file costs its maker nothing, and whoever hashes it as long as its maker likes. */
enum { HOLLOW_MIN = 1 << 30, HOLLOW_PART = 64 };

int blob_begin(struct blob_writer *w, int dir, struct cloche_err *err)
{
	*w = BLOB_WRITER_INIT;
	w->dir = dir;
	snprintf(w->name, sizeof(w->name), TEMPORARY "%016llx", (unsigned long long)rand_u64());
	sha256_init(&w->digest);
	w->fd = openat(dir, w->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return w->fd < 0 ? err_sys(err, errno, "create blobs/%s", w->name) : 0;
}

int blob_add(struct blob_writer *w, struct str data, struct cloche_err *err)
{
	int r = fd_write_all(w->fd, data.p, data.n);

	if (r == -ENOSPC || r == -EDQUOT)
		return err_set(err, E_NO_SPACE, "write blobs/%s: %s", w->name, err_errno_text(-r));
	if (r < 0)
		return err_sys(err, -r, "write blobs/%s", w->name);
	sha256_add(&w->digest, data);
	w->size += data.n;
	return 0;
}

int blob_finish(
	struct blob_writer *w, bool durable, char ret[STATE_REF_BYTES + 1], struct cloche_err *err)
{
	char hex[SHA256_HEX_MAX];

	sha256_hex(&w->digest, hex);
	snprintf(ret, STATE_REF_BYTES + 1, "sha256-%s", hex);
	if (durable && fsync(w->fd) < 0)
		return err_sys(err, errno, "sync blobs/%s", w->name);
	if (renameat(w->dir, w->name, w->dir, ret) < 0)
		return err_sys(err, errno, "rename blobs/%s", w->name);
	if (durable && fsync(w->dir) < 0)
		return err_sys(err, errno, "sync the directory of blobs");
	w->fd = fd_close(w->fd);
	return 0;
}

void blob_done(struct blob_writer *w)
{
	if (w->fd >= 0)
		(void)unlinkat(w->dir, w->name, 0);
	fd_close(w->fd);
	*w = BLOB_WRITER_INIT;
}

int blob_open(int dir, struct str ref, struct cloche_err *err)
{
	char name[STATE_REF_BYTES + 1];
	_cleanup_fd_ int fd = -1;
	struct stat st;

	if (!state_is_ref(ref))
		return err_set(err, E_USAGE, "a reference is \"sha256-\" and 64 digits");
	snprintf(name, sizeof(name), "%.*s", STR_FMT(ref));
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 && errno == ENOENT)
		return err_set(err, E_NOT_FOUND, "there is no blob %s", name);
	if (fd < 0)
		return err_sys(err, errno, "open blobs/%s", name);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, E_CORRUPT, "blobs/%s is no regular file", name);
	return TAKE_FD(fd);
}

int blob_check(int fd, struct str ref, struct cloche_err *err)
{
	_cleanup_(freep) char *chunk = malloc(CHUNK);
	char hex[SHA256_HEX_MAX];
	struct sha256 h;
	struct stat st;
	off_t at = 0;

	if (!chunk)
		return err_nomem(err);
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "stat %.*s", STR_FMT(ref));
	if (st.st_size > HOLLOW_MIN && st.st_blocks < st.st_size / 512 / HOLLOW_PART)
		return err_set(err, E_LIMIT,
			"%.*s is %llu bytes long, and nearly nothing of it is stored", STR_FMT(ref),
			(unsigned long long)st.st_size);
	sha256_init(&h);
	for (;;) {
		ssize_t n = pread(fd, chunk, CHUNK, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, errno, "read %.*s", STR_FMT(ref));
		if (n == 0)
			break;
		sha256_add(&h, str_make(chunk, (size_t)n));
		at += n;
	}
	sha256_hex(&h, hex);
	if (!str_eq(str_from_index(ref, 7), str_from(hex)))
		return err_set(err, E_CORRUPT, "%.*s holds something else than its name says",
			STR_FMT(ref));
	return 0;
}

int blobs_lock(int dir, bool exclusive, struct cloche_err *err)
{
	/* A lock belongs to the open file, so use a new descriptor for each. */
	_cleanup_fd_ int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return err_sys(err, errno, "open the directory of blobs");
	r = job_lock(fd, exclusive ? LOCK_EX : LOCK_SH);
	return r < 0 ? err_sys(err, -r, "lock the directory of blobs") : TAKE_FD(fd);
}

int blobs_collect(
	int dir, blob_used_fn is_used, void *user, uint64_t *ret_bytes, struct cloche_err *err)
{
	_cleanup_(fs_list_closep) DIR *d = fs_list(dir, ".");
	const struct dirent *e;
	int n = 0;

	*ret_bytes = 0;
	if (!d)
		return err_sys(err, errno, "list the blobs");
	while ((e = fs_list_next(d))) {
		struct str name = str_from(e->d_name);
		struct stat st;

		if (!str_starts(name, STR(TEMPORARY)) && !state_is_ref(name))
			continue;
		if (state_is_ref(name) && is_used(name, user))
			continue;
		if (fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			unlinkat(dir, e->d_name, 0) < 0)
			continue;
		*ret_bytes += (uint64_t)st.st_size;
		n++;
	}
	return n;
}
