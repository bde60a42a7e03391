/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a stack of levels, one for each directory on the way from the top. The
 * lowest FSWALK_OPEN of them are open. When another one is entered, the highest open one is closed,
 * and keeps its identity and the place where reading goes on (telldir). It is opened again as ".."
 * of the directory below, when that is left. A directory is entered so deep only if it can be left
 * again. */
#include "fs/fswalk.h"
#include "base/fd.h"
#include "fs/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct level {
	DIR *list; /* NULL: it is closed */
	dev_t device;
	ino_t inode;
	long at;       /* of a closed one */
	int mode;      /* to be given back; -1: none */
	size_t path_n; /* length of its own path */
	struct strings {
		char **v;
		size_t n, cap, at;
	} names; /* if they are sorted */
};

struct fswalk {
	const struct fswalk_how *how;
	struct level *levels;
	size_t depth, cap;
	char *path; /* terminated */
	size_t path_cap;
};

static struct level *fswalk_lowest(struct fswalk *w)
{
	return &w->levels[w->depth - 1];
}

/* Make the path the level's own and "/name". */
static int fswalk_set_path(struct fswalk *w, const struct level *in, const char *name)
{
	size_t n = strlen(name) + 1, start = in->path_n + (in->path_n > 0);

	if (start + n > w->path_cap) {
		size_t cap = 2 * (start + n) + 256;
		char *path = realloc(w->path, cap);

		if (!path)
			return -ENOMEM;
		w->path = path;
		w->path_cap = cap;
	}
	if (in->path_n)
		w->path[in->path_n] = '/';
	memcpy(w->path + start, name, n);
	return 0;
}

/* The entry in a level that the path names. */
static struct fswalk_entry fswalk_entry_in(const struct fswalk *w, const struct level *in)
{
	return (struct fswalk_entry){.dir = dirfd(in->list),
		.name = w->path + in->path_n + (in->path_n > 0),
		.path = w->path,
		.type = DT_DIR};
}

/* --- opening --- */

/* *ret_mode: the mode before, if it was changed; else -1. */
static int fswalk_open(int dir, const char *name, mode_t need, int *ret_mode, struct stat *st)
{
	const int flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	_cleanup_fd_ int fd = openat(dir, *name ? name : ".", O_RDONLY | flags);

	*ret_mode = -1;
	if (fd < 0 && errno == EACCES && need) {
		_cleanup_fd_ int at = openat(dir, *name ? name : ".", O_PATH | flags);

		if (at < 0 || fstat(at, st) < 0)
			return -errno;
		if (fd_chmod(at, (st->st_mode & 07777) | need) < 0)
			return -EACCES;
		*ret_mode = st->st_mode & 07777;
		fd = openat(at, ".", O_RDONLY | flags);
	}
	if (fd < 0 || fstat(fd, st) < 0)
		return -errno;
	if ((st->st_mode & need) != need && fchmod(fd, (st->st_mode & 07777) | need) == 0)
		*ret_mode = st->st_mode & 07777;
	return TAKE_FD(fd);
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int fswalk_sort(struct level *l)
{
	struct strings *s = &l->names;
	struct dirent *e;

	while ((e = fs_list_next(l->list))) {
		char **v = array_room(s->v, s->n, &s->cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		s->v = v;
		s->v[s->n] = strdup(e->d_name);
		if (!s->v[s->n])
			return -ENOMEM;
		s->n++;
	}
	if (errno)
		return -errno;
	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), by_bytes);
	return 0;
}

/* Close the highest level that is open, if there are too many. */
static void fswalk_close_highest(struct fswalk *w)
{
	struct level *l;

	if (w->depth <= FSWALK_OPEN)
		return;
	l = &w->levels[w->depth - 1 - FSWALK_OPEN];
	if (!l->list)
		return;
	l->at = telldir(l->list);
	closedir(l->list);
	l->list = NULL;
}

/* Takes fd. path_n: the length of its path. */
static int fswalk_push(struct fswalk *w, int fd, const struct stat *st, int old_mode, size_t path_n)
{
	struct level *l = array_room(w->levels, w->depth, &w->cap, sizeof(*l));
	DIR *list;

	if (!l) {
		fd_close(fd);
		return -ENOMEM;
	}
	w->levels = l;
	list = fdopendir(fd);
	if (!list) {
		int r = -errno;

		fd_close(fd);
		return r;
	}
	l += w->depth++;
	*l = (struct level){.list = list,
		.device = st->st_dev,
		.inode = st->st_ino,
		.mode = w->how->restore ? old_mode : -1,
		.path_n = path_n};
	fswalk_close_highest(w);
	return w->how->sorted ? fswalk_sort(l) : 0;
}

/* --- going down and up --- */

static int fswalk_missed(struct fswalk *w, const struct fswalk_entry *e, int errnum)
{
	if (w->how->missed)
		return w->how->missed(w->how->user, e, errnum);
	return errnum == EACCES || errnum == ENOENT || errnum == ENOTDIR || errnum == ELOOP ||
			       errnum == EXDEV
		       ? 0
		       : -errnum;
}

