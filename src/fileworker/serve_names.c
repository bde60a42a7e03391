/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on names: what there is, and changes to it. */
#include "base/fd.h"
#include "files/mode.h"
#include "fileworker/serve_internal.h"
#include "fs/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

enum { ENTRIES_BYTES = 48 * 1024 };

static int find(struct server *s, struct str path, unsigned flags, struct beneath *ret)
{
	return beneath_find(s->root, s->base, path, flags, ret);
}

/* To remove or rename a link itself, ignore slashes at the end, which would lead to its target. */
static int find_itself(struct server *s, struct str path, struct beneath *ret)
{
	while (path.n > 1 && path.p[path.n - 1] == '/')
		path.n--;
	return find(s, path, 0, ret);
}

static int stat_at(const struct beneath *at, struct stat *ret)
{
	int r = at->name[0] ? fstatat(at->dir, at->name, ret, AT_SYMLINK_NOFOLLOW)
			    : fstat(at->dir, ret);

	return r < 0 ? -errno : 0;
}

int serve_stat(struct server *s, const struct files_request *q, struct files_error *e)
{
	_cleanup_(beneath_donep) struct beneath at = BENEATH_NULL;
	struct files_stat m;
	struct stat st;
	int r = find(s, q->path, q->flags & FILES_FOLLOW ? BENEATH_FOLLOW : 0, &at);

	if (r == 0)
		r = stat_at(&at, &st);
	if (r < 0)
		return r;
	files_stat_from(&m, &st);
	r = files_send_stat(&s->c, &m);
	return r < 0 ? server_break(s, r) : 0;
}

int serve_readlink(struct server *s, const struct files_request *q, struct files_error *e)
{
	_cleanup_(beneath_donep) struct beneath at = BENEATH_NULL;
	char target[FILES_MAX_TARGET];
	ssize_t n;
	int r = find(s, q->path, 0, &at);

	if (r < 0)
		return r;
	n = readlinkat(at.dir, at.name[0] ? at.name : ".", target, sizeof(target));
	if (n < 0 && errno == EINVAL)
		return files_fail(e, EINVAL, STR_NULL, "it is not a symbolic link");
	if (n < 0)
		return -errno;
	r = files_send_target(&s->c, &(struct files_target){.target = str_make(target, (size_t)n)});
	return r < 0 ? server_break(s, r) : 0;
}

static int put_entry(struct frame_out *f, int dir, const char *name)
{
	struct files_entry m = {.name = str_from(name)};
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno; /* vanished meanwhile */
	files_stat_from(&m.stat, &st);
	message_put(&f->w, files_entry_message(), &m);
	return 0;
}

/* Send a frame of entries. Return 1 if there may be more, 0 if that was all, or -errno. */
static int list_some(struct server *s, DIR *dir)
{
	struct frame_out f = frame_begin(&s->c, FILES_ENTRIES);
	struct dirent *d;
	int r = 0;

	while (r == 0 && f.w.b && buf_len(f.w.b) - f.mark < ENTRIES_BYTES) {
		d = fs_list_next(dir);
		if (d)
			r = put_entry(&f, dirfd(dir), d->d_name);
		else
			r = errno ? -errno : 1;
	}
	if (f.w.b && buf_len(f.w.b) - f.mark == CHAN_HEADER) {
		chan_abort(&s->c, f.mark);
		return r < 0 ? r : !r;
	}
	if (frame_end(&f, NULL, 0) < 0)
		return server_break(s, -ENOBUFS);
	return r < 0 ? r : !r;
}

int serve_list(struct server *s, const struct files_request *q, struct files_error *e)
{
	int fd = beneath_open(s->root, s->base, q->path, O_RDONLY | O_DIRECTORY);
	DIR *dir;
	int r;

	if (fd < 0)
		return fd;
	dir = fdopendir(fd);
	if (!dir) {
		r = -errno;
		fd_close(fd);
		return r;
	}
	do {
		int flushed;

		r = list_some(s, dir);
		flushed = s->broken ? -EPIPE : server_flush(s);
		if (flushed == 0 && r == 1)
			flushed = server_check(s);
		if (flushed < 0)
			r = flushed;
	} while (r == 1);
	closedir(dir);
	return r;
}

