/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that move data. */
#include "base/fd.h"
#include "base/hash.h"
#include "files/mode.h"
#include "files/replace.h"
#include "files/tree.h"
#include "fileworker/serve_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int not_regular(const struct stat *st, struct files_error *e)
{
	if (S_ISDIR(st->st_mode))
		return -EISDIR;
	return files_fail(e, EINVAL, STR_NULL, "it is not a regular file");
}

/* Read one frame of data right into the channel's buffer. Return its length, 0 at the end, or
 * -errno. */
static ssize_t send_some(struct server *s, int fd, size_t n, uint64_t offset)
{
	size_t mark;
	struct buf *b = chan_begin(&s->c, FILES_DATA, &mark);
	ssize_t got = -1;
	char *at;

	if (!b)
		return server_break(s, -ENOBUFS);
	if (buf_reserve(b, n, &at) < 0) {
		chan_abort(&s->c, mark);
		return -ENOMEM;
	}
	got = pread(fd, at, n, (off_t)offset);
	if (got <= 0) {
		got = got < 0 ? -errno : 0;
		chan_abort(&s->c, mark);
		return got;
	}
	buf_commit(b, (size_t)got);
	return chan_end(&s->c, mark, NULL, 0) < 0 ? server_break(s, -ENOBUFS) : got;
}

int serve_read(struct server *s, const struct files_request *q, struct files_error *e)
{
	_cleanup_fd_ int fd = beneath_open(s->root, s->base, q->path, O_RDONLY);
	uint64_t at = q->offset, left = q->length;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return not_regular(&st, e);
	if (at > INT64_MAX)
		return -EINVAL;
	while (left > 0) {
		size_t n = left < FILES_CHUNK ? (size_t)left : FILES_CHUNK;
		ssize_t got = send_some(s, fd, n, at);
		int r;

		if (got <= 0)
			return (int)got;
		at += (uint64_t)got;
		left -= (uint64_t)got;
		s->moved.bytes += (uint64_t)got;
		/* The last piece goes out together with DONE. */
		if ((uint64_t)got < n || left == 0)
			continue;
		r = server_flush(s);
		if (r == 0)
			r = server_check(s);
		if (r < 0)
			return r;
	}
	return 0;
}

typedef int (*data_fn)(void *user, const char *p, size_t n, struct files_error *e);

/* Pass the client's data to fn until END. Return 0, or an error, such as -ECANCELED. An error of fn
 * is reported at once, and the rest of the data is thrown away. */
static int take_data(struct server *s, data_fn fn, void *user, int r, struct files_error *e)
{
	for (;;) {
		struct chan_frame f;
		int got;

		if (r < 0 && !s->answered) {
			if (e->sys_errno == 0)
				files_fail(e, -r, STR_NULL, NULL);
			if (files_send_error(&s->c, e) < 0)
				return server_break(s, -ENOBUFS);
			s->answered = true;
			if (server_flush(s) < 0)
				return s->broken_r;
		}
		got = server_recv(s, &f);
		if (got < 0)
			return server_break(s, got);
		chan_frame_done(&f);
		if (f.type == FILES_END && f.payload.n == 0)
			return r;
		if (f.type == FILES_CANCEL && f.payload.n == 0)
			return r < 0 ? r : -ECANCELED;
		if (f.type != FILES_DATA || f.payload.n == 0 || f.payload.n > FILES_CHUNK)
			return server_break(s, -EPROTO);
		if (r == 0)
			r = fn(user, f.payload.p, f.payload.n, e);
		s->moved.bytes += r == 0 ? f.payload.n : 0;
	}
}

static int write_some(void *user, const char *p, size_t n, struct files_error *e)
{
	return fd_write_all(*(const int *)user, p, n);
}

/* Write into the file itself. */
static int write_directly(struct server *s, const struct files_request *q, const struct beneath *at,
	struct files_error *e)
{
	int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	_cleanup_fd_ int fd = -1;
	struct stat st;
	int r = 0;

