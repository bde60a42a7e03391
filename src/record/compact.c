/* SPDX-License-Identifier: Apache-2.0 */
#include "record/compact.h"
#include "base/fd.h"
#include "record/background.h"
#include "record/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* Theory of operation
 *
 * The log is read from its end. Everything seen happens later, so an operation is left out if
 * - its variable or key is set, deleted or cleared later (the value that was set last takes the
 * place of the first, so that keys keep their order);
 * - its path, or a directory above it, is deleted later;
 * - it writes a file that is written whole later, and no mode is lost by leaving it out.
 * All other operations stay, in their order. Deletions stay unless a later one covers them, as the
 * deleted thing may be older than the log. A file that was written and deleted leaves behind the
 * directory in which it was written, so a mkdir takes its place unless a later deletion covers that
 * directory. Renames and links give one thing two names, so operations before them are not judged
 * by operations after them. */

enum {
	SEEN_DELETED = 1, /* with everything below */
	SEEN_WRITTEN = 2, /* whole */
	SEEN_MODE = 4,    /* and its mode is set too */
	SEEN_CLOSED = 8,  /* a variable or key is deleted; earlier operations are void */
};

/* The marks of a name. */
enum {
	MARK_SEEN,    /* the flags above */
	MARK_WRITTEN, /* turn of SEEN_WRITTEN. Of a variable or key: the entry that sets it */
	MARK_MADE,    /* turn of a mkdir left behind; 0: none */
};

struct entry {
	uint64_t offset;
	bool kept;
	size_t parent_n;      /* length of its path that becomes a mkdir in its place; 0: none */
	struct entry *source; /* sets the value of this entry; NULL: its own */
};

struct pass {
	struct oplog *l;
	struct tree files; /* names that later entries have */
	struct tree keys;  /* variables and keys, each kind below one of its tops */
	bool cleared;      /* the storage is cleared later */
	unsigned turn;     /* a new turn begins where earlier writes must stay, as for a chmod */
	struct tree_node *after; /* the variable or key of the next entry */
	struct entry *entries;
	size_t n, size;
	struct entry *end; /* the last operation; the next number follows its number */
	size_t tables;     /* entries that are no operations */
	uint64_t taken;    /* bytes of the log that are copied or left out */
	struct buf text;   /* a line, with its end */
};

/* Return the length of the highest part of the path, at most the path itself, that is deleted
 * later; 0: none. */
static size_t find_deleted(const struct pass *p, const struct tree_path *path)
{
	const struct tree_node *n = p->files.tops[path->relative];
	struct str rest = tree_path_str(path), name;

	while (n && tree_path_next(&rest, &name)) {
		n = tree_child(&p->files, n, name);
		if (n && n->mark[MARK_SEEN] & SEEN_DELETED)
			return (size_t)(name.p + name.n - path->text);
	}
	return 0;
}

/* Leave a mkdir of the parent for an entry that is void because of a later deletion, if needed. The
 * first n bytes of its path are deleted. */
static int leave_parent(
	struct pass *p, struct entry *e, struct tree_path *path, size_t n, struct cloche_err *err)
{
	struct tree_node *above;
	int r;

	while (path->text[--n] != '/')
		;
	path->n = n;
	r = n == 0 ? 0 : tree_add(&p->files, path, &above, err);
	if (n == 0 || r < 0)
		return r;
	e->parent_n = above->mark[MARK_MADE] == p->turn ? 0 : n;
	above->mark[MARK_MADE] = p->turn;
	return 0;
}

static bool is_written_later(
	const struct pass *p, const struct tree_node *n, const struct state_op *op)
{
	return tree_traits(op->kind) & (TREE_WHOLE | TREE_ADDS) &&
	       n->mark[MARK_SEEN] & SEEN_WRITTEN && n->mark[MARK_WRITTEN] == p->turn &&
	       (op->mode == STATE_NO_MODE || n->mark[MARK_SEEN] & SEEN_MODE);
}

static int judge_file(
	struct pass *p, struct entry *e, const struct state_op *op, struct cloche_err *err)
{
	unsigned traits = tree_traits(op->kind);
	struct tree_path path;
	struct tree_node *n;
	size_t deleted;

