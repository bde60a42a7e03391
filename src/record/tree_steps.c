/* SPDX-License-Identifier: Apache-2.0 */
/* What each operation does to files. Whoever adds an operation adds a row here, and nothing in what
 * reads the log. */
#include "base/fd.h"
#include "files/tar.h"
#include "record/tree.h"

#include <errno.h>
#include <unistd.h>

enum { CHUNK = 64 << 10 };

/* --- names --- */

bool tree_path_next(struct str *rest, struct str *ret)
{
	do {
		if (rest->n == 0)
			return false;
		*ret = str_next(rest, '/');
	} while (ret->n == 0 || str_eq(*ret, STR(".")));
	return true;
}

bool tree_path_add(struct tree_path *p, struct str path)
{
	struct str name;

	while (tree_path_next(&path, &name)) {
		if (str_eq(name, STR(".."))) {
			p->dots = true;
			while (p->n > 0 && p->text[--p->n] != '/')
				;
			continue;
		}
		if (p->n + 1 + name.n > (size_t)STATE_PATH_MAX + p->relative)
			return false;
		p->text[p->n++] = '/';
		memcpy(p->text + p->n, name.p, name.n);
		p->n += name.n;
	}
	p->text[p->n] = '\0';
	return true;
}

bool tree_path_make(struct tree_path *ret, struct str path)
{
	ret->n = 0;
	ret->dots = false;
	ret->relative = path.n == 0 || path.p[0] != '/';
	return tree_path_add(ret, path);
}

/* --- contents --- */

int tree_stream(const struct tree_taker *t, struct str ref,
	int (*fn)(void *user, struct str piece, struct cloche_err *err), void *user,
	struct cloche_err *err)
{
	_cleanup_fd_ int fd = t->open(t->open_user, ref, err);
	_cleanup_(freep) char *chunk = fd >= 0 ? malloc(CHUNK) : NULL;
	int r = 0;

	if (fd < 0)
		return fd;
	if (!chunk)
		return err_nomem(err);
	while (r == 0) {
		ssize_t n = read(fd, chunk, CHUNK);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, errno, "read %.*s", STR_FMT(ref));
		if (n == 0)
			break;
		r = fn(user, str_make(chunk, (size_t)n), err);
	}
	return r;
}

/* --- operations --- */

static int step_write(struct tree_taker *t, const struct state_op *op, const struct tree_path *path,
	struct cloche_err *err)
{
	bool adds = tree_traits(op->kind) & TREE_ADDS;
	int r = t->make(t, path, TREE_FILE, op->mode, TREE_THROUGH | (adds ? TREE_KEEP : 0U), err);

	if (r == 0 && op->object.n > 0)
		r = t->add(t, op->object, op->is_ref, err);
	return r == 0 ? t->end(t, err) : r;
}

static int step_mkdir(struct tree_taker *t, const struct state_op *op, const struct tree_path *path,
	struct cloche_err *err)
{
	return t->make(t, path, TREE_DIRECTORY, op->mode, TREE_THROUGH, err);
}

static int step_symlink(struct tree_taker *t, const struct state_op *op,
	const struct tree_path *path, struct cloche_err *err)
{
	int r = t->make(t, path, TREE_LINK, STATE_NO_MODE, 0, err);

	if (r == 0)
		r = t->add(t, op->object, false, err);
	return r == 0 ? t->end(t, err) : r;
}

static int step_delete(struct tree_taker *t, const struct state_op *op,
	const struct tree_path *path, struct cloche_err *err)
{
	return t->gone(t, path, err);
}

static int step_chmod(struct tree_taker *t, const struct state_op *op, const struct tree_path *path,
	struct cloche_err *err)
{
	return t->mode(t, path, op->mode & 07777, err);
}

static int step_rename(struct tree_taker *t, const struct state_op *op,
	const struct tree_path *from, struct cloche_err *err)
{
	struct tree_path to;

	if (!tree_path_make(&to, op->object))
		return err_set(err, E_LIMIT, "a path of the log is too long");
	/* A directory moves into itself only through a link, which is not known here. */
	if (from->relative == to.relative && to.n >= from->n &&
		memcmp(to.text, from->text, from->n) == 0 &&
		(to.n == from->n || to.text[from->n] == '/'))
		return 0;
	return t->move(t, from, &to, err);
}

/* --- archives --- */

struct unpacking {
	struct tree_taker *t;
	const struct state_op *op;
	const struct tree_path *top;
	struct tar_reader *tar;
	bool is_file; /* contents of an entry follow */
	struct tree_path path, other;
	struct cloche_err *err;
};

static int unpack_make(
	struct unpacking *u, const struct tar_entry *entry, enum tree_type type, unsigned flags)
{
	uint32_t mask = type == TREE_DIRECTORY ? 01777 : 0777;
	bool has_mode = type == TREE_FILE || type == TREE_DIRECTORY;

	return u->t->make(
		u->t, &u->path, type, has_mode ? entry->mode & mask : STATE_NO_MODE, flags, u->err);
}