/* Open the directory above one, which has to be that level. */
static int fswalk_open_up(int fd, const struct level *up, int flags)
{
	_cleanup_fd_ int found = openat(fd, "..", flags | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (found < 0 || fstat(found, &st) < 0)
		return -errno;
	return st.st_dev == up->device && st.st_ino == up->inode ? TAKE_FD(found) : -ESTALE;
}

/* Why a directory that was opened cannot be entered; 0: it can. */
static int fswalk_bar(const struct fswalk *w, int fd, const struct stat *st)
{
	int up;

	if (w->how->stay && st->st_dev != w->levels[0].device)
		return EXDEV;
	if (w->depth < FSWALK_OPEN)
		return 0;
	up = fswalk_open_up(fd, &w->levels[w->depth - 1], O_PATH);
	if (up < 0)
		return -up;
	close(up);
	return 0;
}

static void fswalk_give_back(const struct fswalk *w, int fd, int mode)
{
	if (w->how->restore && mode >= 0)
		(void)!fchmod(fd, (mode_t)mode);
}

static int fswalk_enter(struct fswalk *w, const struct fswalk_entry *e)
{
	struct stat st;
	int mode = -1;
	_cleanup_fd_ int fd = fswalk_open(e->dir, e->name, w->how->need, &mode, &st);
	int bar = fd < 0 ? -fd : fswalk_bar(w, fd, &st), r = 0;

	if (!bar && w->how->entered)
		r = w->how->entered(w->how->user, e, fd, &st);
	if (!bar && r == 0)
		return fswalk_push(
			w, TAKE_FD(fd), &st, mode, (size_t)(e->name - e->path) + strlen(e->name));
	if (fd >= 0)
		fswalk_give_back(w, fd, mode);
	return bar ? fswalk_missed(w, e, bar) : r;
}

/* Close the lowest level. */
static void fswalk_drop(struct fswalk *w)
{
	struct level *l = &w->levels[--w->depth];

	for (size_t i = l->names.at; i < l->names.n; i++)
		free(l->names.v[i]);
	free(l->names.v);
	if (!l->list)
		return;
	fswalk_give_back(w, dirfd(l->list), l->mode);
	closedir(l->list);
}

/* Open a level again, as the one above the lowest. */
static int fswalk_reopen(struct fswalk *w, struct level *up)
{
	int fd = fswalk_open_up(dirfd(fswalk_lowest(w)->list), up, O_RDONLY);

	if (fd < 0)
		return fd;
	up->list = fdopendir(fd);
	if (!up->list) {
		int r = -errno;

		fd_close(fd);
		return r;
	}
	if (!w->how->consumed || !*w->how->consumed)
		seekdir(up->list, up->at);
	return 0;
}

static int fswalk_leave(struct fswalk *w)
{
	struct level *up = w->depth > 1 ? &w->levels[w->depth - 2] : NULL;
	int r = up && !up->list ? fswalk_reopen(w, up) : 0;
	struct fswalk_entry e;

	if (r < 0)
		return r;
	fswalk_drop(w);
	if (!up || !w->how->left)
		return 0;
	e = fswalk_entry_in(w, up);
	return w->how->left(w->how->user, &e);
}

/* --- entries --- */

/* Make the path that of the next entry. Return 1, or 0 at the end. */
static int fswalk_name(struct fswalk *w, struct level *l, unsigned char *ret_type)
{
	struct dirent *d;
	int r;

	*ret_type = DT_UNKNOWN;
	if (w->how->sorted) {
		char *name = l->names.at < l->names.n ? l->names.v[l->names.at++] : NULL;

		r = name ? fswalk_set_path(w, l, name) : 0;
		free(name);
		return r < 0 ? r : name != NULL;
	}
	d = fs_list_next(l->list);
	if (!d)
		return -errno;
	*ret_type = d->d_type;
	r = fswalk_set_path(w, l, d->d_name);
	return r < 0 ? r : 1;
}

static int fswalk_step(struct fswalk *w)
{
	struct level *l = fswalk_lowest(w);
	struct fswalk_entry e;
	unsigned char type;
	int r;

	/* For what left() gets. */
	if (w->path)
		w->path[l->path_n] = '\0';
	r = fswalk_name(w, l, &type);
	if (r <= 0)
		return r < 0 ? r : fswalk_leave(w);
	e = fswalk_entry_in(w, l);
	e.type = type;
	if (type == DT_UNKNOWN) {
		struct stat st;

		if (fstatat(e.dir, e.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return errno == ENOENT ? 0 : fswalk_missed(w, &e, errno);
		e.type = (unsigned char)IFTODT(st.st_mode);
	}
	r = w->how->entry(w->how->user, &e);
	return r == FSWALK_INTO ? fswalk_enter(w, &e) : r;
}

int fswalk(int dir, const char *name, const struct fswalk_how *how)
{
	struct fswalk w = {.how = how};
	struct stat st;
	int mode, fd = fswalk_open(dir, name, how->need, &mode, &st), r = fd;

	if (fd >= 0)
		r = fswalk_push(&w, fd, &st, mode, 0);
	while (r == 0 && w.depth)
		r = fswalk_step(&w);
	while (w.depth)
		fswalk_drop(&w);
	free(w.levels);
	free(w.path);
	return r;
}
