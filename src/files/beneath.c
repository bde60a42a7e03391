/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-INSIDE-PATHS)
 *
 * openat2() would do this in the kernel, but the filter of most rooms has to refuse it (see
 * jail/seccomp.h), and it accepts no path longer than 4096 bytes. So there is one way for all
 * rooms: each name is opened by itself, as a directory and never through a link. If a name is a
 * link, its text is put in front of the rest of the path. Whatever happens to the tree meanwhile,
 * we stand in a directory that was reached from the root by names.
 *
 * The kernel resolves "..", but only back to where we came from: the parent must still be the
 * directory (device and inode) through which we entered. If it is not, the tree was moved under us,
 * and the walk starts again. The directory that we hold keeps its parent's inode alive, so the
 * number cannot be reused unless the directory was moved. At the root ".." stays. There is no stack
 * of descriptors, so a path may be as deep as a tree can be. */
#include "files/beneath.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	MAX_LINKS = 40,           /* as in the kernel */
	MAX_LENGTH = 1024 * 1024, /* path with the text of all links */
	MAX_TRIES = 5,
	MAX_TARGET = 4096,
	DIRECTORY = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
};

struct id {
	dev_t device;
	ino_t inode;
};

struct walk {
	int root; /* borrowed */
	int dir;
	struct buf rest; /* the rest of the path */
	struct id *parents;
	size_t depth, cap;
	unsigned links;
};

bool beneath_next(struct str *rest, struct str *ret)
{
	for (;;) {
		size_t n;

		while (rest->n && rest->p[0] == '/')
			*rest = str_from_index(*rest, 1);
		n = str_chr(*rest, '/');
		*ret = str_prefix(*rest, n);
		if (n == 1 && ret->p[0] == '.') {
			*rest = str_from_index(*rest, 1);
			continue;
		}
		*rest = str_from_index(*rest, n);
		/* Make *rest empty if this was the last name. */
		while (rest->n &&
			(rest->p[0] == '/' || (rest->p[0] == '.' && rest->p[-1] == '/' &&
						      (rest->n == 1 || rest->p[1] == '/'))))
			*rest = str_from_index(*rest, 1);
		return ret->n > 0;
	}
}

int beneath_clean(struct str path, struct buf *ret)
{
	struct str component;
	int r = 0;

	buf_clear(ret);
	while (r == 0 && beneath_next(&path, &component)) {
		if (component.n > BENEATH_NAME_MAX)
			return -ENAMETOOLONG;
		if (str_eq(component, STR("..")))
			return -EXDEV;
		if (buf_len(ret))
			r = buf_add_char(ret, '/');
		if (r == 0)
			r = buf_add_str(ret, component);
	}
	return r == -E2BIG ? -ENAMETOOLONG : r;
}

static int identify(int fd, struct id *ret)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*ret = (struct id){st.st_dev, st.st_ino};
	return 0;
}

/* Enter dir, which is taken. */
static int enter(struct walk *w, int dir)
{
	_cleanup_fd_ int next = dir;
	struct id *more = array_room(w->parents, w->depth, &w->cap, sizeof(*more));
	int r;

	if (!more)
		return -ENOMEM;
	w->parents = more;
	r = identify(w->dir, &w->parents[w->depth]);
	if (r < 0)
		return r;
	w->depth++;
	fd_close(w->dir);
	w->dir = TAKE_FD(next);
	return 0;
}

static int leave(struct walk *w)
{
	_cleanup_fd_ int up = -1;
	struct id now = {0}, was;
	int r;

	if (w->depth == 0)
		return 0;
	up = openat(w->dir, "..", DIRECTORY);
	if (up < 0)
		return -errno;
	r = identify(up, &now);
	if (r < 0)
		return r;
	was = w->parents[--w->depth];
	if (now.device != was.device || now.inode != was.inode)
		return -ESTALE;
	fd_close(w->dir);
	w->dir = TAKE_FD(up);
	return 0;
}

static int to_root(struct walk *w)
{
	fd_close(w->dir);
	w->depth = 0;
	w->dir = openat(w->root, ".", DIRECTORY);
	return w->dir < 0 ? -errno : 0;
}

/* Put the text of the link `name` in front of rest (a view into w->rest). Return 1 if done, 0 if it
 * is not a link, or -errno. */
static int expand(struct walk *w, const char *name, struct str rest)
{
	struct buf joined = BUF_INIT(MAX_LENGTH);
	char target[MAX_TARGET];
	ssize_t n = readlinkat(w->dir, name, target, sizeof(target));
	int r;

	if (n < 0)
		return errno == EINVAL ? 0 : -errno;
	if (n == 0)
		return -ENOENT;
	if (n == sizeof(target))
		return -ENAMETOOLONG;
	if (++w->links > MAX_LINKS)
		return -ELOOP;
	r = buf_add(&joined, target, (size_t)n);
	if (r == 0 && rest.n)
		r = buf_add_str(&joined, rest);
	if (r < 0) {
		buf_done(&joined);
		return r == -E2BIG ? -ENAMETOOLONG : r;
	}
	buf_done(&w->rest);
	w->rest = joined;
	r = target[0] == '/' ? to_root(w) : 0;
	return r < 0 ? r : 1;
}

