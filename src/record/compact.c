/* SPDX-License-Identifier: Apache-2.0 */
#include "record/compact.h"
#include "base/fd.h"
#include "base/hash.h"
#include "record/background.h"

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

struct entry;

struct seen {
	UT_hash_handle hh;
	unsigned flags;
	unsigned written, made; /* turn of SEEN_WRITTEN, and of a mkdir left behind; 0: none */
	struct entry *last;     /* of a variable or key: the entry that sets it */
	size_t n;
	char key[]; /* a letter for its kind, then the path or key */
};

struct entry {
	uint64_t offset;
	bool kept;
	size_t parent_n;      /* length of its path that becomes a mkdir in its place; 0: none */
	struct entry *source; /* sets the value of this entry; NULL: its own */
};

struct pass {
	struct oplog *l;
	struct seen *seen;
	bool cleared;       /* the storage is cleared later */
	unsigned turn;      /* a new turn begins where earlier writes must stay, as for a chmod */
	struct seen *after; /* the variable or key of the next entry */
	struct entry *entries;
	size_t n, size;
	struct entry *end; /* the last operation; the next number follows its number */
	size_t tables;     /* entries that are no operations */
	uint64_t taken;    /* bytes of the log that are copied or left out */
	struct buf text;   /* a line, with its end */
};

static void forget(struct pass *p, char letter)
{
	struct seen *s, *next;

	HASH_ITER (hh, p->seen, s, next)
		if (!letter || s->key[0] == letter) {
			HASH_DEL(p->seen, s);
			free(s);
		}
}

/* Return NULL if memory runs out, or if it is not found and make is false. */
static struct seen *look_up(struct pass *p, char letter, struct str what, bool make)
{
	char key[1 + STATE_PATH_MAX + STATE_KEY_MAX];
	struct seen *s = NULL;
	size_t n = 1 + what.n;

	key[0] = letter;
	memcpy(key + 1, what.p, what.n);
	HASH_FIND(hh, p->seen, key, n, s);
	if (s || !make)
		return s;
	s = calloc(1, sizeof(*s) + n);
	if (!s)
		return NULL;
	memcpy(s->key, key, n);
	s->n = n;
	HASH_ADD(hh, p->seen, key, n, s);
	if (!s->hh.tbl) {
		free(s);
		return NULL;
	}
	return s;
}

/* Clean a path of "." and doubled slashes. A path with ".." may lead anywhere, so it cannot be
 * judged. */
static bool plain_path(struct str path, char ret[STATE_PATH_MAX + 1], size_t *ret_n)
{
	size_t n = 0;

	if (path.p[0] == '/')
		ret[n++] = '/';
	while (path.n > 0) {
		size_t end = str_chr(path, '/');
		struct str part = str_prefix(path, end);

		if (str_eq(part, STR("..")))
			return false;
		if (part.n > 0 && !str_eq(part, STR("."))) {
			if (n > 0 && ret[n - 1] != '/')
				ret[n++] = '/';
			memcpy(ret + n, part.p, part.n);
			n += part.n;
		}
		path = str_from_index(path, end + 1);
	}
	*ret_n = n;
	return n > 0;
}

static size_t parent_length(struct str path)
{
	size_t n = path.n;

	while (n > 0 && path.p[n - 1] != '/')
		n--;
	return n > 1 ? n - 1 : n;
}

/* Return the length of the highest part of the path, at most the path itself, that is deleted
 * later; 0: none. */
static size_t find_deleted(struct pass *p, struct str path)
{
	size_t n = path.p[0] == '/';

	while (n < path.n) {
		const struct seen *s;

		n += str_chr(str_from_index(path, n), '/');
		s = look_up(p, 'f', str_prefix(path, n), false);
		if (s && s->flags & SEEN_DELETED)
			return n;
		n++;
	}
	return 0;
}

/* Leave a mkdir of the parent for an entry that is void because of a later deletion, if needed. */
static int leave_parent(struct pass *p, struct entry *e, struct str deleted)
{
	size_t n = parent_length(deleted);
	struct seen *above;

	if (n == 0 || (n == 1 && deleted.p[0] == '/'))
		return 0;
	above = look_up(p, 'f', str_prefix(deleted, n), true);
	if (!above)
		return -ENOMEM;
	e->parent_n = above->made == p->turn ? 0 : n;
	above->made = p->turn;
	return 0;
}

static bool writes_whole(const struct state_op *op)
{
	return op->kind == STATE_FS_WRITE || op->kind == STATE_ASSETS_UPLOAD;
}

