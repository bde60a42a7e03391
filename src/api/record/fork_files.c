/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a room's own files are the changes of its root, which cloche_instance_diff
 * lists, and a few places that are in its memory. All of them go as tar streams from a file worker
 * in one room to one in the other, which treats them like any untrusted archive: nothing is opened
 * on the host, and nothing has to be trusted. The streams are passed on in pieces as they come. */
#include "api/record/fork.h"
#include "base/strv.h"
#include "fileclient/session.h"
#include "fs/fs.h"
#include <cloche/diff.h>

#include <errno.h>
#include <stdio.h>

#define ROOM_OWN "/run/cloche"
enum { NAMES_MAX = 100000, DEEPEST = 64 };

/* These are in the room's memory, so cloche_instance_diff does not list them. */
static const char *const places[] = {"/tmp", "/run", "/dev/shm"};

/* --- one tree --- */

struct pass {
	struct files_run put;
	int r; /* of the last files_send */
};

static int on_piece(struct files_run *run, const struct chan_frame *frame, struct cloche_err *err)
{
	struct pass *p = run->user;

	if (frame->type != FILES_DATA || frame->payload.n == 0 || frame->payload.n > FILES_CHUNK)
		return files_malformed(run->f, err);
	files_progressed(run->f, frame->payload.n);
	p->r = files_send(&p->put, frame->payload, err);
	return p->r;
}

static char *parent_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash > path ? str_dup(str_make(path, (size_t)(slash - path))) : strdup("/");
}

/* Copy what is at path to the same path. contents: only what is in it, for a directory that both
 * have. */
static int copy_tree(struct fork_copy *c, const char *path, bool contents, struct cloche_err *err)
{
	_cleanup_(freep) char *into = contents ? strdup(path) : parent_of(path);
	const struct files_request q = {.op = FILES_OP_TAR_GET,
		.flags = contents ? FILES_CONTENTS : 0,
		.path = str_from(path)};
	const struct files_request put = {
		.op = FILES_OP_TAR_PUT, .flags = FILES_OWNERS, .path = str_from(into)};
	struct pass p = {.put = {.f = c->to, .verb = "copy to", .path = path}};
	struct files_run get = {
		.f = c->from, .verb = "copy", .path = path, .answer = on_piece, .user = &p};
	int r;

	if (!into)
		return err_nomem(err);
	r = files_begin(&p.put, &put, err);
	if (r < 0)
		return r;
	r = files_do(&get, &q, err);
	if (p.r < 0)
		return p.r;
	if (r < 0) {
		files_give_up(&p.put);
		return r;
	}
	c->left_out += get.moved.left_out;
	if (p.r == 0)
		r = files_send_end(&p.put, err);
	return r < 0 ? r : files_finish(&p.put, err);
}

/* --- what is mounted --- */

static bool is_below(const char *path, const char *dir)
{
	const char *below = fs_below(path, dir);

	return below && below[0];
}

/* Return whether path is in a mount or, if below, whether a mount is in path. ROOM_OWN counts as a
 * mount. */
static bool is_mounted_in(const cloche_sandbox *sb, const char *path, bool below)
{
	if (below ? is_below(ROOM_OWN, path) : fs_is_within(path, ROOM_OWN))
		return true;
	for (size_t i = 0; i < sb->mounts_n; i++) {
		const char *target = sb->mounts[i].target;

		if (below ? is_below(target, path) : fs_is_within(path, target))
			return true;
	}
	return false;
}

/* The same for the second paths of mounts: nothing is copied from there. */
static bool is_second_in(const cloche_sandbox *sb, const char *path, bool below)
{
	for (size_t i = 0; i < sb->mounts_n; i++) {
		const char *also = sandbox_second_path(sb, &sb->mounts[i]);

		if (also && (below ? is_below(also, path) : fs_is_within(path, also)))
			return true;
	}
	return false;
}

/* --- a place of which parts may be mounted --- */

struct names {
	char **all;
	size_t n;
	int r;
};

static bool take_name(const char *name, const cloche_file_stat *st, void *user)
{
	struct names *names = user;

	names->r = names->n++ < NAMES_MAX ? strv_add(&names->all, str_from(name)) : -E2BIG;
	return names->r == 0;
}

static int copy_place(struct fork_copy *c, const char *path, int depth, struct cloche_err *err);

static int copy_parts(struct fork_copy *c, const char *path, int depth, struct cloche_err *err)
{
	struct names names = {0};
	int r = cloche_files_list(c->from, path, take_name, &names, err);

	if (r == 0 && names.r < 0)
		r = err_set(err, E_LIMIT, "%s: too many entries beside what is mounted", path);
	for (size_t i = 0; r == 0 && names.all && names.all[i]; i++) {
		_cleanup_(freep) char *one = NULL;

		if (asprintf(&one, "%s/%s", path, names.all[i]) < 0) {
			one = NULL;
			r = err_nomem(err);
		} else if (!is_mounted_in(c->becomes, one, false) &&
			   !is_second_in(c->made, one, false)) {
			r = copy_place(c, one, depth + 1, err);
		}
	}
	strv_free(names.all);
	return r;
}

