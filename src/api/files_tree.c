/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a tree travels as a tar stream, made and taken apart on our side by the same
 * code as on the other (files/tree.h). On the way out of a room the stream is whatever the room
 * likes; tree_put sees to it that nothing lands outside the directory. */
#include "api/files.h"
#include "base/fd.h"
#include "base/fs.h"
#include "files/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "a/b/c" -> directory "a/b" (heap; "/" or "." where there is none) and name "c" (a view, "" for a
 * path without one). */
static char *split_path(const char *path, struct str *ret_name)
{
	struct str s = str_from(path);
	size_t at;

	while (s.n > 1 && s.p[s.n - 1] == '/')
		s.n--;
	at = s.n;
	while (at > 0 && s.p[at - 1] != '/')
		at--;
	*ret_name = str_from_index(s, at);
	if (at == 0)
		return strdup(".");
	return str_dup(at == 1 ? STR("/") : str_prefix(s, at - 1));
}

static int host_error(struct cloche_err *err, int errnum, const char *verb, const char *path)
{
	const struct files_error e = {.sys_errno = errnum};

	return files_tell(err, verb, path, &e);
}

/* What is at a path of the host. */
struct place {
	int dir;
	char *name; /* "": dir itself */
	bool is_directory;
};

static void place_done(struct place *p)
{
	p->dir = fd_close(p->dir);
	free(p->name);
}

