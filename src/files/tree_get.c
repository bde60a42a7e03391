/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: one directory is open at a time, so that a tree may be of any depth. The way
 * back is "..", but only to the directory (device and inode) from which we came. If ".." leads
 * elsewhere, the tree was moved, and the walk ends. Links are never followed. The type of a file is
 * that of the opened file, not of what the name meant a moment before.
 *
 * Memory holds the names in each directory on the way from the top, and the first name of each file
 * that has several. */
#include "base/fd.h"
#include "base/fs.h"
#include "base/hash.h"
#include "files/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

struct first_name {
	struct {
		uint64_t device, inode;
	} key;
	char *path;
	UT_hash_handle hh;
};

struct level {
	uint64_t device, inode;
	size_t path_n; /* length of the directory's own path */
	struct strs {
		char **v;
		size_t n, at;
	} names;
};

struct getter {
	struct tree_get *t;
	struct files_error *e;
	int dir;
	struct buf path;
	struct level *levels;
	size_t depth, cap;
	struct first_name *firsts;
	char *chunk;
	size_t chunk_n;
};

static int getter_fail(struct getter *g, int errnum, const char *why)
{
	return files_fail(g->e, errnum, buf_str(&g->path), why);
}

static int flush(struct getter *g)
{
	int r = g->chunk_n ? g->t->sink(g->t->user, g->chunk, g->chunk_n, g->e) : 0;

	g->chunk_n = 0;
	return r;
}