static int copy_place(struct fork_copy *c, const char *path, int depth, struct cloche_err *err)
{
	cloche_file_stat st;
	int r = cloche_files_stat(c->from, path, false, &st, err);

	if (r == -E_NOT_FOUND) {
		err_clear(err);
		return 0;
	}
	if (r < 0)
		return r;
	if (st.type == CLOCHE_NODE_DIRECTORY &&
		(is_mounted_in(c->becomes, path, true) || is_second_in(c->made, path, true))) {
		if (depth >= DEEPEST)
			return err_set(err, E_LIMIT, "%s: too deep", path);
		return copy_parts(c, path, depth, err);
	}
	switch (st.type) {
	case CLOCHE_NODE_DIRECTORY:
		r = cloche_files_mkdir(c->to, path, st.mode & 07777, true, err);
		return r < 0 ? r : copy_tree(c, path, true, err);
	case CLOCHE_NODE_FILE:
	case CLOCHE_NODE_SYMLINK:
	case CLOCHE_NODE_FIFO:
		return copy_tree(c, path, false, err);
	case CLOCHE_NODE_SOCKET:
	case CLOCHE_NODE_CHAR_DEVICE:
	case CLOCHE_NODE_BLOCK_DEVICE:
	default:
		c->left_out++;
		return 0;
	}
}

/* --- the changes of the root --- */

struct changes {
	struct fork_copy *c;
	char *whole; /* a directory that was copied with everything in it */
	struct cloche_err *err;
	int r;
};

/* Remove what the original has no more. Its room could not remove a directory with a mount in it,
 * and the fork has no other mounts. If one is there all the same, what lies in it is the host's. */
static int remove_there(struct fork_copy *c, const char *path, struct cloche_err *err)
{
	if (is_mounted_in(c->becomes, path, true))
		return err_set(err, E_UNSUPPORTED, "%s was removed, but has a mount in it", path);
	return cloche_files_remove(c->to, path, true, err);
}

/* Apply the change of a directory. If both have it, only its mode is copied; changes in it are
 * listed separately. */
static int change_directory(
	struct fork_copy *c, const cloche_change *change, bool *ret_new, struct cloche_err *err)
{
	cloche_file_stat st;
	int r = cloche_files_stat(c->to, change->path, false, &st, err);

	*ret_new = r == -E_NOT_FOUND || (r == 0 && st.type != CLOCHE_NODE_DIRECTORY);
	if (*ret_new) {
		err_clear(err);
		return r == 0 ? remove_there(c, change->path, err) : 0;
	}
	if (r == 0 && (st.mode & 07777) != change->mode)
		r = cloche_files_chmod(c->to, change->path, change->mode, err);
	return r;
}

static int copy_change(struct changes *s, const cloche_change *change)
{
	struct fork_copy *c = s->c;
	bool is_new = true;
	int r = 0;

	if (change->kind == CLOCHE_CHANGE_DELETED)
		return remove_there(c, change->path, s->err);
	if (change->type == CLOCHE_FILE_DIRECTORY)
		r = change_directory(c, change, &is_new, s->err);
	else if (change->kind == CLOCHE_CHANGE_CHANGED)
		/* It may have been a directory. */
		r = remove_there(c, change->path, s->err);
	if (r < 0 || !is_new)
		return r;
	if (change->type != CLOCHE_FILE_DIRECTORY || is_mounted_in(c->becomes, change->path, true))
		return copy_place(c, change->path, 0, s->err);
	free(s->whole);
	s->whole = strdup(change->path);
	return s->whole ? copy_tree(c, change->path, false, s->err) : err_nomem(s->err);
}

static bool on_change(const cloche_change *change, void *user)
{
	struct changes *s = user;

	if (strcmp(change->path, "/") == 0 || (s->whole && is_below(change->path, s->whole)) ||
		is_mounted_in(s->c->made, change->path, false))
		return true;
	s->r = copy_change(s, change);
	return s->r == 0;
}

/* Make the copy of a mount that has two paths known by the second one, too. A record does not name
 * it, as it is this machine's. */
static int link_second(struct fork_copy *c, const struct room_mount *m, struct cloche_err *err)
{
	const char *also = sandbox_second_path(c->made, m);
	_cleanup_(freep) char *around = also ? parent_of(also) : NULL;
	struct files_observer *observer = c->to->observer;
	int r;

	if (!also || is_mounted_in(c->becomes, also, false) ||
		is_mounted_in(c->becomes, also, true))
		return 0;
	c->to->observer = NULL;
	r = around ? cloche_files_mkdir(c->to, around, 0755, true, err) : err_nomem(err);
	if (r == 0)
		r = cloche_files_symlink(c->to, m->target, also, err);
	c->to->observer = observer;
	return r;
}

int fork_copy_files(struct fork_copy *c, struct cloche_err *err)
{
	struct changes s = {.c = c, .err = err};
	int r = cloche_instance_diff(c->instance, on_change, &s, err);

	free(s.whole);
	if (s.r < 0)
		return s.r;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(places); i++)
		if (!is_mounted_in(c->made, places[i], false))
			r = copy_place(c, places[i], 0, err);
	/* What only the original has mounted becomes the fork's own. */
	for (size_t i = 0; r == 0 && i < c->made->mounts_n; i++) {
		const char *target = c->made->mounts[i].target;

		if (!is_mounted_in(c->becomes, target, false)) {
			r = copy_place(c, target, 0, err);
			if (r == 0)
				r = link_second(c, &c->made->mounts[i], err);
		}
	}
	return r;
}