	e->kept = true;
	/* A path with ".." may lead anywhere, so it cannot be judged. */
	if (traits & TREE_ALIAS || !tree_path_make(&path, op->subject) || path.dots) {
		tree_done(&p->files);
		return 0;
	}
	deleted = find_deleted(p, &path);
	if (deleted > 0) {
		e->kept = false;
		return traits & TREE_PARENTS ? leave_parent(p, e, &path, deleted, err) : 0;
	}
	if (tree_add(&p->files, &path, &n, err) < 0)
		return -err->code;
	if (traits & TREE_REMOVES) {
		n->mark[MARK_SEEN] = SEEN_DELETED;
	} else if (traits & TREE_MODE) {
		p->turn++;
	} else if (is_written_later(p, n, op)) {
		e->kept = false;
	} else if (traits & TREE_WHOLE) {
		n->mark[MARK_SEEN] |= SEEN_WRITTEN | (op->mode == STATE_NO_MODE ? 0U : SEEN_MODE);
		n->mark[MARK_WRITTEN] = p->turn;
	}
	return 0;
}

static bool sets_key(const struct state_op *op)
{
	return op->kind == STATE_ENV_SET || op->kind == STATE_STORAGE_SET;
}

/* Judge an operation on a variable or key. */
static int judge_key(
	struct pass *p, struct entry *e, const struct state_op *op, struct cloche_err *err)
{
	bool is_env = state_op_about(op->kind) == STATE_ENV;
	struct tree_node **top = &p->keys.tops[is_env], *n, *after = p->after;
	int r = *top ? 0 : tree_add_name(&p->keys, NULL, is_env ? STR("e") : STR("s"), top, err);
	struct entry *last;

	if (r == 0)
		r = tree_add_name(&p->keys, *top, op->subject, &n, err);
	if (r < 0)
		return r;
	p->after = n;
	if (n->mark[MARK_SEEN] & SEEN_CLOSED)
		return 0;
	last = &p->entries[n->mark[MARK_WRITTEN]];
	if (n->mark[MARK_SEEN] == 0) {
		e->kept = true;
		n->mark[MARK_WRITTEN] = (unsigned)(e - p->entries);
	} else if (sets_key(op) && n != after) {
		/* Others came between, so its place is here. The log's last entry stays. */
		e->kept = true;
		e->source = last->source ? last->source : last;
		last->kept = last == p->end;
		n->mark[MARK_WRITTEN] = (unsigned)(e - p->entries);
	}
	n->mark[MARK_SEEN] = sets_key(op) ? SEEN_WRITTEN : SEEN_CLOSED;
	return 0;
}

static int judge_entry(
	struct pass *p, struct entry *e, const struct state_op *op, struct cloche_err *err)
{
	if (!p->end && op->kind != STATE_TABLES)
		p->end = e;
	switch (state_op_about(op->kind)) {
	case STATE_FILES:
		return judge_file(p, e, op, err);
	case STATE_EVENTS:
		e->kept = true;
		break;
	case STATE_NOTHING:
		e->kept = op->kind != STATE_TABLES;
		p->tables += !e->kept;
		return 0;
	case STATE_STORAGE:
		if (p->cleared)
			return 0;
		if (op->kind != STATE_STORAGE_CLEAR)
			return judge_key(p, e, op, err);
		p->cleared = e->kept = true;
		return 0;
	case STATE_ENV:
		return judge_key(p, e, op, err);
	}
	return 0;
}

/* --- the passes over the file --- */