static int put(struct getter *g, struct str s)
{
	while (s.n) {
		size_t n = MIN(s.n, FILES_CHUNK - g->chunk_n);
		int r;

		memcpy(g->chunk + g->chunk_n, s.p, n);
		g->chunk_n += n;
		s = str_from_index(s, n);
		if (g->chunk_n == FILES_CHUNK) {
			r = flush(g);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int put_entry(struct getter *g, enum tar_type type, const struct stat *st, struct str link)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(4 * TAR_MAX_EXTENDED);
	const struct tar_entry entry = {.type = type,
		.path = buf_str(&g->path),
		.link = link,
		.mode = st->st_mode & 07777,
		.uid = g->t->own ? 0 : st->st_uid,
		.gid = g->t->own ? 0 : st->st_gid,
		.size = type == TAR_FILE ? (uint64_t)st->st_size : 0,
		.mtime_sec = st->st_mtim.tv_sec,
		.mtime_nsec = (uint32_t)st->st_mtim.tv_nsec};
	int r = tar_write_entry(&b, &entry);

	if (r < 0)
		return getter_fail(g, r == -E2BIG ? ENAMETOOLONG : -r, NULL);
	g->t->moved.entries++;
	return put(g, buf_str(&b));
}

/* Write exactly size bytes, even if the file changes meanwhile. */
static int put_data(struct getter *g, int fd, uint64_t size)
{
	static const char zero[TAR_BLOCK];
	uint64_t left = size;
	bool ended = false;
	size_t padding = (size_t)(-size % TAR_BLOCK);

	while (left > 0) {
		size_t n = FILES_CHUNK - g->chunk_n;
		ssize_t got;
		int r;

		n = left < n ? (size_t)left : n;
		got = ended ? 0 : read(fd, g->chunk + g->chunk_n, n);
		if (got < 0)
			return getter_fail(g, errno, NULL);
		if (got == 0) {
			ended = true;
			memset(g->chunk + g->chunk_n, 0, n);
			got = (ssize_t)n;
		}
		g->chunk_n += (size_t)got;
		left -= (uint64_t)got;
		r = g->chunk_n == FILES_CHUNK ? flush(g) : 0;
		if (r < 0)
			return r;
	}
	g->t->moved.bytes += size;
	return put(g, str_make(zero, padding));
}

/* For a file with more than one name, set *ret to the path under which it was written before, or
 * NULL. */
static int find_first(struct getter *g, const struct stat *st, const char **ret)
{
	struct first_name *f, *found;

	*ret = NULL;
	if (st->st_nlink < 2)
		return 0;
	f = calloc(1, sizeof(*f));
	if (!f)
		return getter_fail(g, ENOMEM, NULL);
	f->key.device = st->st_dev;
	f->key.inode = st->st_ino;
	HASH_FIND(hh, g->firsts, &f->key, sizeof(f->key), found);
	if (found) {
		free(f);
		*ret = found->path;
		return 0;
	}
	f->path = str_dup(buf_str(&g->path));
	if (f->path)
		HASH_ADD(hh, g->firsts, key, sizeof(f->key), f);
	if (!f->path || !f->hh.tbl) {
		free(f->path);
		free(f);
		return getter_fail(g, ENOMEM, NULL);
	}
	return 0;
}

static int get_file(struct getter *g, const char *name)
{
	_cleanup_fd_ int fd =
		openat(g->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	const char *first;
	struct stat st;
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : getter_fail(g, errno, NULL);
	if (fstat(fd, &st) < 0)
		return getter_fail(g, errno, NULL);
	if (!S_ISREG(st.st_mode))
		return getter_fail(g, ESTALE, "it became something else while it was read");
	r = find_first(g, &st, &first);
	if (r < 0)
		return r;
	if (first)
		return put_entry(g, TAR_HARDLINK, &st, str_from(first));
	r = put_entry(g, TAR_FILE, &st, STR_NULL);
	return r < 0 ? r : put_data(g, fd, (uint64_t)st.st_size);
}

static int get_link(struct getter *g, const char *name, const struct stat *st)
{
	char target[FILES_MAX_TARGET];
	ssize_t n = readlinkat(g->dir, name, target, sizeof(target));

	if (n < 0)
		return errno == ENOENT ? 0 : getter_fail(g, errno, NULL);
	return put_entry(g, TAR_SYMLINK, st, str_make(target, (size_t)n));
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void names_free(struct strs *s)
{
	for (size_t i = s->at; i < s->n; i++)
		free(s->v[i]);
	free(s->v);
	*s = (struct strs){0};
}

static int add_name(struct strs *s, size_t *cap, const char *name)
{
	char **v = array_room(s->v, s->n, cap, sizeof(*v));

	if (!v)
		return -ENOMEM;
	s->v = v;
	s->v[s->n] = strdup(name);
	if (!s->v[s->n])
		return -ENOMEM;
	s->n++;
	return 0;
}

static int read_names(int fd, struct strs *ret)
{
	_cleanup_(fs_list_closep) DIR *dir = fs_list(fd, ".");
	struct dirent *d;
	size_t cap = 0;
	int r = 0;

	*ret = (struct strs){0};
	if (!dir)
		return -errno;
	while (r == 0 && (d = fs_list_next(dir)))
		r = add_name(ret, &cap, d->d_name);
	if (r == 0)
		r = -errno;
	if (r < 0)
		names_free(ret);
	else if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_bytes);
	return r;
}

/* Enter the directory; its names come next. */
static int get_directory(struct getter *g, const char *name)
{
	_cleanup_fd_ int fd = openat(g->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct level *l;
	struct stat st;
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : getter_fail(g, errno, NULL);
	if (fstat(fd, &st) < 0)
		return getter_fail(g, errno, NULL);
	if (g->t->inode && st.st_ino == g->t->inode && st.st_dev == g->t->device)
		return getter_fail(g, EINVAL, "a directory cannot be copied into itself");
	r = put_entry(g, TAR_DIRECTORY, &st, STR_NULL);
	if (r < 0)
		return r;
	l = array_room(g->levels, g->depth, &g->cap, sizeof(*l));
	if (!l)
		return getter_fail(g, ENOMEM, NULL);
	g->levels = l;
	l += g->depth;
	*l = (struct level){.device = st.st_dev, .inode = st.st_ino, .path_n = buf_len(&g->path)};
	r = read_names(fd, &l->names);
	if (r < 0)
		return getter_fail(g, -r, NULL);
	g->depth++;
	fd_close(g->dir);
	g->dir = TAKE_FD(fd);
	return 0;
}

static int get_one(struct getter *g, const char *name)
{
	struct stat st;

	if (fstatat(g->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT && g->depth ? 0 : getter_fail(g, errno, NULL);
	switch (st.st_mode & S_IFMT) {
	case S_IFREG:
		return get_file(g, name);
	case S_IFDIR:
		return get_directory(g, name);
	case S_IFLNK:
		return get_link(g, name, &st);
	case S_IFIFO:
		return put_entry(g, TAR_FIFO, &st, STR_NULL);
	default:
		g->t->moved.left_out++;
		return 0;
	}
}

/* Go back to the directory above. */
static int ascend(struct getter *g)
{
	const struct level *l;
	struct stat st;
	int up;

	names_free(&g->levels[--g->depth].names);
	if (g->depth == 0)
		return 0;
	l = &g->levels[g->depth - 1];
	up = openat(g->dir, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (up < 0)
		return getter_fail(g, errno, NULL);
	fd_close(g->dir);
	g->dir = up;
	if (fstat(up, &st) < 0)
		return getter_fail(g, errno, NULL);
	if (st.st_dev != l->device || st.st_ino != l->inode)
		return getter_fail(g, ESTALE, "it was moved while it was read");
	return 0;
}

static int getter_next(struct getter *g)
{
	struct level *l = &g->levels[g->depth - 1];
	_cleanup_(freep) char *name = NULL;
	int r;

	g->path.tail = g->path.head + l->path_n;
	if (l->names.at == l->names.n)
		return ascend(g);
	name = l->names.v[l->names.at++];
	r = buf_add_char(&g->path, '/');
	if (r == 0)
		r = buf_add_str(&g->path, str_from(name));
	if (r < 0)
		return getter_fail(g, r == -E2BIG ? ENAMETOOLONG : -r, NULL);
	return get_one(g, name);
}

static void done(struct getter *g)
{
	struct first_name *f, *tmp;

	fd_close(g->dir);
	while (g->depth > 0)
		names_free(&g->levels[--g->depth].names);
	free(g->levels);
	HASH_ITER (hh, g->firsts, f, tmp) {
		HASH_DEL(g->firsts, f);
		free(f->path);
		free(f);
	}
	free(g->chunk);
	buf_done(&g->path);
}

int tree_get(struct tree_get *t, struct files_error *e)
{
	struct getter g = {.t = t, .e = e, .path = BUF_INIT(TAR_MAX_NAME)};
	_cleanup_(buf_donep) struct buf end = BUF_INIT(2 * TAR_BLOCK);
	int r;

	g.dir = openat(t->dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	g.chunk = malloc(FILES_CHUNK);
	if (g.dir < 0 || !g.chunk || buf_add_str(&g.path, t->as) < 0)
		r = getter_fail(&g, g.dir < 0 ? errno : ENOMEM, NULL);
	else
		r = get_one(&g, t->name[0] ? t->name : ".");
	while (r == 0 && g.depth > 0)
		r = getter_next(&g);
	if (r == 0 && tar_write_end(&end) < 0)
		r = getter_fail(&g, ENOMEM, NULL);
	if (r == 0)
		r = put(&g, buf_str(&end));
	if (r == 0)
		r = flush(&g);
	done(&g);
	return r;
}