/* Walk one name that is not the last. rest begins with the slash after it. */
static int step(struct walk *w, const char *name, struct str rest, bool make)
{
	int fd = openat(w->dir, name, DIRECTORY), r;

	if (fd < 0 && errno == ENOENT && make) {
		if (mkdirat(w->dir, name, 0777) < 0 && errno != EEXIST)
			return -errno;
		fd = openat(w->dir, name, DIRECTORY);
	}
	if (fd >= 0) {
		r = enter(w, fd);
		if (r == 0)
			buf_consume(&w->rest, buf_len(&w->rest) - rest.n);
		return r;
	}
	if (errno != ENOTDIR && errno != ELOOP)
		return -errno;
	r = expand(w, name, rest);
	return r == 0 ? -ENOTDIR : r < 0 ? r : 0;
}

/* Check a name that ends with a slash: it is a directory, or it does not exist. */
static int check_slash(const struct walk *w, const char *name)
{
	struct stat st;

	if (fstatat(w->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

/* Return 1 if name is the last one, 0 to go on, or -errno. */
static int walk_next(struct walk *w, unsigned flags, char name[BENEATH_NAME_MAX + 1], bool *slash)
{
	struct str whole = buf_str(&w->rest), rest = whole, component;
	bool last, more;
	int r;

	name[0] = '\0';
	if (!beneath_next(&rest, &component))
		return 1;
	last = rest.n == 0;
	/* Only slashes and "." can follow the last name. */
	more = component.p + component.n < whole.p + whole.n;
	if (component.n > BENEATH_NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, component.p, component.n);
	name[component.n] = '\0';
	if (component.n == 2 && component.p[0] == '.' && component.p[1] == '.') {
		buf_consume(&w->rest, whole.n - rest.n);
		return leave(w);
	}
	rest = str_from_index(whole, (size_t)(component.p + component.n - whole.p));
	if (!last)
		return step(w, name, rest, flags & BENEATH_MAKE);
	if (flags & BENEATH_FOLLOW || more) {
		r = expand(w, name, rest);
		if (r == 1)
			return 0;
		if (r < 0 && r != -ENOENT)
			return r;
	}
	*slash = more;
	r = more ? check_slash(w, name) : 0;
	return r < 0 ? r : 1;
}

static int walk(struct walk *w, unsigned flags, struct beneath *ret)
{
	bool slash = false;
	int r = to_root(w);

	while (r == 0)
		r = walk_next(w, flags, ret->name, &slash);
	if (r < 0)
		return r;
	ret->slash = slash;
	ret->dir = TAKE_FD(w->dir);
	return 0;
}

static int find_once(
	int root, struct str base, struct str path, unsigned flags, struct beneath *ret)
{
	struct walk w = {.root = root, .dir = -1, .rest = BUF_INIT(MAX_LENGTH)};
	int r = 0;

	*ret = BENEATH_NULL;
	if (path.n == 0)
		return -ENOENT;
	if (path.p[0] != '/' && base.n) {
		r = buf_add_str(&w.rest, base);
		if (r == 0)
			r = buf_add_char(&w.rest, '/');
	}
	if (r == 0)
		r = buf_add_str(&w.rest, path);
	r = r == -E2BIG ? -ENAMETOOLONG : r;
	if (r == 0)
		r = walk(&w, flags, ret);
	fd_close(w.dir);
	free(w.parents);
	buf_done(&w.rest);
	return r;
}

int beneath_find(int root, struct str base, struct str path, unsigned flags, struct beneath *ret)
{
	int r = -ESTALE;

	for (int i = 0; i < MAX_TRIES && r == -ESTALE; i++)
		r = find_once(root, base, path, flags, ret);
	return r;
}

void beneath_done(struct beneath *b)
{
	b->dir = fd_close(b->dir);
}

int beneath_open(int root, struct str base, struct str path, int flags)
{
	int r = -ESTALE;

	flags |= O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	for (int i = 0; i < MAX_TRIES; i++) {
		_cleanup_(beneath_donep) struct beneath at = BENEATH_NULL;
		int fd;

		r = beneath_find(root, base, path, BENEATH_FOLLOW, &at);
		if (r < 0)
			return r;
		fd = openat(at.dir, at.name[0] ? at.name : ".", flags);
		if (fd >= 0)
			return fd;
		r = -errno;
		/* ELOOP: a link has just taken its place, so try again. */
		if (r != -ELOOP)
			return r;
	}
	return r;
}

int beneath_directory(int root, struct str path, bool make)
{
	_cleanup_fd_ int dir = openat(root, ".", DIRECTORY);
	struct str component;

	if (dir < 0)
		return -errno;
	while (beneath_next(&path, &component)) {
		char name[BENEATH_NAME_MAX + 1];
		struct stat st;
		int fd;

		if (component.n > BENEATH_NAME_MAX)
			return -ENAMETOOLONG;
		if (str_eq(component, STR("..")))
			return -EXDEV;
		memcpy(name, component.p, component.n);
		name[component.n] = '\0';
		fd = openat(dir, name, DIRECTORY);
		if (fd < 0 && errno == ENOENT && make) {
			if (mkdirat(dir, name, 0777) < 0 && errno != EEXIST)
				return -errno;
			fd = openat(dir, name, DIRECTORY);
		}
		if (fd < 0) {
			int r = -errno;

			if (r == -ENOTDIR && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
				S_ISLNK(st.st_mode))
				r = -ELOOP;
			return r;
		}
		fd_close(dir);
		dir = fd;
	}
	return TAKE_FD(dir);
}