	flags |= q->flags & FILES_APPEND ? O_APPEND : 0;
	flags |= q->flags & FILES_REPLACE ? 0 : O_EXCL;
	fd = openat(at->dir, at->name, flags, 0666);
	if (fd < 0)
		/* A FIFO without a reader, or a socket. */
		r = errno == ENXIO ? files_fail(e, EINVAL, STR_NULL, "it is not a regular file")
				   : -errno;
	else if (fstat(fd, &st) < 0)
		r = -errno;
	else if (!S_ISREG(st.st_mode))
		r = not_regular(&st, e);
	else if (q->mode != FILES_KEEP_MODE)
		r = files_set_mode(fd, q->mode);
	if (r == 0 && !(q->flags & FILES_APPEND) && ftruncate(fd, 0) < 0)
		r = -errno;
	return take_data(s, write_some, &fd, r, e);
}

/* Give the new file the owner of the old one, if permitted, and its mode unless the request sets
 * one. */
static int dress(const struct files_request *q, const struct stat *old, int fd)
{
	mode_t mask;

	if (old && fchown(fd, old->st_uid, old->st_gid) < 0 && errno != EPERM && errno != EINVAL)
		return -errno;
	if (q->mode != FILES_KEEP_MODE)
		return files_set_mode(fd, q->mode);
	if (old)
		return files_set_mode(fd, old->st_mode & 0777);
	mask = umask(0);
	umask(mask);
	return files_set_mode(fd, 0666 & ~mask);
}

/* Something is mounted on the file that is to be replaced. */
static int mounted(int dir, const char *name, struct files_error *e)
{
	if (faccessat(dir, name, W_OK, AT_EACCESS) < 0 && errno == EROFS)
		return files_fail(e, EROFS, STR_NULL, "it is read-only in this sandbox");
	return files_fail(
		e, EBUSY, STR_NULL, "it is mounted and cannot be replaced, only written in place");
}

