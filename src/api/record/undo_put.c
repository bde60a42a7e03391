/* SPDX-License-Identifier: Apache-2.0 */
/* Putting back what a run changed. Each name is judged once more just before, and gets its former
 * contents by a rename, so it is whole at any instant, and what is done is not done twice. First
 * what the run made is removed, each directory after what is in it; then what it removed or changed
 * comes back, each directory before what is in it. Directories get their modes at the end. */
#include "api/record/undo.h"
#include "base/fd.h"
#include "files/replace.h"
#include "fs/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* --- making things --- */

static int undo_put_piece(void *user, struct str piece, struct cloche_err *err)
{
	int r = fd_write_all(*(const int *)user, piece.p, piece.n);

	return r < 0 ? err_sys(err, -r, "write a file") : 0;
}

static int undo_put_pieces(struct cloche_undo *u, const struct undo_item *it, int fd)
{
	const struct tree_node *n = undo_contents(u, it);
	struct cloche_err err = CLOCHE_ERR_INIT;
	int r = n ? 0 : -EFBIG;

	for (const struct tree_piece *p = n ? n->first : NULL; r == 0 && p; p = p->next) {
		struct str text = str_make(p->text, p->n);

		if (p->is_ref)
			r = tree_stream(&u->was.taker, text, undo_put_piece, &fd, &err);
		else
			r = fd_write_all(fd, text.p, text.n);
	}
	return r;
}

/* For root: it belongs to whom it did, or to the owner of the directory that it is in. */
static void undo_put_owner(const struct undo_look *l, int fd)
{
	struct stat st = l->st;

	if (geteuid() != 0 || (st.st_mode == 0 && fstat(l->dir, &st) < 0))
		return;
	(void)!fchownat(fd, "", st.st_uid, st.st_gid, AT_EMPTY_PATH);
}

/* Open the directory that we have just made. Somebody may have put another one, with something in
 * it, in its place, to get its owner and mode changed. */