static int find_source(const char *path, struct place *ret, struct cloche_err *err)
{
	_cleanup_(freep) char *dir = NULL;
	struct str name;
	struct stat st;

	/* A link is copied as one, here as below: a room may have left it in what it can write. */
	ret->dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (ret->dir >= 0) {
		ret->is_directory = true;
		ret->name = strdup("");
		return ret->name ? 0 : err_nomem(err);
	}
	dir = split_path(path, &name);
	ret->name = str_dup(name);
	if (!dir || !ret->name)
		return err_nomem(err);
	ret->dir = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (ret->dir < 0 || fstatat(ret->dir, ret->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return host_error(err, errno, "read", path);
	return 0;
}

struct upload {
	struct files_run run;
	struct cloche_err *err;
	int r; /* of the last files_send */
};

static int send_piece(void *user, const char *p, size_t n, struct files_error *e)
{
	struct upload *u = user;

	u->r = files_send(&u->run, str_make(p, n), u->err);
	return u->r == 0 ? 0 : files_fail(e, ECANCELED, STR_NULL, NULL);
}

static int upload(struct upload *u, struct tree_get *t, const char *host_from)
{
	struct files_error e = {0};
	int r = tree_get(t, &e);

	if (u->r < 0)
		return u->r;
	if (r < 0 && u->r == 0) {
		files_give_up(&u->run);
		return files_tell(u->err, "read", host_from, &e);
	}
	if (u->r == 0)
		r = files_send_end(&u->run, u->err);
	else
		r = 0;
	return r < 0 ? r : files_finish(&u->run, u->err);
}

/* Makes the directory that a tree becomes, and says which it is: it may lie in the tree itself. */
static int prepare_target(cloche_files *f, const char *to, struct tree_get *t,
	struct files_request *q, struct cloche_err *err)
{
	cloche_file_stat st;
	int r = cloche_files_stat(f, to, true, &st, err);

	if (r == -E_NOT_FOUND) {
		q->flags |= FILES_IS_NEW;
		r = cloche_files_mkdir(f, to, 0700, true, err);
		if (r == 0)
			r = cloche_files_stat(f, to, true, &st, err);
	}
	if (r == 0) {
		t->device = st.device;
		t->inode = st.inode;
	}
	return r;
}

int cloche_files_upload(cloche_files *f, const char *host_from, const char *to,
	cloche_files_moved *ret, cloche_err *err)
{
	struct place from = {.dir = -1};
	_cleanup_(freep) char *parent = NULL;
	struct str name;
	struct upload u = {.run = {.f = f, .verb = "copy to", .path = to}, .err = err};
	struct files_request q = {.op = FILES_OP_TAR_PUT, .flags = FILES_OWNERS};
	struct tree_get t = {.own = true, .sink = send_piece, .user = &u, .as = STR(".")};
	int r = find_source(host_from, &from, err);

	parent = split_path(to, &name);
	if (r == 0 && !parent)
		r = err_nomem(err);
	if (r == 0 && !from.is_directory && name.n == 0)
		r = host_error(err, EISDIR, "copy to", to);
	if (r == 0) {
		t.dir = from.dir;
		t.name = from.name;
		q.path = str_from(from.is_directory ? to : parent);
		if (!from.is_directory)
			t.as = name;
		else
			r = prepare_target(f, to, &t, &q, err);
	}
	if (r == 0)
		r = files_begin(&u.run, &q, err);
	if (r == 0)
		r = upload(&u, &t, host_from);
	if (r == 0 && ret)
		*ret = (cloche_files_moved){t.moved.entries, t.moved.bytes, t.moved.left_out};
	place_done(&from);
	return r;
}

struct download {
	struct tree_put *put;
	const char *host_to;
};

static int on_piece(struct files_run *run, const struct chan_frame *frame, struct cloche_err *err)
{
	struct download *d = run->user;
	struct str data = frame->payload;
	struct files_error e = {0};

	if (frame->type != FILES_DATA || data.n == 0 || data.n > FILES_CHUNK)
		return files_malformed(run->f, err);
	files_progressed(run->f, data.n);
	if (tree_put_feed(d->put, data.p, data.n, &e) < 0)
		return files_tell(err, "write", d->host_to, &e);
	return 0;
}

/* What is closed to others in new files; asking umask() would change it under other threads. */
static uint32_t own_umask(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(16384);
	unsigned mask;
	char *at;

	if (fs_read_file(AT_FDCWD, "/proc/self/status", &b, NULL) < 0)
		return 077;
	at = buf_cstr(&b);
	at = at ? strstr(at, "\nUmask:") : NULL;
	return at && sscanf(at, " Umask: %o", &mask) == 1 ? mask & 0777 : 077;
}

/* Opens where it shall go; what is there is merged with or replaced. */
static int open_target(const char *path, bool is_directory, struct tree_put_options *ret,
	char **single, struct cloche_err *err)
{
	static const struct files_error link = {
		.sys_errno = ELOOP, .why = "a symbolic link is there"};
	_cleanup_(freep) char *dir = NULL;
	struct str name;
	struct stat st;

	ret->closed = own_umask();
	if (is_directory) {
		if (mkdir(path, 0777) == 0)
			ret->dir_is_new = true;
		else if (errno != EEXIST)
			return host_error(err, errno, "make directory", path);
		/* A link that a room has left there would lead anywhere. */
		ret->dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (ret->dir < 0 && lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
			return files_tell(err, "write", path, &link);
	} else {
		dir = split_path(path, &name);
		*single = str_dup(name);
		if (!dir || !*single)
			return err_nomem(err);
		if (name.n == 0)
			return host_error(err, EISDIR, "write", path);
		ret->single = *single;
		ret->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	return ret->dir < 0 ? host_error(err, errno, "open", path) : 0;
}

static int download(cloche_files *f, const char *from, struct download *d, const struct stat *into,
	uint64_t *ret_left_out, struct cloche_err *err)
{
	const struct files_request q = {.op = FILES_OP_TAR_GET,
		.flags = into ? FILES_CONTENTS : 0,
		.offset = into ? into->st_dev : 0,
		.length = into ? into->st_ino : 0,
		.path = str_from(from)};
	struct files_run run = {
		.f = f, .verb = "copy from", .path = from, .answer = on_piece, .user = d};
	struct files_error e = {0};
	int r = files_do(&run, &q, err);

	if (r < 0)
		return r;
	*ret_left_out = run.moved.left_out;
	return tree_put_finish(d->put, &e) < 0 ? files_tell(err, "write", d->host_to, &e) : 0;
}

int cloche_files_download(cloche_files *f, const char *from, const char *host_to,
	cloche_files_moved *ret, cloche_err *err)
{
	struct tree_put_options o = {.dir = -1};
	_cleanup_(freep) char *single = NULL;
	struct download d = {.host_to = host_to};
	cloche_file_stat st;
	uint64_t left_out = 0;
	struct stat into;
	int r = cloche_files_stat(f, from, false, &st, err);

	/* As on the way in: a link to a directory stands for it. */
	if (r == 0 && st.type == CLOCHE_NODE_SYMLINK) {
		cloche_file_stat target;

		if (cloche_files_stat(f, from, true, &target, NULL) == 0 &&
			target.type == CLOCHE_NODE_DIRECTORY)
			st = target;
	}
	if (r == 0)
		r = open_target(host_to, st.type == CLOCHE_NODE_DIRECTORY, &o, &single, err);
	if (r == 0) {
		d.put = tree_put_new(&o);
		r = d.put ? 0 : err_nomem(err);
	}
	if (r == 0 && fstat(o.dir, &into) < 0)
		r = host_error(err, errno, "open", host_to);
	if (r == 0)
		r = download(f, from, &d, single ? NULL : &into, &left_out, err);
	if (r == 0 && ret) {
		const struct files_moved *m = tree_put_moved(d.put);

		*ret = (cloche_files_moved){m->entries, m->bytes, left_out};
	}
	tree_put_free(d.put);
	fd_close(o.dir);
	return r;
}
