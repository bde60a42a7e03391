/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a stack of levels, one for each directory on the way from the top. The top
 * and the lowest FSWALK_OPEN of them are open, and above these fewer and fewer (fswalk_keeps()). A
 * level that is closed keeps its identity and the place where reading goes on (telldir). When the
 * walk comes back to it, it is opened again from the nearest open one above it, name by name; as
 * many as log2(depth) of those on the way stay open for the levels above, so that this costs little
 * however deep the tree is.
 *
 * A descriptor comes from the one above it only, by fswalk_descend(): the kernel refuses ".." and
 * links there, even if this file were wrong about a name. */
#include "fs/fswalk.h"
#include "base/fd.h"
#include "fs/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct level {
	DIR *list; /* NULL: it is closed */
	dev_t device;
	ino_t inode;
	long at;       /* of a closed one */
	int mode;      /* to be given back; -1: none */
	size_t path_n; /* length of its own path */
	bool known;    /* its names come from the caller */
	int error;     /* after which a sorted one was not read on */
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
	size_t names; /* so many were read */
	bool plain;   /* openat2() is refused here */
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
		.depth = (size_t)(in - w->levels),
		.type = DT_DIR};
}

/* --- opening --- */

/* Open a directory by its name in another one. The kernel's own refusal of links and of whatever
 * leads out is a second defence: a name that was read has no slash, and is neither "." nor "..". */
static int fswalk_descend(struct fswalk *w, int dir, const char *name, int flags)
{
	const struct open_how how = {
		.flags = (uint64_t)(unsigned)(flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
			   (w->how->stay == FSWALK_ON_MOUNT ? RESOLVE_NO_XDEV : 0U)};

	/* The top is named by the caller, who may name a path. */
	if (!w->plain && w->depth) {
		int fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));

		if (fd >= 0 || errno != ENOSYS)
			return fd;
		w->plain = true;
	}
	return openat(dir, name, (int)how.flags);
}