static bool makes_parents(const struct state_op *op)
{
	return writes_whole(op) || op->kind == STATE_FS_APPEND || op->kind == STATE_FS_MKDIR ||
	       op->kind == STATE_FS_UNPACK;
}

static bool is_written_later(const struct pass *p, const struct seen *s, const struct state_op *op)
{
	return (writes_whole(op) || op->kind == STATE_FS_APPEND) && s->flags & SEEN_WRITTEN &&
	       s->written == p->turn && (op->mode == STATE_NO_MODE || s->flags & SEEN_MODE);
}

static int judge_file(struct pass *p, struct entry *e, const struct state_op *op)
{
	char text[STATE_PATH_MAX + 1];
	struct str path = {text, 0};
	struct seen *s;
	size_t deleted;

	e->kept = true;
	if (op->kind == STATE_FS_RENAME || op->kind == STATE_FS_SYMLINK ||
		!plain_path(op->subject, text, &path.n)) {
		forget(p, 'f');
		return 0;
	}
	deleted = find_deleted(p, path);
	if (deleted > 0) {
		e->kept = false;
		return makes_parents(op) ? leave_parent(p, e, str_prefix(path, deleted)) : 0;
	}
	s = look_up(p, 'f', path, true);
	if (!s)
		return -ENOMEM;
	if (op->kind == STATE_FS_DELETE) {
		s->flags = SEEN_DELETED;
	} else if (op->kind == STATE_FS_CHMOD) {
		p->turn++;
	} else if (is_written_later(p, s, op)) {
		e->kept = false;
	} else if (writes_whole(op)) {
		s->flags |= SEEN_WRITTEN | (op->mode == STATE_NO_MODE ? 0U : SEEN_MODE);
		s->written = p->turn;
	}
	return 0;
}

static bool sets(const struct state_op *op)
{
	return op->kind == STATE_ENV_SET || op->kind == STATE_STORAGE_SET;
}

/* Judge an operation on a variable or key. */
static int judge_key(struct pass *p, struct entry *e, const struct state_op *op)
{
	char letter = state_op_about(op->kind) == STATE_ENV ? 'e' : 's';
	struct seen *s = look_up(p, letter, op->subject, true), *after = p->after;

	if (!s)
		return -ENOMEM;
	p->after = s;
	if (s->flags & SEEN_CLOSED)
		return 0;
	if (s->flags == 0) {
		e->kept = true;
		s->last = e;
	} else if (sets(op) && s != after) {
		/* Others came between, so its place is here. The log's last entry stays. */
		e->kept = true;
		e->source = s->last->source ? s->last->source : s->last;
		s->last->kept = s->last == p->end;
		s->last = e;
	}
	s->flags = sets(op) ? SEEN_WRITTEN : SEEN_CLOSED;
	return 0;
}

static int judge(struct pass *p, struct entry *e, const struct state_op *op)
{
	if (!p->end && op->kind != STATE_TABLES)
		p->end = e;
	switch (state_op_about(op->kind)) {
	case STATE_FILES:
		return judge_file(p, e, op);
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
			return judge_key(p, e, op);
		p->cleared = e->kept = true;
		return 0;
	case STATE_ENV:
		return judge_key(p, e, op);
	}
	return 0;
}

/* --- the passes over the file --- */

static int gather(const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err)
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
		if (r == 0 && judge(p, &p->entries[i], &line.op) < 0)
			r = err_nomem(err);
	}
	return r;
}

/* Write a mkdir in the place of the entry that was read. */
static int write_parent(struct pass *p, size_t parent_n, struct buf *out)
{
	_cleanup_(state_line_donep) struct state_line line = STATE_LINE_INIT;
	struct state_op op = {.kind = STATE_FS_MKDIR, .mode = STATE_NO_MODE};
	char text[STATE_PATH_MAX + 1];
	size_t n;

	if (state_line_read(&line, buf_str(&p->text), NULL) < 0 ||
		!plain_path(line.op.subject, text, &n))
		return -EINVAL;
	op.subject = str_make(text, MIN(parent_n, n));
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

static int flush(int fd, struct buf *out, struct compaction *ret, struct cloche_err *err)
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
			r = flush(fd, &out, ret, err);
	}
	return r < 0 ? r : flush(fd, &out, ret, err);
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

static int compact(struct pass *p, int lock, struct compaction *ret, struct cloche_err *err)
{
	int r;

	/* Start from the beginning, whatever was read before. */
	p->l->size = p->l->number = 0;
	r = oplog_read(p->l, gather, p, NULL, err);
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
	r = compact(&p, lock, ret, err);
	forget(&p, '\0');
	free(p.entries);
	buf_done(&p.text);
	return r;
}