static int undo_open_made(const struct undo_look *l, const char *name)
{
	_cleanup_fd_ int fd = openat(l->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_(fs_list_closep) DIR *list = fd < 0 ? NULL : fs_list(fd, ".");
	struct stat st;

	if (!list || fstat(fd, &st) < 0)
		return -errno;
	return st.st_uid != geteuid() || fs_list_next(list) ? -ESTALE : TAKE_FD(fd);
}

/* Make way for what is complete. A file or link that is replaced by one needs none. */
static int undo_clear(const struct undo_item *it, const struct undo_look *l)
{
	bool is_directory = it->now == TREE_DIRECTORY;

	if (!undo_is_still(l))
		return -ESTALE;
	if (it->now == TREE_GONE || (!is_directory && it->old != TREE_DIRECTORY))
		return 0;
	return unlinkat(l->dir, l->name, is_directory ? AT_REMOVEDIR : 0) < 0 ? -errno : 0;
}

static bool undo_goes_over(const struct undo_item *it)
{
	return it->now > TREE_DIRECTORY;
}

static int undo_put_file(
	struct cloche_undo *u, const struct undo_item *it, const struct undo_look *l)
{
	_cleanup_(replace_abortp) struct replace file = REPLACE_NULL;
	struct undo_top *top = it->top;
	int r;

	if (!top->asked_names)
		top->needs_names = replace_needs_name(l->dir);
	top->asked_names = true;
	r = replace_begin_new(&file, l->dir, 0600, top->needs_names);
	if (r == 0)
		r = undo_put_pieces(u, it, file.fd);
	if (r < 0)
		return r;
	undo_put_owner(l, file.fd);
	if (fchmod(file.fd, it->old_mode) < 0)
		return -errno;
	r = undo_clear(it, l);
	return r < 0 ? r : replace_commit(&file, l->name, undo_goes_over(it));
}

static int undo_put_link(
	const struct cloche_undo *u, const struct undo_item *it, const struct undo_look *l)
{
	_cleanup_(buf_donep) struct buf target = BUF_INIT(STATE_PATH_MAX + 1);
	const struct tree_node *n = undo_contents(u, it);
	char name[REPLACE_NAME_MAX];
	int r = n ? tree_contents(&u->was, n, &target, NULL) : -EFBIG;

	if (r != 0 || buf_add_char(&target, '\0') < 0)
		return r < 0 ? r : -ENAMETOOLONG;
	replace_name(name);
	if (symlinkat(buf_data(&target), l->dir, name) < 0)
		return -errno;
	r = undo_clear(it, l);
	if (r == 0)
		return replace_rename(l->dir, name, l->name, undo_goes_over(it));
	unlinkat(l->dir, name, 0);
	return r;
}

static int undo_put_directory(const struct undo_item *it, const struct undo_look *l)
{
	char name[REPLACE_NAME_MAX];
	_cleanup_fd_ int fd = -1;
	int r;

	replace_name(name);
	if (mkdirat(l->dir, name, 0700) < 0)
		return -errno;
	fd = undo_open_made(l, name);
	if (fd >= 0)
		undo_put_owner(l, fd);
	r = fd < 0 ? fd : fd_chmod(fd, it->old_mode | 0700);
	if (r == 0)
		r = undo_clear(it, l);
	if (r == 0)
		r = replace_rename(l->dir, name, l->name, false);
	if (r < 0)
		unlinkat(l->dir, name, AT_REMOVEDIR);
	return r;
}

static int undo_put_mode(const struct undo_look *l, uint32_t mode)
{
	_cleanup_fd_ int fd = openat(l->dir, l->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_ino != l->st.st_ino || st.st_dev != l->st.st_dev || S_ISLNK(st.st_mode))
		return -ESTALE;
	r = fd_chmod(fd, mode);
	if (r < 0 || fstat(fd, &st) < 0)
		return r < 0 ? r : -errno;
	/* Who is not in the group of a directory cannot set that bit, and is not told. */
	return (st.st_mode & mode & 02000) == (mode & 02000) ? 0 : -EPERM;
}

static int undo_remove(const struct undo_item *it, const struct undo_look *l)
{
	if (!undo_is_still(l))
		return -ESTALE;
	return unlinkat(l->dir, l->name, it->now == TREE_DIRECTORY ? AT_REMOVEDIR : 0) < 0 ? -errno
											   : 0;
}

/* --- one item --- */

enum undo_turn { UNDO_OPEN, UNDO_REMOVE, UNDO_MAKE, UNDO_MODES };

/* What is to be done in this turn. Return 0, -errno, or a negative code. */
static int undo_act(
	struct cloche_undo *u, struct undo_item *it, const struct undo_look *l, enum undo_turn turn)
{
	bool is_directory = it->old == TREE_DIRECTORY;

	if (turn == UNDO_OPEN || (turn == UNDO_MODES && it->mode))
		return undo_put_mode(l, it->old_mode | (turn == UNDO_OPEN ? 0700 : 0));
	if (turn == UNDO_REMOVE)
		return undo_remove(it, l);
	if (!it->contents)
		return turn == UNDO_MAKE ? undo_put_mode(l, it->old_mode) : 0;
	if (is_directory)
		return undo_put_directory(it, l);
	return it->old == TREE_LINK ? undo_put_link(u, it, l) : undo_put_file(u, it, l);
}

static bool undo_is_in_turn(const struct undo_item *it, enum undo_turn turn)
{
	bool is_directory = it->old == TREE_DIRECTORY;

	if (turn == UNDO_OPEN)
		return is_directory && it->mode;
	if (turn == UNDO_REMOVE)
		return it->contents && it->old == TREE_GONE;
	if (turn == UNDO_MAKE)
		return it->old > TREE_GONE && (it->contents || !is_directory);
	return is_directory && (it->mode || it->contents);
}

static const char *undo_reason(int r)
{
	if (r == -ESTALE || r == -EISDIR || r == -ENOTDIR || r == -ENOENT)
		return UNDO_CHANGED;
	if (r == -ENOTEMPTY || r == -EEXIST)
		return UNDO_NOT_EMPTY;
	if (r == -EFBIG)
		return "its former contents do not fit into memory with the others: undo once more";
	return err_is_code((uint32_t)-r) ? UNDO_NO_CONTENTS : err_errno_text(-r);
}

static int undo_put(
	struct cloche_undo *u, struct undo_item *it, enum undo_turn turn, struct cloche_err *err)
{
	_cleanup_(undo_look_donep) struct undo_look l = UNDO_LOOK_NULL;
	struct undo_item as_is = *it;
	int r = undo_judge(u, &as_is, &l, err);

	if (r < 0)
		return r;
	it->why = as_is.why;
	if (it->why)
		return 0;
	if (undo_is_due(&as_is) && undo_is_in_turn(&as_is, turn)) {
		r = undo_act(u, &as_is, &l, turn);
		if (r < 0)
			it->why = undo_reason(r);
	}
	it->done = !it->why;
	return 0;
}

int undo_put_all(struct cloche_undo *u, struct cloche_err *err)
{
	int r = undo_load(u, err);

	for (unsigned turn = UNDO_OPEN; turn <= UNDO_MODES; turn++)
		for (size_t i = 0; r == 0 && i < u->n; i++) {
			bool is_upwards = turn == UNDO_REMOVE || turn == UNDO_MODES;
			struct undo_item *it = &u->items[is_upwards ? u->n - 1 - i : i];

			if (undo_is_due(it) && undo_is_in_turn(it, (enum undo_turn)turn))
				r = undo_put(u, it, (enum undo_turn)turn, err);
		}
	return r;
}