static int unpack_entry(struct unpacking *u, const struct tar_entry *entry)
{
	int r = 0;

	switch (entry->type) {
	case TAR_FILE:
		u->is_file = true;
		return unpack_make(u, entry, TREE_FILE, 0);
	case TAR_DIRECTORY:
		return unpack_make(u, entry, TREE_DIRECTORY,
			u->op->is_new && u->path.n == u->top->n ? TREE_NEW : 0);
	case TAR_SYMLINK:
		r = unpack_make(u, entry, TREE_LINK, 0);
		if (r == 0)
			r = u->t->add(u->t, entry->link, false, u->err);
		return r == 0 ? u->t->end(u->t, u->err) : r;
	case TAR_HARDLINK:
		u->other = *u->top;
		if (tree_path_add(&u->other, entry->link) && !u->other.dots)
			r = u->t->link(u->t, &u->path, &u->other, entry->mode & 0777, u->err);
		return r;
	case TAR_FIFO:
		return unpack_make(u, entry, TREE_OTHER, 0);
	case TAR_CHAR_DEVICE:
	case TAR_BLOCK_DEVICE:
		break; /* the worker leaves them out */
	}
	return 0;
}

static int unpack_on_entry(void *user, const struct tar_entry *entry, struct files_error *e)
{
	struct unpacking *u = user;

	u->is_file = false;
	u->path = *u->top;
	/* The worker refuses a name with "..". */
	if (!tree_path_add(&u->path, entry->path) || u->path.dots != u->top->dots)
		return 0;
	return unpack_entry(u, entry);
}

static int unpack_on_data(void *user, const char *p, size_t n, struct files_error *e)
{
	struct unpacking *u = user;

	return u->is_file ? u->t->add(u->t, str_make(p, n), false, u->err) : 0;
}

static int unpack_on_end(void *user, struct files_error *e)
{
	struct unpacking *u = user;

	return u->is_file ? u->t->end(u->t, u->err) : 0;
}

static int unpack_piece(void *user, struct str piece, struct cloche_err *err)
{
	struct unpacking *u = user;
	struct files_error e = {0};
	int r = tar_reader_feed(u->tar, piece.p, piece.n, &e);

	/* A taker has set err; otherwise it is the archive. */
	if (r < 0 && (e.sys_errno != 0 || r == -ENOMEM))
		return err_set(err, E_CORRUPT, "%.*s is not an archive", STR_FMT(u->op->object));
	return r;
}

static int step_unpack(struct tree_taker *t, const struct state_op *op,
	const struct tree_path *path, struct cloche_err *err)
{
	static const struct tar_reader_ops ops = {unpack_on_entry, unpack_on_data, unpack_on_end};
	_cleanup_(freep) struct unpacking *u = calloc(1, sizeof(*u));
	_cleanup_(tar_reader_freep) struct tar_reader *tar = u ? tar_reader_new(&ops, u) : NULL;
	struct files_error e = {0};
	int r;

	if (!tar)
		return err_nomem(err);
	*u = (struct unpacking){.t = t, .op = op, .top = path, .tar = tar, .err = err};
	r = tree_stream(t, op->object, unpack_piece, u, err);
	if (r == 0 && tar_reader_finish(tar, &e) < 0)
		r = err_set(err, E_CORRUPT, "%.*s is not an archive", STR_FMT(op->object));
	return r;
}

/* --- the table --- */

typedef int (*step_fn)(struct tree_taker *t, const struct state_op *op,
	const struct tree_path *path, struct cloche_err *err);

static const struct step_row {
	enum state_op_kind kind;
	unsigned traits;
	const char *verb, *verb_new;
	step_fn fn;
} step_rows[] = {
	{STATE_FS_WRITE, TREE_WHOLE | TREE_PARENTS, "change", "new", step_write},
	{STATE_FS_APPEND, TREE_ADDS | TREE_PARENTS, "append to", "append to", step_write},
	{STATE_FS_DELETE, TREE_REMOVES, "delete", "delete", step_delete},
	{STATE_FS_MKDIR, TREE_PARENTS, "make directory", "make directory", step_mkdir},
	{STATE_FS_RENAME, TREE_ALIAS | TREE_MOVES, "rename", "rename", step_rename},
	{STATE_FS_SYMLINK, TREE_ALIAS, "link", "link", step_symlink},
	{STATE_FS_CHMOD, TREE_MODE, "mode of", "mode of", step_chmod},
	{STATE_FS_UNPACK, TREE_ARCHIVE | TREE_PARENTS, "unpack an archive into",
		"unpack an archive into", step_unpack},
	{STATE_ASSETS_UPLOAD, TREE_WHOLE | TREE_PARENTS, "upload", "upload", step_write},
};
_Static_assert(ARRAY_SIZE(step_rows) == STATE_FILES_OPS, "an operation on files has no row");

static const struct step_row *find_row(enum state_op_kind kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(step_rows); i++)
		if (step_rows[i].kind == kind)
			return &step_rows[i];
	return NULL;
}

unsigned tree_traits(enum state_op_kind kind)
{
	const struct step_row *row = find_row(kind);

	return row ? row->traits : 0;
}

const char *tree_verb(enum state_op_kind kind, bool is_new)
{
	const struct step_row *row = find_row(kind);

	return row ? is_new ? row->verb_new : row->verb : "";
}

int tree_take(struct tree_taker *t, const struct state_op *op, struct cloche_err *err)
{
	const struct step_row *row = find_row(op->kind);
	struct tree_path path;

	if (!row)
		return 0;
	if (!tree_path_make(&path, op->subject))
		return err_set(err, E_LIMIT, "a path of the log is too long");
	return row->fn(t, op, &path, err);
}