static int note_entry(
	const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
{
	struct pass *p = user;
	struct entry *more = array_room(p->entries, p->n, &p->size, sizeof(*more));

	if (!more)
		return err_nomem(err);
	p->entries = more;
	p->entries[p->n++] = (struct entry){.offset = offset};
	return 0;
}

static int read_line(struct pass *p, size_t i, struct cloche_err *err)
{
	uint64_t from = p->entries[i].offset;
	uint64_t to = i + 1 < p->n ? p->entries[i + 1].offset : p->l->size;
	ssize_t n;
	char *at;

	buf_clear(&p->text);
	if (buf_reserve(&p->text, to - from, &at) < 0)
		return err_nomem(err);
	n = pread(p->l->fd, at, to - from, (off_t)from);
	if (n != (ssize_t)(to - from))
		return err_sys(err, n < 0 ? errno : EIO, "read %s", p->l->file);
	/* Without blank lines after it. */
	n -= 1;
	while (n > 0 && at[n - 1] == '\n')
		n--;
	buf_commit(&p->text, (size_t)n);
	return 0;
}

static int judge_all(struct pass *p, struct cloche_err *err)
{
	_cleanup_(state_line_donep) struct state_line line = STATE_LINE_INIT;
	int r = 0;

	for (size_t i = p->n; r == 0 && i-- > 0;) {
		r = read_line(p, i, err);
		if (r == 0)
			r = state_line_read(&line, buf_str(&p->text), err);
		if (r == 0)
			r = judge_entry(p, &p->entries[i], &line.op, err);
	}
	return r;
}

/* Write a mkdir in the place of the entry that was read. */
static int write_parent(struct pass *p, size_t parent_n, struct buf *out)
{
	_cleanup_(state_line_donep) struct state_line line = STATE_LINE_INIT;
	struct state_op op = {.kind = STATE_FS_MKDIR, .mode = STATE_NO_MODE};
	struct tree_path path;

	if (state_line_read(&line, buf_str(&p->text), NULL) < 0 ||
		!tree_path_make(&path, line.op.subject))
		return -EINVAL;
	op.subject = str_from_index(str_make(path.text, parent_n), path.relative);
	op.number = line.op.number;
	op.usec = line.op.usec;
	return state_op_write(out, &op);
}

/* Write the value of a later entry, with the number and time of the entry that was read. */
static int write_source(
	struct pass *p, const struct entry *source, struct buf *out, struct cloche_err *err)
{
	_cleanup_(state_line_donep) struct state_line line = STATE_LINE_INIT;
	int r = state_line_read(&line, buf_str(&p->text), err);
	uint64_t number = line.op.number, usec = line.op.usec;

	if (r == 0)
		r = read_line(p, (size_t)(source - p->entries), err);
	if (r == 0)
		r = state_line_read(&line, buf_str(&p->text), err);
	if (r < 0)
		return r;
	line.op.number = number;
	line.op.usec = usec;
	return state_op_write(out, &line.op) < 0 ? err_nomem(err) : 0;
}

static int write_entry(struct pass *p, size_t i, struct buf *out, struct cloche_err *err)
{
	const struct entry *e = &p->entries[i];
	int r = read_line(p, i, err);

	if (r < 0)
		return r;
	if (e->source)
		return write_source(p, e->source, out, err);
	r = e->kept ? buf_add_str(out, buf_str(&p->text)) : write_parent(p, e->parent_n, out);
	if (r == 0 && e->kept)
		r = buf_add_char(out, '\n');
	return r < 0 ? err_nomem(err) : 0;
}

static int write_out(int fd, struct buf *out, struct compaction *ret, struct cloche_err *err)
{
	int r = fd_write_all(fd, buf_data(out), buf_len(out));

	ret->bytes_after += buf_len(out);
	buf_clear(out);
	return r < 0 ? err_sys(err, -r, "write the compacted log") : 0;
}

static int write_kept(struct pass *p, int fd, struct compaction *ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(SIZE_MAX);
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->n; i++) {
		if (!p->entries[i].kept && p->entries[i].parent_n == 0)
			continue;
		r = write_entry(p, i, &out, err);
		ret->after++;
		if (r == 0 && buf_len(&out) > 1 << 20)
			r = write_out(fd, &out, ret, err);
	}
	return r < 0 ? r : write_out(fd, &out, ret, err);
}

/* --- the new file --- */