/* mkdir() takes no set-id bits: they are left out without a word. */
static int set_id_bits(const struct beneath *at, uint32_t mode)
{
	_cleanup_fd_ int fd =
		openat(at->dir, at->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = fd < 0 ? -errno : files_set_mode(fd, mode);

	if (r < 0)
		unlinkat(at->dir, at->name, AT_REMOVEDIR);
	return r;
}

/* An explicit mode is not subject to the umask. */
static int make_directory(const struct beneath *at, uint32_t mode)
{
	mode_t old;
	int r;

	if (mode == FILES_KEEP_MODE)
		return mkdirat(at->dir, at->name, 0777) < 0 ? -errno : 0;
	old = umask(0);
	r = mkdirat(at->dir, at->name, mode) < 0 ? -errno : 0;
	umask(old);
	return r == 0 && mode & (S_ISUID | S_ISGID) ? set_id_bits(at, mode) : r;
}

int serve_mkdir(struct server *s, const struct files_request *q, struct files_error *e)
{
	_cleanup_(beneath_donep) struct beneath at = BENEATH_NULL;
	bool parents = q->flags & FILES_PARENTS;
	struct stat st;
	int r = find(s, q->path, parents ? BENEATH_MAKE | BENEATH_FOLLOW : 0, &at);

	if (r < 0)
		return r;
	if (!at.name[0])
		return parents ? 0 : -EEXIST;
	r = make_directory(&at, q->mode);
	if (r == -EEXIST && parents && stat_at(&at, &st) == 0 && S_ISDIR(st.st_mode))
		r = 0;
	return r;
}

static int beat(void *user)
{
	return server_beat(user);
}

static int remove_tree(struct server *s, const struct beneath *at, struct files_error *e)
{
	_cleanup_(buf_donep) struct buf where = BUF_INIT(SIZE_MAX);
	const struct fs_removal how = {.beat = beat, .user = s, .where = &where};
	int r = fs_remove(at->dir, at->name, &how);

	return r < 0 && r != -ECANCELED && buf_len(&where) > 0
		       ? files_fail(e, -r, buf_str(&where), NULL)
		       : r;
}

int serve_remove(struct server *s, const struct files_request *q, struct files_error *e)
{
	_cleanup_(beneath_donep) struct beneath at = BENEATH_NULL;
	int r = find_itself(s, q->path, &at);

	if (r < 0)
		return r;
	if (!at.name[0])
		return files_fail(e, EINVAL, STR_NULL, "that cannot be removed");
	if (q->flags & FILES_RECURSIVE)
		return remove_tree(s, &at, e);
	if (unlinkat(at.dir, at.name, 0) == 0)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	r = -errno;
	if (unlinkat(at.dir, at.name, AT_REMOVEDIR) == 0)
		return 0;
	return errno == ENOTDIR ? r : -errno;
}

int serve_rename(struct server *s, const struct files_request *q, struct files_error *e)
{
	_cleanup_(beneath_donep) struct beneath from = BENEATH_NULL, to = BENEATH_NULL;
	int r = find_itself(s, q->path, &from);

	if (r == 0)
		r = find_itself(s, q->other, &to);
	if (r < 0)
		return r;
	if (!from.name[0] || !to.name[0])
		return files_fail(e, EINVAL, STR_NULL, "that cannot be renamed");
	if (q->flags & FILES_REPLACE)
		r = renameat(from.dir, from.name, to.dir, to.name);
	else
		r = (int)syscall(
			SYS_renameat2, from.dir, from.name, to.dir, to.name, RENAME_NOREPLACE);
	if (r < 0 && errno == EXDEV)
		return files_fail(e, EXDEV, STR_NULL, "the names are on different file systems");
	return r < 0 ? -errno : 0;
}

int serve_chmod(struct server *s, const struct files_request *q, struct files_error *e)
{
	_cleanup_(beneath_donep) struct beneath at = BENEATH_NULL;
	_cleanup_fd_ int fd = -1;
	struct stat st;
	int r = find(s, q->path, BENEATH_FOLLOW, &at);

	if (r < 0)
		return r;
	fd = openat(at.dir, at.name[0] ? at.name : ".", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode))
		return -ELOOP; /* a link has just taken its place */
	return files_set_mode(fd, q->mode);
}

int serve_symlink(struct server *s, const struct files_request *q, struct files_error *e)
{
	_cleanup_(beneath_donep) struct beneath at = BENEATH_NULL;
	int r = find_itself(s, q->path, &at);

	if (r < 0)
		return r;
	if (!at.name[0])
		return -EEXIST;
	/* on_request() has copied and terminated the string. */
	return symlinkat(q->other.p, at.dir, at.name) < 0 ? -errno : 0;
}
