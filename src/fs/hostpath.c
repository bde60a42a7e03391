/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a room can leave a link in any directory that it may write to, and change it
 * at any time, so no link is followed there. The owner of the link says nothing: a room's files
 * belong to the user who started it. There is no record of where rooms have written, but we know
 * where they cannot write: in directories of root if we are another user. Links are followed in the
 * home directory too, and for root in the system's own directories: a room with write access to
 * those already controls the shell's start-up files, or the machine. Each directory is judged by
 * the descriptor from which the link is then read. */
#include "fs/hostpath.h"
#include "base/buf.h"
#include "base/fd.h"
#include "fs/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	MAX_LINKS = 40, /* as in the kernel */
	MAX_LENGTH = 4 * PATH_MAX,
	DIRECTORY = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
};

struct walk {
	const char *path, *verb; /* of the caller */
	const char *home;
	int dir;
	struct buf rest; /* the part of the path that is not resolved yet */
	unsigned links;
	bool refused; /* with err set */
	bool follow;  /* every link; within says whether one lay in dirs */
	bool within;
	char *const *dirs;
	struct cloche_err *err;
};

static bool hostpath_is_same(const struct stat *st, const char *path)
{
	struct stat other;

	return path && stat(path, &other) == 0 && st->st_dev == other.st_dev &&
	       st->st_ino == other.st_ino;
}

char *hostpath_real(const struct hostpath *p)
{
	char dir[PATH_MAX];

	if (fd_path(p->dir, dir) < 0)
		return NULL;
	return p->name[0] ? fs_join(dir, p->name) : strdup(dir);
}

/* Return whether dir is one of the system's own directories. */
static bool hostpath_is_system(int dir)
{
	const struct hostpath at = {.dir = dir};
	_cleanup_(freep) char *real = hostpath_real(&at);

	return real &&
	       (strcmp(real, "/") == 0 || strcmp(real, "/var") == 0 || fs_is_within(real, "/etc") ||
		       (fs_is_within(real, "/usr") && !fs_is_within(real, "/usr/local")));
}

/* Return whether no room of ours can have written to the current directory. */
static bool hostpath_is_out_of_reach(const struct walk *w)
{
	struct stat st;

	if (fstat(w->dir, &st) < 0 || st.st_mode & (S_IWGRP | S_IWOTH))
		return false;
	if (st.st_uid == 0)
		return geteuid() != 0 || hostpath_is_same(&st, w->home) ||
		       hostpath_is_system(w->dir);
	return st.st_uid == geteuid() && hostpath_is_same(&st, w->home);
}

static int hostpath_refuse(struct walk *w, const char *name, const char *target, struct str rest)
{
	struct hostpath at = {.dir = w->dir};
	_cleanup_(freep) char *dir = NULL, *link = NULL, *leads = NULL;

	snprintf(at.name, sizeof(at.name), "%s", name);
	link = hostpath_real(&at);
	at.name[0] = '\0';
	dir = hostpath_real(&at);
	leads = dir ? fs_join(dir, target) : NULL;
	err_set(w->err, E_DENIED,
		"%s %s: %s is a symbolic link, which a sandbox may have left there", w->verb,
		w->path, link ? link : name);
	if (leads)
		err_hint(w->err, "name what it leads to, if that is meant: %s%.*s", leads,
			(int)rest.n, rest.p);
	w->refused = true;
	return -EPERM;
}

/* Return whether the directory lies in one of these. True if that cannot be found out. */
static bool hostpath_is_in(int dir, char *const *dirs)
{
	char real[PATH_MAX];

	return fd_path(dir, real) < 0 || fs_is_within_any(real, dirs);
}