/* Copy what was appended since, up to the end of the last whole line. */
static int carry_over(struct pass *p, int fd, struct compaction *ret, struct cloche_err *err)
{
	char chunk[16 << 10];
	uint64_t end;
	int r = oplog_end(p->l, &end, err);

	while (r == 0 && p->taken < end) {
		size_t want = (size_t)MIN(end - p->taken, (uint64_t)sizeof(chunk));
		ssize_t n = pread(p->l->fd, chunk, want, (off_t)p->taken);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_sys(err, n < 0 ? errno : EIO, "read %s", p->l->file);
		r = fd_write_all(fd, chunk, (size_t)n);
		if (r < 0)
			return err_sys(err, -r, "write the compacted log");
		p->taken += (uint64_t)n;
		ret->bytes_before += (uint64_t)n;
		ret->bytes_after += (uint64_t)n;
	}
	return r;
}

static int sync_new(const struct pass *p, int fd, struct cloche_err *err)
{
	if (p->l->sync == OPLOG_SYNC_NEVER || fsync(fd) == 0)
		return 0;
	return err_sys(err, errno, "sync the compacted log");
}

/* Replace the log, under its lock. Little was appended since it was read. */
static int put_in_place(
	struct pass *p, int fd, const char *name, struct compaction *ret, struct cloche_err *err)
{
	int r;

	if (p->l->size == 0)
		return err_set(err, E_BUSY, "%s was replaced meanwhile", p->l->file);
	r = carry_over(p, fd, ret, err);
	if (r == 0)
		r = sync_new(p, fd, err);
	return r < 0 ? r : oplog_replace(p->l, name, err);
}

static int write_new(
	struct pass *p, int fd, const char *name, struct compaction *ret, struct cloche_err *err)
{
	int r = write_kept(p, fd, ret, err);

	/* Copy and sync most of it without the lock. */
	if (r == 0)
		r = carry_over(p, fd, ret, err);
	if (r == 0)
		r = sync_new(p, fd, err);
	if (r == 0)
		r = oplog_lock(p->l, err);
	if (r < 0)
		return r;
	r = put_in_place(p, fd, name, ret, err);
	oplog_unlock(p->l);
	return r;
}

static int write_file(struct pass *p, struct compaction *ret, struct cloche_err *err)
{
	_cleanup_(freep) char *name = NULL;
	_cleanup_fd_ int fd = -1;
	int r;

	if (asprintf(&name, "%s.new", p->l->file) < 0) {
		name = NULL;
		return err_nomem(err);
	}
	fd = openat(p->l->dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_sys(err, errno, "create %s", name);
	r = write_new(p, fd, name, ret, err);
	if (r < 0)
		(void)unlinkat(p->l->dir, name, 0);
	return r;
}

static int compact_all(struct pass *p, int lock, struct compaction *ret, struct cloche_err *err)
{
	int r;

	/* Start from the beginning, whatever was read before. */
	p->l->size = p->l->number = 0;
	r = oplog_read(p->l, note_entry, p, NULL, err);
	/* Note it now, so that it is not tried again with the next entry if this process is
	 * killed. */
	oplog_note_attempt(lock, p->l->size);
	if (r == 0)
		r = judge_all(p, err);
	if (r < 0)
		return r;
	p->taken = p->l->size;
	ret->before = p->n - p->tables;
	ret->bytes_before = p->l->size;
	r = p->n == 0 ? 0 : write_file(p, ret, err);
	if (r == 0)
		oplog_note_left(lock, ret->bytes_after);
	return r;
}

int oplog_compact(struct oplog *l, bool wait, struct compaction *ret, struct cloche_err *err)
{
	struct pass p = {.l = l, .turn = 1, .text = BUF_INIT((size_t)STATE_LINE_MAX + 1)};
	_cleanup_fd_ int lock = oplog_lock_compaction(l, wait, err);
	int r;

	*ret = (struct compaction){0};
	if (lock < 0)
		return lock;
	/* Each of its names is a part of the log, which is not small either. */
	tree_init(&p.files, NULL, NULL);
	tree_init(&p.keys, NULL, NULL);
	p.files.max_nodes = p.files.max_names = p.keys.max_nodes = p.keys.max_names = SIZE_MAX;
	r = compact_all(&p, lock, ret, err);
	tree_done(&p.files);
	tree_done(&p.keys);
	free(p.entries);
	buf_done(&p.text);
	return r;
}
