/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a walk (fs/fswalk.h) that writes each entry when it is met, and a
 * directory when it was opened. So the type of a file or directory is that of what was opened, not
 * of what the name meant a moment before.
 *
 * Memory holds the names in each directory on the way from the top, and the first name of each file
 * that has several. */
#include "base/fd.h"
#include "base/hash.h"
#include "files/tree.h"
#include "fs/fswalk.h"

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

struct getter {
	struct tree_get *t;
	struct files_error *e;
	bool told; /* e says why the walk ended */
	struct buf path;
	size_t as_n; /* length of the top's */
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

static int get_file(struct getter *g, int dir, const char *name)
{
	_cleanup_fd_ int fd =
		openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
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

static int get_link(struct getter *g, int dir, const char *name, const struct stat *st)
{
	char target[FILES_MAX_TARGET];
	ssize_t n = readlinkat(dir, name, target, sizeof(target));

	if (n < 0)
		return errno == ENOENT ? 0 : getter_fail(g, errno, NULL);
	return put_entry(g, TAR_SYMLINK, st, str_make(target, (size_t)n));
}

static int get_directory(struct getter *g, const struct stat *st)
{
	if (g->t->inode && st->st_ino == g->t->inode && st->st_dev == g->t->device)
		return getter_fail(g, EINVAL, "a directory cannot be copied into itself");
	return put_entry(g, TAR_DIRECTORY, st, STR_NULL);
}

/* Anything but a directory. */
static int get_other(struct getter *g, int dir, const char *name, unsigned char type)
{
	struct stat st;

	if (type == DT_REG)
		return get_file(g, dir, name);
	if (type != DT_LNK && type != DT_FIFO) {
		g->t->moved.left_out++;
		return 0;
	}
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : getter_fail(g, errno, NULL);
	if (type == DT_LNK)
		return get_link(g, dir, name, &st);
	return put_entry(g, TAR_FIFO, &st, STR_NULL);
}

static int getter_tell(struct getter *g, int r)
{
	g->told = g->told || r < 0;
	return r;
}

static int get_entry(void *user, const struct fswalk_entry *e)
{
	struct getter *g = user;
	int r;

	g->path.tail = g->path.head + g->as_n;
	r = buf_add_char(&g->path, '/');
	if (r == 0)
		r = buf_add_str(&g->path, str_from(e->path));
	if (r < 0)
		return getter_tell(g, getter_fail(g, r == -E2BIG ? ENAMETOOLONG : -r, NULL));
	return e->type == DT_DIR ? FSWALK_INTO
				 : getter_tell(g, get_other(g, e->dir, e->name, e->type));
}

static int get_entered(void *user, const struct fswalk_entry *e, int fd, const struct stat *st)
{
	return getter_tell(user, get_directory(user, st));
}

static int get_missed(void *user, const struct fswalk_entry *e, int errnum)
{
	return errnum == ENOENT ? 0 : -errnum;
}

static int get_below(struct getter *g, const char *name)
{
	const struct fswalk_how how = {.sorted = true,
		.user = g,
		.entry = get_entry,
		.entered = get_entered,
		.missed = get_missed};
	_cleanup_fd_ int fd =
		openat(g->t->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return getter_fail(g, errno, NULL);
	r = get_directory(g, &st);
	if (r < 0)
		return r;
	r = fswalk(fd, "", &how);
	return r < 0 && !g->told
		       ? getter_fail(g, -r, r == -ESTALE ? "it was moved while it was read" : NULL)
		       : r;
}

static int get_top(struct getter *g)
{
	const char *name = g->t->name[0] ? g->t->name : ".";
	struct stat st;

	if (fstatat(g->t->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return getter_fail(g, errno, NULL);
	return S_ISDIR(st.st_mode)
		       ? get_below(g, name)
		       : get_other(g, g->t->dir, name, (unsigned char)IFTODT(st.st_mode));
}

static void done(struct getter *g)
{
	struct first_name *f, *tmp;

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

	g.chunk = malloc(FILES_CHUNK);
	g.as_n = t->as.n;
	if (!g.chunk || buf_add_str(&g.path, t->as) < 0)
		r = getter_fail(&g, ENOMEM, NULL);
	else
		r = get_top(&g);
	if (r == 0 && tar_write_end(&end) < 0)
		r = getter_fail(&g, ENOMEM, NULL);
	if (r == 0)
		r = put(&g, buf_str(&end));
	if (r == 0)
		r = flush(&g);
	done(&g);
	return r;
}
