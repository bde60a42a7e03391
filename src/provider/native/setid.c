/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * The tree was made by a room, so it may be deeper than the longest path or the number of
 * descriptors. The way back up is "..", checked to be the directory that we came from. Reading
 * continues there at the position that telldir() returned. */
#include "provider/native/setid.h"
#include "base/fd.h"
#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* A directory above the one that is being read. */
struct level {
	struct stat st;
	long at;
	int64_t mode; /* to be restored on the directory that was entered from here; -1: none */
};

struct descent {
	struct level *levels;
	size_t depth, room;
	DIR *dir;
	bool opening;
};

static int setid_read(struct descent *w, int fd)
{
	DIR *dir = fdopendir(fd);

	if (!dir) {
		int r = -errno;

		fd_close(fd);
		return r;
	}
	if (w->dir)
		closedir(w->dir);
	w->dir = dir;
	return 0;
}

static int setid_make_level(struct descent *w)
{
	size_t room = w->room ? w->room * 2 : 64;
	struct level *levels;

	if (w->depth < w->room)
		return 0;
	levels = reallocarray(w->levels, room, sizeof(*levels));
	if (!levels)
		return -ENOMEM;
	w->levels = levels;
	w->room = room;
	return 0;
}

/* Open the directory. If it is ours and may not be searched, make it searchable first and store its
 * old mode. */
static int setid_open_up(int dirfd, const char *name, int64_t *ret_mode)
{
	_cleanup_fd_ int at = openat(dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int fd;

	if (at < 0 || fstat(at, &st) < 0)
		return -errno;
	if ((st.st_mode & 0500) != 0500 && fd_chmod(at, (st.st_mode & 07777) | 0500) == 0)
		*ret_mode = st.st_mode & 07777;
	fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int setid_enter(struct descent *w, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	struct level *l;
	int fd, r = setid_make_level(w);

	if (r < 0)
		return r;
	l = &w->levels[w->depth];
	l->mode = -1;
	l->at = telldir(w->dir);
	if (fstat(dirfd(w->dir), &l->st) < 0)
		return -errno;
	if (w->opening)
		fd = setid_open_up(dirfd(w->dir), name, &l->mode);
	else if ((fd = openat(dirfd(w->dir), name, flags)) < 0)
		fd = -errno;
	/* Closed to us, or no longer there. */
	if (fd == -EACCES || fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return 0;
	if (fd < 0)
		return fd;
	r = setid_read(w, fd);
	if (r == 0)
		w->depth++;
	return r;
}

static int setid_leave(struct descent *w)
{
	struct level *l = &w->levels[w->depth - 1];
	_cleanup_fd_ int up = openat(dirfd(w->dir), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	int r;

	if (up < 0 || fstat(up, &st) < 0)
		return -errno;
	if (st.st_dev != l->st.st_dev || st.st_ino != l->st.st_ino)
		return -ESTALE;
	if (l->mode >= 0)
		(void)!fchmod(dirfd(w->dir), (mode_t)l->mode);
	r = setid_read(w, TAKE_FD(up));
	if (r < 0)
		return r;
	seekdir(w->dir, l->at);
	w->depth--;
	return 0;
}

static int setid_entry(struct descent *w, const struct dirent *e, setid_fn fn, void *user)
{
	struct stat st;

	if (e->d_type == DT_DIR)
		return setid_enter(w, e->d_name);
	if (e->d_type != DT_REG && e->d_type != DT_UNKNOWN)
		return 0;
	if (fstatat(dirfd(w->dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT || errno == EACCES ? 0 : -errno;
	if (S_ISDIR(st.st_mode))
		return setid_enter(w, e->d_name);
	return S_ISREG(st.st_mode) ? fn(user, dirfd(w->dir), e->d_name, &st) : 0;
}

int setid_each_file(int dir, bool opening, setid_fn fn, void *user)
{
	struct descent w = {.opening = opening};
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -errno : setid_read(&w, fd);

	while (r == 0) {
		struct dirent *e;

		e = fs_list_next(w.dir);
		if (e)
			r = setid_entry(&w, e, fn, user);
		else if (errno)
			r = -errno;
		else if (w.depth)
			r = setid_leave(&w);
		else
			break;
	}
	if (w.dir)
		closedir(w.dir);
	free(w.levels);
	return r;
}

static int setid_clear_one(void *user, int dirfd, const char *name, const struct stat *st)
{
	/* Only root can have given a file capabilities that are worth something. */
	return geteuid() == 0 || st->st_mode & SETID_BITS ? fs_strip_rights(dirfd, name) : 0;
}

int setid_clear(int dir)
{
	return setid_each_file(dir, true, setid_clear_one, NULL);
}