/* *ret_mode: the mode before, if it was changed; else -1. */
static int fswalk_open(struct fswalk *w, int dir, const char *name, int *ret_mode, struct stat *st)
{
	mode_t need = w->how->need;
	_cleanup_fd_ int fd = fswalk_descend(w, dir, name, O_RDONLY);

	*ret_mode = -1;
	if (fd < 0 && errno == EACCES && need) {
		_cleanup_fd_ int at = fswalk_descend(w, dir, name, O_PATH);

		if (at < 0 || fstat(at, st) < 0)
			return -errno;
		if (fd_chmod(at, (st->st_mode & 07777) | need) < 0)
			return -EACCES;
		*ret_mode = st->st_mode & 07777;
		fd = fswalk_descend(w, at, ".", O_RDONLY);
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

/* The next name that is read of a directory. NULL with errno: 0 after the last one, E2BIG if that
 * is too many. */
static struct dirent *fswalk_read(struct fswalk *w, struct level *l)
{
	struct dirent *e = fs_list_next(l->list);

	if (!e || !w->how->names || w->names++ < w->how->names)
		return e;
	errno = E2BIG;
	return NULL;
}

static int fswalk_sort(struct fswalk *w, struct level *l)
{
	struct strings *s = &l->names;
	struct dirent *e;

	while ((e = fswalk_read(w, l))) {
		char **v = array_room(s->v, s->n, &s->cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		s->v = v;
		s->v[s->n] = strdup(e->d_name);
		if (!s->v[s->n])
			return -ENOMEM;
		s->n++;
	}
	l->error = errno;
	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), by_bytes);
	return 0;
}

/* Whether a level is open while the walk has that depth. */
static bool fswalk_keeps(size_t level, size_t depth)
{
	size_t below = depth - 1 - level;

	/* The more often 2 divides its number, the longer: about one for each power of 2. */
	return level == 0 || below < FSWALK_OPEN || below < (FSWALK_OPEN / 8) * (level & -level);
}

static void fswalk_close_some(struct fswalk *w)
{
	/* The only levels for which the answer is new. */
	for (size_t below = FSWALK_OPEN; below < w->depth - 1; below *= 2) {
		struct level *l = &w->levels[w->depth - 1 - below];

		if (!l->list || fswalk_keeps((size_t)(l - w->levels), w->depth))
			continue;
		l->at = telldir(l->list);
		closedir(l->list);
		l->list = NULL;
	}
}

/* Takes *fd if it succeeds. */
static int fswalk_list(struct level *l, int *fd)
{
	l->list = fdopendir(*fd);
	if (!l->list)
		return -errno;
	*fd = -1;
	return 0;
}

/* Takes *fd if there is a new level, which may be so after a failure, too. path_n: the length of
 * its path. */
static int fswalk_push(
	struct fswalk *w, int *fd, const struct stat *st, int old_mode, size_t path_n)
{
	struct level *l = array_room(w->levels, w->depth, &w->cap, sizeof(*l));
	const struct fswalk_how *how = w->how;
	int r;

	if (!l)
		return -ENOMEM;
	w->levels = l;
	l += w->depth;
	*l = (struct level){.device = st->st_dev,
		.inode = st->st_ino,
		.mode = how->restore ? old_mode : -1,
		.path_n = path_n};
	r = fswalk_list(l, fd);
	if (r < 0)
		return r;
	l->known = how->knows && how->knows(how->user, w->depth, st);
	w->depth++;
	fswalk_close_some(w);
	return how->sorted && !l->known ? fswalk_sort(w, l) : 0;
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

static void fswalk_give_back(const struct fswalk *w, int fd, int mode)
{
	if (w->how->restore && mode >= 0)
		(void)!fchmod(fd, (mode_t)mode);
}

static int fswalk_enter(struct fswalk *w, const struct fswalk_entry *e)
{
	struct stat st;
	int mode = -1, r = 0, bar;
	_cleanup_fd_ int fd = -1;

	if (w->depth == w->how->levels)
		return fswalk_missed(w, e, ENAMETOOLONG);
	fd = fswalk_open(w, e->dir, e->name, &mode, &st);
	bar = fd < 0                                                                 ? -fd
	      : w->how->stay == FSWALK_ON_DEVICE && st.st_dev != w->levels[0].device ? EXDEV
										     : 0;
	if (!bar && w->how->entered)
		r = w->how->entered(w->how->user, e, fd, &st);
	if (!bar && r == 0)
		r = fswalk_push(w, &fd, &st, mode, (size_t)(e->name - e->path) + strlen(e->name));
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

/* Open the level below one (open as dir) once more. Return a descriptor or -errno: -ESTALE if it is
 * not the directory that it was. */
static int fswalk_open_again(struct fswalk *w, int dir, struct level *l)
{
	size_t start = l[-1].path_n + (l[-1].path_n > 0);
	char after = w->path[l->path_n];
	struct stat st;
	int mode, fd;

	w->path[l->path_n] = '\0';
	fd = fswalk_open(w, dir, w->path + start, &mode, &st);
	w->path[l->path_n] = after;
	if (fd < 0 || (st.st_dev == l->device && st.st_ino == l->inode))
		return fd;
	fswalk_give_back(w, fd, mode);
	close(fd);
	return -ESTALE;
}

/* Open the lowest level again. Return 0 or -errno, with the level that could not be opened. */
static int fswalk_reopen(struct fswalk *w, size_t *ret_failed)
{
	size_t at = w->depth - 1;
	_cleanup_fd_ int kept = -1, fd = -1;
	int dir;

	while (!w->levels[at - 1].list)
		at--;
	dir = dirfd(w->levels[at - 1].list);
	for (; at < w->depth; at++) {
		struct level *l = &w->levels[at];
		int r;

		*ret_failed = at;
		fd = r = fswalk_open_again(w, dir, l);
		kept = fd_close(kept);
		if (fd >= 0 && !fswalk_keeps(at, w->depth)) {
			dir = kept = TAKE_FD(fd);
			continue;
		}
		if (fd >= 0)
			r = fswalk_list(l, &fd);
		if (r < 0)
			return r;
		dir = dirfd(l->list);
		if (!w->how->consumed || !*w->how->consumed)
			seekdir(l->list, l->at);
	}
	return 0;
}

/* Leave the lowest level, for errnum if not all of it was met, and those above it that are not
 * where they were. */
static int fswalk_leave(struct fswalk *w, int errnum)
{
	struct fswalk_entry e;

	w->path[fswalk_lowest(w)->path_n] = '\0';
	fswalk_drop(w);
	while (!fswalk_lowest(w)->list) {
		size_t failed;
		int r = fswalk_reopen(w, &failed);

		if (r == 0)
			break;
		if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP)
			r = -ESTALE;
		if (r != -ESTALE && r != -EACCES && r != -EXDEV)
			return r;
		errnum = -r;
		w->path[w->levels[failed].path_n] = '\0';
		while (w->depth > failed)
			fswalk_drop(w);
	}
	e = fswalk_entry_in(w, fswalk_lowest(w));
	if (errnum)
		return fswalk_missed(w, &e, errnum);
	return w->how->left ? w->how->left(w->how->user, &e) : 0;
}

/* --- entries --- */

/* The next name, or NULL with errno: 0 at the end. */
static const char *fswalk_name(struct fswalk *w, struct level *l, unsigned char *ret_type)
{
	struct dirent *d;

	*ret_type = DT_UNKNOWN;
	if (l->known || w->how->sorted) {
		const char *name = l->known ? w->how->next(w->how->user, w->depth - 1)
				   : l->names.at < l->names.n ? l->names.v[l->names.at]
							      : NULL;

		errno = l->error;
		return name;
	}
	d = fswalk_read(w, l);
	if (!d)
		return NULL;
	*ret_type = d->d_type;
	return d->d_name;
}

static int fswalk_step(struct fswalk *w)
{
	struct level *l = fswalk_lowest(w);
	struct fswalk_entry e;
	unsigned char type;
	const char *name = fswalk_name(w, l, &type);
	int r = name ? fswalk_set_path(w, l, name) : -errno;

	if (!name && w->depth > 1)
		return fswalk_leave(w, -r);
	if (!name)
		fswalk_drop(w);
	if (!name || r < 0)
		return r;
	if (w->how->sorted && !l->known)
		free(l->names.v[l->names.at++]);
	e = fswalk_entry_in(w, l);
	e.type = type;
	if (type == DT_UNKNOWN && !w->how->untyped) {
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
	int mode, r;
	_cleanup_fd_ int fd = r = fswalk_open(&w, dir, *name ? name : ".", &mode, &st);

	if (fd >= 0)
		r = fswalk_push(&w, &fd, &st, mode, 0);
	if (fd >= 0)
		fswalk_give_back(&w, fd, mode);
	while (r == 0 && w.depth)
		r = fswalk_step(&w);
	while (w.depth) {
		size_t failed;

		/* One that has a mode to be given back may be closed. */
		if (!fswalk_lowest(&w)->list && fswalk_lowest(&w)->mode >= 0)
			(void)!fswalk_reopen(&w, &failed);
		fswalk_drop(&w);
	}
	free(w.levels);
	free(w.path);
	return r;
}