static int hostpath_begin(struct walk *w, const char *from)
{
	int fd = open(from, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	fd_close(w->dir);
	w->dir = fd;
	return 0;
}

/* Put the target of the link `name` in front of rest (a view into w->rest). */
static int hostpath_expand(struct walk *w, const char *name, struct str rest)
{
	struct buf joined = BUF_INIT(MAX_LENGTH);
	char target[PATH_MAX];
	ssize_t n = readlinkat(w->dir, name, target, sizeof(target) - 1);
	int r;

	if (n < 0)
		return errno == EINVAL ? -ENOTDIR : -errno;
	target[n] = '\0';
	if (w->follow)
		w->within = w->within || hostpath_is_in(w->dir, w->dirs);
	else if (!hostpath_is_out_of_reach(w))
		return hostpath_refuse(w, name, target, rest);
	if (++w->links > MAX_LINKS)
		return -ELOOP;
	r = buf_add(&joined, target, (size_t)n);
	if (r == 0)
		r = buf_add_str(&joined, rest);
	buf_done(&w->rest);
	w->rest = joined;
	if (r < 0)
		return r == -E2BIG ? -ENAMETOOLONG : r;
	return target[0] == '/' ? hostpath_begin(w, "/") : 0;
}

/* Enter the directory `name`. rest begins with the slash behind its name. */
static int hostpath_step(struct walk *w, const char *name, struct str rest)
{
	int fd = openat(w->dir, name, DIRECTORY);

	if (fd < 0)
		return errno == ENOTDIR || errno == ELOOP ? hostpath_expand(w, name, rest) : -errno;
	fd_close(w->dir);
	w->dir = fd;
	buf_consume(&w->rest, buf_len(&w->rest) - rest.n);
	return 0;
}

static struct str hostpath_skip(struct str s)
{
	while (s.n && s.p[0] == '/')
		s = str_from_index(s, 1);
	return s;
}

/* Return 1 if name is the last component, 0 to go on, or an error. */
static int hostpath_next(struct walk *w, char name[HOSTPATH_NAME_MAX + 1])
{
	struct str s = hostpath_skip(buf_str(&w->rest)), one = str_prefix(s, str_chr(s, '/'));
	struct str rest = str_from_index(s, one.n);
	int r;

	if (one.n > HOSTPATH_NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, one.p, one.n);
	name[one.n] = '\0';
	if (one.n == 0)
		return 1;
	if (rest.n == 0 && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
		return 1;
	r = hostpath_step(w, name, rest);
	return r == -ENOENT && hostpath_skip(rest).n == 0 ? 1 : r;
}

/* Find a place. With ret_rest (may be NULL) it may lie in directories that are missing. */
static int hostpath_walk(const char *path, const char *home, const char *verb, struct hostpath *ret,
	struct buf *ret_rest, struct cloche_err *err)
{
	struct walk w = {.path = path,
		.verb = verb,
		.home = home,
		.dir = -1,
		.rest = BUF_INIT(MAX_LENGTH),
		.err = err};
	struct hostpath found = HOSTPATH_NULL;
	int r = path[0] ? hostpath_begin(&w, path[0] == '/' ? "/" : ".") : -ENOENT;

	if (r == 0)
		r = buf_add_str(&w.rest, str_from(path));
	r = r == -E2BIG ? -ENAMETOOLONG : r;
	while (r == 0)
		r = hostpath_next(&w, found.name);
	if (ret_rest && r == -ENOENT && found.name[0])
		r = 1;
	if (r == 1) {
		found.dir = TAKE_FD(w.dir);
		*ret = found;
		if (ret_rest)
			*ret_rest = w.rest;
		else
			buf_done(&w.rest);
		return 0;
	}
	buf_done(&w.rest);
	fd_close(w.dir);
	return w.refused ? -E_DENIED : err_sys(err, -r, "%s %s", verb, path);
}

/* Open the last component, which is not examined yet. Return a descriptor above 2; 0 to go on, if
 * it is a link; or -errno. */
static int hostpath_last(struct walk *w, const char *name)
{
	int fd = openat(w->dir, name[0] ? name : ".", O_PATH | O_NOFOLLOW | O_CLOEXEC), r;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		r = -errno;
		fd_close(fd);
		return r;
	}
	if (!S_ISLNK(st.st_mode))
		return fd_lift(fd);
	fd_close(fd);
	return hostpath_expand(w, name, STR_NULL);
}

int hostpath_follow(const char *path, char *const *dirs, char ret_real[PATH_MAX], bool *ret_within)
{
	struct walk w = {.path = path,
		.dir = -1,
		.rest = BUF_INIT(MAX_LENGTH),
		.follow = true,
		.dirs = dirs};
	char name[HOSTPATH_NAME_MAX + 1];
	int r = path[0] == '/' ? hostpath_begin(&w, "/") : -EINVAL, fd = 0;

	if (r == 0)
		r = buf_add_str(&w.rest, str_from(path));
	while (r == 0 && fd == 0) {
		r = hostpath_next(&w, name);
		fd = r == 1 ? hostpath_last(&w, name) : 0;
		r = r == 1 ? MIN(fd, 0) : r;
	}
	buf_done(&w.rest);
	fd_close(w.dir);
	if (r == 0)
		r = fd_path(fd, ret_real);
	if (r == 0) {
		*ret_within = *ret_within || w.within;
		return fd;
	}
	if (fd > 0)
		fd_close(fd);
	return r;
}

int hostpath_find(const char *path, const char *home, const char *verb, struct hostpath *ret,
	struct cloche_err *err)
{
	return hostpath_walk(path, home, verb, ret, NULL, err);
}

int hostpath_find_missing(const char *path, const char *home, const char *verb,
	struct hostpath *ret, char **ret_rest, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf left = BUF_INIT(MAX_LENGTH);
	int r = hostpath_walk(path, home, verb, ret, &left, err);
	struct str rest;

	if (r < 0)
		return r;
	rest = hostpath_skip(buf_str(&left));
	rest = hostpath_skip(str_from_index(rest, str_chr(rest, '/')));
	*ret_rest = str_dup(rest);
	if (*ret_rest)
		return 0;
	hostpath_done(ret);
	return err_nomem(err);
}

/* Enter the directory name in dir, which is closed. */
static int hostpath_make_one(int dir, const char *name, unsigned mode)
{
	int fd = -1;

	if (mkdirat(dir, name, mode) == 0 || errno == EEXIST)
		fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	fd = fd < 0 ? -errno : fd;
	fd_close(dir);
	return fd;
}

int hostpath_make(const struct hostpath *at, const char *rest, unsigned mode)
{
	struct str s = hostpath_skip(str_from(rest));
	int fd = at->name[0] ? fcntl(at->dir, F_DUPFD_CLOEXEC, 0)
			     : openat(at->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (at->name[0])
		fd = hostpath_make_one(fd, at->name, mode);
	while (fd >= 0 && s.n) {
		struct str one = str_prefix(s, str_chr(s, '/'));
		_cleanup_(freep) char *name = str_dup(one);

		if (!name) {
			fd_close(fd);
			return -ENOMEM;
		}
		fd = hostpath_make_one(fd, name, mode);
		s = hostpath_skip(str_from_index(s, one.n));
	}
	return fd;
}

void hostpath_done(struct hostpath *p)
{
	p->dir = fd_close(p->dir);
}

bool hostpath_is_device(const char *path)
{
	static const char *const dirs[] = {"/dev/fd/", "/dev/pts/", "/dev/"};

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (str_starts(str_from(path), str_from(dirs[i])))
			return !strchr(path + strlen(dirs[i]), '/');
	return false;
}