/* Write a temporary file next to the old one, which it replaces at the end. */
static int write_atomically(struct server *s, const struct files_request *q,
	const struct beneath *at, struct files_error *e)
{
	_cleanup_(replace_abortp) struct replace new = REPLACE_NULL;
	struct stat st;
	bool exists;
	int r = 0;

	exists = fstatat(at->dir, at->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (!exists && errno != ENOENT)
		r = -errno;
	else if (exists && !(q->flags & FILES_REPLACE))
		r = -EEXIST;
	else if (exists && !S_ISREG(st.st_mode))
		r = not_regular(&st, e);
	if (r == 0)
		r = replace_begin(&new, at->dir, 0600);
	r = take_data(s, write_some, &new.fd, r, e);
	if (r == 0)
		r = dress(q, exists ? &st : NULL, new.fd);
	if (r == 0)
		r = replace_commit(&new, at->name, q->flags & FILES_REPLACE);
	if (r == -EBUSY && !s->answered)
		r = mounted(at->dir, at->name, e);
	return r;
}

int serve_write(struct server *s, const struct files_request *q, struct files_error *e)
{
	_cleanup_(beneath_donep) struct beneath at = BENEATH_NULL;
	unsigned flags = BENEATH_FOLLOW | (q->flags & FILES_PARENTS ? BENEATH_MAKE : 0);
	int r = beneath_find(s->root, s->base, q->path, flags, &at);

	if (r == 0 && (!at.name[0] || at.slash))
		r = -EISDIR;
	if (r < 0)
		return take_data(s, write_some, NULL, r, e);
	if (q->flags & (FILES_APPEND | FILES_IN_PLACE))
		return write_directly(s, q, &at, e);
	return write_atomically(s, q, &at, e);
}

/* --- many small files --- */

/* Directories that were found for the last names, by the text before these. Whoever moves one away
 * meanwhile moves the files with it. */
enum { SMALL_DIRS = 128, SMALL_DIR_TEXT = 256, SMALL_TRIES = 5 };

struct small_dir {
	int fd; /* O_PATH; -1: none */
	size_t n;
	char text[SMALL_DIR_TEXT];
};

struct small_writer {
	struct server *s;
	uint64_t count; /* of files that were written */
	bool named;     /* new files have to have a name while they are written */
	struct small_dir dirs[SMALL_DIRS];
};

/* Write a file that is not there yet. Return -EEXIST if it is. */
static int small_create(
	struct small_writer *w, int dir, const char *name, const struct files_small *m)
{
	bool keep = m->mode == FILES_KEEP_MODE;
	_cleanup_(replace_abortp) struct replace new = REPLACE_NULL;
	int r = replace_begin_new(&new, dir, keep ? 0666 : 0600, w->named);

	if (r == 0)
		r = fd_write_all(new.fd, m->data.p, m->data.n);
	if (r == 0 && !keep)
		r = files_set_mode(new.fd, m->mode);
	if (r == 0)
		r = replace_commit(&new, name, false);
	if (r != -ENOENT || w->named)
		return r;
	/* Before Linux 6.10 only root may name what has no name. */
	w->named = true;
	return small_create(w, dir, name, m);
}

/* Write a file that was there a moment ago. Return 1 if the name is a link. */
static int small_replace(int dir, const char *name, const struct files_small *m,
	const struct stat *st, struct files_error *e)
{
	const struct files_request q = {.mode = m->mode};
	_cleanup_(replace_abortp) struct replace new = REPLACE_NULL;
	int r;

	if (S_ISLNK(st->st_mode))
		return 1;
	if (!S_ISREG(st->st_mode))
		return not_regular(st, e);
	r = replace_begin(&new, dir, 0600);
	if (r == 0)
		r = fd_write_all(new.fd, m->data.p, m->data.n);
	if (r == 0)
		r = dress(&q, st, new.fd);
	if (r == 0)
		r = replace_commit(&new, name, true);
	return r == -EBUSY ? mounted(dir, name, e) : r;
}

/* The room may make the file, or remove it, meanwhile. */
static int small_put(struct small_writer *w, int dir, const char *name, const struct files_small *m,
	struct files_error *e)
{
	int r = -EEXIST;

	for (int i = 0; i < SMALL_TRIES && r == -EEXIST; i++) {
		struct stat st;

		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return small_replace(dir, name, m, &st, e);
		if (errno != ENOENT)
			return -errno;
		r = small_create(w, dir, name, m);
	}
	return r;
}

/* Open the directory of the path, and keep it for others. Return it, borrowed, or -errno. */
static int small_open_dir(
	struct small_writer *w, struct str path, struct str text, char name[BENEATH_NAME_MAX + 1])
{
	struct small_dir *d = &w->dirs[hash_keyed(text.p, text.n) % SMALL_DIRS];
	struct beneath at = BENEATH_NULL;
	int r;

	if (d->fd >= 0 && str_eq(str_make(d->text, d->n), text)) {
		str_copy(name, BENEATH_NAME_MAX + 1, str_from_index(path, text.n));
		return d->fd;
	}
	r = beneath_find(w->s->root, w->s->base, path, BENEATH_MAKE, &at);
	if (r < 0)
		return r;
	fd_close(d->fd);
	d->fd = at.dir;
	d->n = text.n;
	memcpy(d->text, text.p, text.n);
	memcpy(name, at.name, sizeof(at.name));
	return d->fd;
}

static void small_forget_dirs(struct small_writer *w)
{
	for (size_t i = 0; i < SMALL_DIRS; i++)
		w->dirs[i].fd = fd_close(w->dirs[i].fd);
}

/* Follow a link at the end of the path, or report what is wrong with it. */
static int small_put_far(
	struct small_writer *w, struct str path, const struct files_small *m, struct files_error *e)
{
	_cleanup_(beneath_donep) struct beneath at = BENEATH_NULL;
	int r = beneath_find(w->s->root, w->s->base, path, BENEATH_FOLLOW | BENEATH_MAKE, &at);

	if (r == 0 && (!at.name[0] || at.slash))
		r = -EISDIR;
	if (r == 0)
		r = small_put(w, at.dir, at.name, m, e);
	return r > 0 ? -ELOOP : r; /* a link has just taken its place */
}

static int small_write(
	struct small_writer *w, struct str path, const struct files_small *m, struct files_error *e)
{
	char name[BENEATH_NAME_MAX + 1];
	size_t n = path.n;
	struct str last;
	int dir, r;

	while (n > 0 && path.p[n - 1] != '/')
		n--;
	last = str_from_index(path, n);
	if (last.n == 0 || last.n > BENEATH_NAME_MAX || n > SMALL_DIR_TEXT || last.p[0] == '.')
		return small_put_far(w, path, m, e);
	dir = small_open_dir(w, path, str_prefix(path, n), name);
	r = dir < 0 ? dir : small_put(w, dir, name, m, e);
	/* A room may have few descriptors. */
	if (r == -EMFILE)
		small_forget_dirs(w);
	/* The directory may have been removed meanwhile. */
	return r > 0 || r == -EMFILE || r == -ENOENT ? small_put_far(w, path, m, e) : r;
}

static int small_take(void *user, const char *p, size_t n, struct files_error *e)
{
	struct small_writer *w = user;
	struct wire_in in = wire_in(str_make(p, n));
	int r = 0;

	while (r == 0 && in.rest.n > 0) {
		_cleanup_(freep) char *path = NULL;
		struct files_small m;

		if (!message_take(&in, files_small_message(), &m))
			return server_break(w->s, -EPROTO);
		r = server_path(w->s, m.path, &path);
		if (r == 0)
			r = small_write(w, str_from(path), &m, e);
		w->count += r == 0;
	}
	if (r < 0 && e->sys_errno == 0)
		files_fail(e, -r, STR_NULL, NULL);
	if (r < 0)
		snprintf(e->entry, sizeof(e->entry), "%llu", (unsigned long long)w->count);
	return r;
}

int serve_write_small(struct server *s, const struct files_request *q, struct files_error *e)
{
	_cleanup_(freep) struct small_writer *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return take_data(s, small_take, NULL, -ENOMEM, e);
	w->s = s;
	for (size_t i = 0; i < SMALL_DIRS; i++)
		w->dirs[i].fd = -1;
	r = take_data(s, small_take, w, 0, e);
	small_forget_dirs(w);
	return r;
}

/* --- archives --- */

static int send_piece(void *user, const char *p, size_t n, struct files_error *e)
{
	struct server *s = user;
	int r = chan_send(&s->c, FILES_DATA, str_make(p, n), NULL, 0);

	if (r < 0)
		return server_break(s, r);
	r = server_flush(s);
	return r < 0 ? r : server_check(s);
}

int serve_tar_get(struct server *s, const struct files_request *q, struct files_error *e)
{
	_cleanup_(beneath_donep) struct beneath at = BENEATH_NULL;
	struct tree_get t = {
		.sink = send_piece, .user = s, .device = q->offset, .inode = q->length};
	bool contents = q->flags & FILES_CONTENTS;
	int r = beneath_find(s->root, s->base, q->path, contents ? BENEATH_FOLLOW : 0, &at);

	if (r < 0)
		return r;
	t.dir = at.dir;
	t.name = at.name;
	t.as = contents || !at.name[0] ? STR(".") : str_from(at.name);
	r = tree_get(&t, e);
	s->moved = t.moved;
	return r;
}

/* Open the directory, and make it if it is missing. */
static int open_target(struct server *s, struct str path, bool *ret_new)
{
	_cleanup_(beneath_donep) struct beneath at = BENEATH_NULL;
	int r = beneath_find(s->root, s->base, path, BENEATH_FOLLOW | BENEATH_MAKE, &at);

	if (r < 0)
		return r;
	if (at.name[0] && mkdirat(at.dir, at.name, 0777) == 0)
		*ret_new = true;
	else if (at.name[0] && errno != EEXIST)
		return -errno;
	r = openat(at.dir, at.name[0] ? at.name : ".",
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return r < 0 ? -errno : r;
}

static int put_piece(void *user, const char *p, size_t n, struct files_error *e)
{
	return tree_put_feed(user, p, n, e);
}

int serve_tar_put(struct server *s, const struct files_request *q, struct files_error *e)
{
	_cleanup_(tree_put_freep) struct tree_put *t = NULL;
	struct tree_put_options o = {.owners = q->flags & FILES_OWNERS};
	_cleanup_fd_ int dir = open_target(s, q->path, &o.dir_is_new);
	int r = dir < 0 ? dir : 0;

	o.dir = dir;
	o.dir_is_new |= q->flags & FILES_IS_NEW;
	if (r == 0) {
		t = tree_put_new(&o);
		r = t ? 0 : -ENOMEM;
	}
	r = take_data(s, put_piece, t, r, e);
	if (r == 0)
		r = tree_put_finish(t, e);
	if (t)
		s->moved = *tree_put_moved(t);
	return r;
}
