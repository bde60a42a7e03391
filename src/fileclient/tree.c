/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a tree travels as a tar stream, which both sides make and unpack with the
 * same code (files/tree.h). A stream from a room may hold anything; tree_put makes sure that
 * nothing lands outside the directory. */
#include "files/tree.h"
#include "base/fd.h"
#include "fileclient/session.h"
#include "fs/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Split "a/b/c" into the directory "a/b" (heap; "/" or "." if there is none) and the name "c" (a
 * view, "" for a path without one). */
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

/* Find a path of the host. A link at the end is not followed, as in the tree below. */
static int find_source(
	const char *path, struct hostpath *ret, bool *ret_is_directory, struct cloche_err *err)
{
	struct stat st;
	int dir, r = files_host_find(path, "copy", ret, err);

	if (r < 0)
		return r;
	dir = openat(ret->dir, ret->name[0] ? ret->name : ".",
		O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	*ret_is_directory = dir >= 0;
	if (dir >= 0) {
		fd_close(ret->dir);
		*ret = (struct hostpath){.dir = dir};
	} else if (fstatat(ret->dir, ret->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		return files_host_error(err, errno, "read", path);
	}
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

/* Make the target directory of a tree and get its identity, as it may lie inside the tree. */
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
	_cleanup_(hostpath_donep) struct hostpath from = HOSTPATH_NULL;
	_cleanup_(freep) char *parent = NULL;
	bool is_directory = false;
	struct str name;
	struct upload u = {.run = {.f = f, .verb = "copy to", .path = to}, .err = err};
	struct files_request q = {.op = FILES_OP_TAR_PUT, .flags = FILES_OWNERS};
	struct tree_get t = {.own = true, .sink = send_piece, .user = &u, .as = STR(".")};
	int r = find_source(host_from, &from, &is_directory, err);

	parent = split_path(to, &name);
	if (r == 0 && !parent)
		r = err_nomem(err);
	if (r == 0 && !is_directory && name.n == 0)
		r = files_host_error(err, EISDIR, "copy to", to);
	if (r == 0) {
		t.dir = from.dir;
		t.name = from.name;
		q.path = str_from(is_directory ? to : parent);
		if (!is_directory)
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

/* Open the target. An existing directory is merged with, a file is replaced. */
static int open_target(const char *path, bool is_directory, struct tree_put_options *ret,
	struct hostpath *at, struct cloche_err *err)
{
	static const struct files_error link = {
		.sys_errno = ELOOP, .why = "a symbolic link is there"};
	const char *name;
	struct stat st;
	int r = files_host_find(path, "write", at, err);

	if (r < 0)
		return r;
	name = at->name[0] ? at->name : ".";
	ret->closed = fs_umask();
	if (is_directory) {
		if (at->name[0] && mkdirat(at->dir, name, 0777) == 0)
			ret->dir_is_new = true;
		else if (at->name[0] && errno != EEXIST)
			return files_host_error(err, errno, "make directory", path);
	} else if (!at->name[0]) {
		return files_host_error(err, EISDIR, "write", path);
	} else {
		ret->single = at->name;
		name = ".";
	}
	/* Do not follow a link that a room may have left there. */
	ret->dir = openat(at->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (ret->dir >= 0)
		return 0;
	if (fstatat(at->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
		return files_tell(err, "write", path, &link);
	return files_host_error(err, errno, "open", path);
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
	_cleanup_(hostpath_donep) struct hostpath at = HOSTPATH_NULL;
	struct tree_put_options o = {.dir = -1};
	struct download d = {.host_to = host_to};
	cloche_file_stat st;
	uint64_t left_out = 0;
	struct stat into;
	int r = cloche_files_stat(f, from, false, &st, err);

	/* A link to a directory stands for the directory. */
	if (r == 0 && st.type == CLOCHE_NODE_SYMLINK) {
		cloche_file_stat target;

		if (cloche_files_stat(f, from, true, &target, NULL) == 0 &&
			target.type == CLOCHE_NODE_DIRECTORY)
			st = target;
	}
	if (r == 0)
		r = open_target(host_to, st.type == CLOCHE_NODE_DIRECTORY, &o, &at, err);
	if (r == 0) {
		d.put = tree_put_new(&o);
		r = d.put ? 0 : err_nomem(err);
	}
	if (r == 0 && fstat(o.dir, &into) < 0)
		r = files_host_error(err, errno, "open", host_to);
	if (r == 0)
		r = download(f, from, &d, o.single ? NULL : &into, &left_out, err);
	if (r == 0 && ret) {
		const struct files_moved *m = tree_put_moved(d.put);

		*ret = (cloche_files_moved){m->entries, m->bytes, left_out};
	}
	tree_put_free(d.put);
	fd_close(o.dir);
	return r;
}
