/* SPDX-License-Identifier: Apache-2.0 */
#include "record/oplog.h"
#include "base/clock.h"
#include "base/fd.h"
#include "job/job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Theory of operation (INV-CRASH-SAFE)
 *
 * A file with one line for each operation. Lines are only appended, under a lock, with
 * writes that end in a newline. So at any instant the file is whole lines and at most one torn line
 * at its end, whose operation was never confirmed; the next writer cuts it off. Compaction writes a
 * file beside the log and renames it, so a process with the old file open finds that it has no name
 * any more.
 *
 * Locks belong to the open file, so two handles of one process exclude each other, too. */

enum { CHUNK = 64 << 10, ARRAY_MAX = 256 << 20 };

static int open_file(struct oplog *l, bool create, struct cloche_err *err)
{
	int flags = l->writable ? O_RDWR | O_APPEND : O_RDONLY;
	_cleanup_fd_ int fd = fd_lift(openat(l->dir, l->file,
		flags | (create ? O_CREAT : 0) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
		0600));
	struct stat st;

	if (fd < 0 && errno == ENOENT && !create)
		return 0;
	if (fd < 0)
		return err_sys(err, errno, "open %s", l->file);
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "stat %s", l->file);
	if (!S_ISREG(st.st_mode))
		return err_set(err, E_CORRUPT, "%s is no regular file", l->file);
	if (st.st_uid != geteuid())
		return err_set(err, E_DENIED, "%s belongs to somebody else", l->file);
	fd_close(l->fd);
	l->fd = TAKE_FD(fd);
	return 0;
}

enum oplog_sync oplog_sync_named(struct str name)
{
	return str_eq(name, STR("always"))  ? OPLOG_SYNC_ALWAYS
	       : str_eq(name, STR("never")) ? OPLOG_SYNC_NEVER
					    : OPLOG_SYNC_INTERVAL;
}

int oplog_open(struct oplog *l, int dir, const char *name, bool writable, struct cloche_err *err)
{
	*l = OPLOG_INIT;
	l->dir = dir;
	l->writable = writable;
	l->synced_usec = clock_mono_usec();
	if (asprintf(&l->file, "%s" OPLOG_SUFFIX, name) < 0) {
		l->file = NULL;
		return err_nomem(err);
	}
	return open_file(l, false, err);
}

static int sync_file(struct oplog *l, struct cloche_err *err)
{
	if (fdatasync(l->fd) < 0)
		return err_sys(err, errno, "sync %s", l->file);
	l->dirty = false;
	l->synced_usec = clock_mono_usec();
	return 0;
}

int oplog_sync(struct oplog *l, struct cloche_err *err)
{
	return l->fd >= 0 && l->dirty && l->sync == OPLOG_SYNC_INTERVAL ? sync_file(l, err) : 0;
}

int oplog_close(struct oplog *l, struct cloche_err *err)
{
	int r = oplog_sync(l, err);

	oplog_unlock(l);
	fd_close(l->fd);
	free(l->file);
	*l = OPLOG_INIT;
	return r;
}

/* --- reading --- */

/* Whether the open file still has the log's name. */
static bool is_current(const struct oplog *l)
{
	struct stat ours, named;

	return fstat(l->fd, &ours) == 0 &&
	       fstatat(l->dir, l->file, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
}

/* Close a file that was replaced. */
static void leave(struct oplog *l)
{
	l->anew = l->anew || l->size > 0;
	l->size = l->number = l->compact_at = 0;
	l->fd = fd_close(l->fd);
}

/* The end of a log may be torn, or zeros after a power cut. If it has zeros where its first entry
 * was, all of it is lost: nobody may take it for an empty log, or go on in its place. */
static int check_beginning(const struct oplog *l, struct cloche_err *err)
{
	char first[4096];
	ssize_t n = pread(l->fd, first, sizeof(first), 0);

	if (n < 0)
		return err_sys(err, errno, "read %s", l->file);
	return !memchr(first, 0, (size_t)n) ? 0
					    : err_set(err, E_CORRUPT,
						      "%s has zeros where its first entry should "
						      "be: it is no log, or the "
						      "disk has lost it",
						      l->file);
}

struct reading {
	struct oplog *l;
	oplog_fn fn;
	void *user;
	uint64_t *torn; /* of a file of somebody else's: see oplog_read_file(); NULL: our own log */
	struct state_line line;
};

/* Whether our own writer made this line for something other than the tables. Other lines must be
 * parsed. */
static bool is_about_others(struct str line)
{
	static const struct str begin[] = {STR("{\"op\":\"fs."), STR("{\"op\":\"exec."),
		STR("{\"op\":\"sandbox."), STR("{\"op\":\"assets.")};

	for (size_t i = 0; i < ARRAY_SIZE(begin); i++)
		if (str_starts(line, begin[i]))
			return true;
	return false;
}

static int oplog_take_line(struct reading *q, struct str text, struct cloche_err *err)
{
	struct oplog *l = q->l;
	uint64_t number = l->number + 1;
	int r;

	/* Skip blank lines, which an edited log may have. */
	if (text.n == 0) {
		l->size += 1;
		return 0;
	}
	if (l->tables_only && is_about_others(text)) {
		l->number = number;
		l->size += text.n + 1;
		return 0;
	}
	r = state_line_read(&q->line, text, err);
	/* It stands for all entries before it, and has the number of the last of them. */
	if (r == 0 && q->line.op.kind == STATE_TABLES)
		number = MAX(l->number, (uint64_t)1);
	if (r == 0 && q->line.op.number != 0 && q->line.op.number < number)
		r = err_set(err, E_CORRUPT, "its number %llu is not above the one before",
			(unsigned long long)q->line.op.number);
	/* The largest number in JSON. */
	else if (r == 0 && number > INT64_MAX)
		r = err_set(err, E_CORRUPT, "there is no number above the one before");
	if (r < 0) {
		err_wrap(err, r, "%s, entry %llu", l->file, (unsigned long long)number);
		return r;
	}
	if (q->line.op.number == 0)
		q->line.op.number = number;
	r = q->fn(&q->line.op, l->size, q->user, err);
	if (r != 0)
		return r;
	l->number = q->line.op.number;
	l->size += text.n + 1;
	return 0;
}

static int no_log(struct cloche_err *err)
{
	return err_set(err, E_CORRUPT,
		"the file is no log: it has neither entries, one on each line, nor an array of "
		"them");
}

/* Take what follows the last newline of a file of somebody else's: an entry, or what a writer left
 * that was killed. */
static int take_tail(struct reading *q, struct str text, struct cloche_err *err)
{
	int r;

	if (str_trim(text).n == 0)
		return 0;
	r = state_line_read(&q->line, text, NULL);
	if (r == -E_NO_MEMORY)
		return err_nomem(err);
	/* A part of an entry is never JSON, so what is JSON is whole. */
	if (r == 0 || q->line.doc)
		return oplog_take_line(q, text, err);
	if (q->l->number == 0)
		return no_log(err);
	*q->torn = text.n;
	return 0;
}

static int read_from(struct reading *q, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT((size_t)STATE_LINE_MAX + CHUNK + 1);
	struct oplog *l = q->l;
	struct str line;
	int r;

	while ((r = fd_next_line(l->fd, &b, l->size, UINT64_MAX, &line)) == 1) {
		size_t n = line.n + 1;

		r = oplog_take_line(q, line, err);
		if (r != 0)
			return r;
		buf_consume(&b, n);
	}
	if (r == -ENOMEM)
		return err_nomem(err);
	if (r == -E2BIG)
		return err_set(err, E_CORRUPT, "%s, entry %llu: the line is too long", l->file,
			(unsigned long long)l->number + 1);
	if (r < 0)
		return err_sys(err, -r, "read %s", l->file);
	if (l->number == 0 && buf_str(&b).n > 0 && (r = check_beginning(l, err)) < 0)
		return r;
	return q->torn ? take_tail(q, buf_str(&b), err) : 0;
}

/* Whether nothing was appended since the last read. */
static bool is_read(const struct oplog *l)
{
	struct stat st;

	return fstat(l->fd, &st) == 0 && (uint64_t)st.st_size == l->size;
}

int oplog_read(struct oplog *l, oplog_fn fn, void *user, bool *ret_anew, struct cloche_err *err)
{
	struct reading q = {.l = l, .fn = fn, .user = user, .line = STATE_LINE_INIT};
	int r = 0;

	if (l->fd >= 0 && !is_current(l))
		leave(l);
	if (l->fd < 0)
		r = open_file(l, false, err);
	if (ret_anew)
		*ret_anew = l->anew;
	l->anew = false;
	if (r == 0 && l->fd >= 0 && !is_read(l))
		r = read_from(&q, err);
	state_line_done(&q.line);
	return r;
}

/* Read the array that the original saves, all at once. JSON.stringify() makes a string of a log of
 * its version 0.4. */
static int read_array(struct reading *q, struct cloche_err *err)
{
	const size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY;
	_cleanup_(buf_donep) struct buf text = BUF_INIT(ARRAY_MAX);
	_cleanup_json_ json_t *array = NULL, *string = NULL;
	json_t *one;
	size_t i;
	int r = lseek(q->l->fd, 0, SEEK_SET) < 0 ? -errno : fd_read_to_end(q->l->fd, &text);

	if (r == -E2BIG)
		return err_set(err, E_LIMIT, "a log that is one JSON array has at most %d MiB",
			ARRAY_MAX >> 20);
	if (r < 0)
		return r == -ENOMEM ? err_nomem(err) : err_sys(err, -r, "read %s", q->l->file);
	r = json_text_read(buf_str(&text), flags, &array, NULL);
	if (r == 0 && json_is_string(array)) {
		string = TAKE_PTR(array);
		r = json_text_read(json_str(string), flags, &array, NULL);
	}
	if (r == -ENOMEM)
		return err_nomem(err);
	if (r < 0 || !json_is_array(array))
		return no_log(err);
	json_array_foreach (array, i, one) {
		r = state_line_read_value(&q->line, one, err);
		if (r < 0) {
			err_wrap(err, r, "%s, entry %zu", q->l->file, i + 1);
			return r;
		}
		if (q->line.op.number == 0)
			q->line.op.number = i + 1;
		r = q->fn(&q->line.op, 0, q->user, err);
		if (r != 0)
			return r;
	}
	return 0;
}

int oplog_read_file(int fd, uint64_t *ret_torn, oplog_fn fn, void *user, struct cloche_err *err)
{
	char name[] = "the log", first[64];
	struct oplog l = {.dir = -1, .file = name, .fd = fd};
	struct reading q = {
		.l = &l, .fn = fn, .user = user, .torn = ret_torn, .line = STATE_LINE_INIT};
	ssize_t n = pread(fd, first, sizeof(first), 0), i = 0;
	int r;

	if (ret_torn)
		*ret_torn = 0;
	if (n < 0)
		return err_sys(err, errno, "read the log");
	while (i < n && strchr(" \t\r\n", first[i]))
		i++;
	r = i < n && (first[i] == '[' || first[i] == '"') ? read_array(&q, err)
							  : read_from(&q, err);
	state_line_done(&q.line);
	return r;
}

/* --- writing --- */

/* Return the end of the last whole line in the first size bytes, or -1 with errno. */
static off_t find_end(int fd, off_t size)
{
	char chunk[4096];

	while (size > 0) {
		size_t n = (size_t)MIN(size, (off_t)sizeof(chunk));
		ssize_t got = pread(fd, chunk, n, size - (off_t)n);
		const char *end = got == (ssize_t)n ? memrchr(chunk, '\n', n) : NULL;

		if (got != (ssize_t)n)
			return -1;
		if (end)
			return size - (off_t)n + (end - chunk) + 1;
		size -= (off_t)n;
	}
	return 0;
}

/* Read backwards in chunks, each with the beginning of the chunk after it. */
int oplog_find(struct oplog *l, struct str begin, struct cloche_err *err)
{
	_cleanup_(freep) char *chunk = malloc(CHUNK + begin.n + 1);
	struct stat st;
	off_t at, end;

	if (l->fd < 0 || l->size > 0)
		return 0;
	if (!chunk)
		return err_nomem(err);
	if (fstat(l->fd, &st) < 0)
		return err_sys(err, errno, "stat %s", l->file);
	at = end = find_end(l->fd, st.st_size);
	while (at > 0) {
		off_t from = at > CHUNK ? at - CHUNK : 0;
		ssize_t n = pread(l->fd, chunk, (size_t)(at - from) + begin.n + 1, from);

		if (n < at - from)
			return err_sys(err, n < 0 ? errno : EIO, "read %s", l->file);
		for (off_t i = at - from; i-- > 0;) {
			struct str rest = str_make(chunk + i + 1, (size_t)(n - i - 1));

			/* A line that starts at the end is torn. */
			if (chunk[i] != '\n' || from + i + 1 == end || !str_starts(rest, begin))
				continue;
			l->size = (uint64_t)(from + i + 1);
			return 0;
		}
		at = from;
	}
	return 0;
}

int oplog_end(const struct oplog *l, uint64_t *ret, struct cloche_err *err)
{
	struct stat st;
	off_t end;

	if (fstat(l->fd, &st) < 0)
		return err_sys(err, errno, "stat %s", l->file);
	errno = EIO;
	end = find_end(l->fd, st.st_size);
	if (end < 0)
		return err_sys(err, errno, "read %s", l->file);
	*ret = (uint64_t)end;
	return 0;
}

static int cut_torn(struct oplog *l, struct cloche_err *err)
{
	struct stat st;
	uint64_t end;
	int r = oplog_end(l, &end, err);

	if (r < 0)
		return r;
	if (fstat(l->fd, &st) < 0)
		return err_sys(err, errno, "stat %s", l->file);
	if (end == 0 && st.st_size > 0 && (r = check_beginning(l, err)) < 0)
		return r;
	if ((off_t)end < st.st_size && ftruncate(l->fd, (off_t)end) < 0)
		return err_sys(err, errno, "cut off the torn end of %s", l->file);
	return 0;
}

int oplog_lock(struct oplog *l, struct cloche_err *err)
{
	for (;;) {
		int r = l->fd < 0 ? open_file(l, true, err) : 0;

		if (r < 0)
			return r;
		r = job_lock(l->fd, LOCK_EX);
		if (r < 0)
			return err_sys(err, -r, "lock %s", l->file);
		l->locked = true;
		if (is_current(l))
			break;
		leave(l);
	}
	return cut_torn(l, err);
}

void oplog_unlock(struct oplog *l)
{
	if (l->locked)
		(void)flock(l->fd, LOCK_UN);
	l->locked = false;
}

static int sync_as_asked(struct oplog *l, struct cloche_err *err)
{
	uint64_t now;

	l->dirty = true;
	if (l->sync == OPLOG_SYNC_NEVER)
		return 0;
	now = l->sync == OPLOG_SYNC_ALWAYS ? USEC_INFINITY : clock_mono_usec();
	return now - l->synced_usec < USEC_PER_SEC ? 0 : sync_file(l, err);
}

int oplog_append_lines(struct oplog *l, struct str lines, struct cloche_err *err)
{
	int r;

	if (lines.n > STATE_LINE_MAX)
		return err_set(err, E_LIMIT, "the operation is too large for a log");
	r = fd_write_all(l->fd, lines.p, lines.n);
	if (r < 0) {
		/* Best effort: the next writer cuts off a torn line. */
		if (ftruncate(l->fd, (off_t)l->size) < 0)
			(void)errno;
		err_sys(err, -r, "append to %s", l->file);
		return r == -ENOSPC && err ? -(err->code = E_NO_SPACE) : -E_SYSTEM;
	}
	l->size += lines.n;
	return sync_as_asked(l, err);
}

static int line_write(struct buf *out, struct state_op *op, struct cloche_err *err)
{
	int r = state_op_check(op, err);

	if (r < 0)
		return r;
	if (op->usec == 0)
		op->usec = clock_real_usec();
	r = state_op_write(out, op);
	if (r == -ENOMEM)
		return err_nomem(err);
	return r < 0 ? err_set(err, E_LIMIT, "the operation is too large for a log") : 0;
}

int oplog_append(struct oplog *l, struct state_op *ops, size_t n, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf lines = BUF_INIT((size_t)STATE_LINE_MAX);
	uint64_t before = l->size;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		ops[i].number = l->number + 1 + i;
		r = line_write(&lines, &ops[i], err);
	}
	if (r == 0)
		r = oplog_append_lines(l, buf_str(&lines), err);
	if (l->size > before)
		l->number += n;
	return r;
}

int oplog_replace(struct oplog *l, const char *by, struct cloche_err *err)
{
	if (renameat(l->dir, by, l->dir, l->file) < 0)
		return err_sys(err, errno, "replace %s", l->file);
	if (l->sync != OPLOG_SYNC_NEVER && fsync(l->dir) < 0)
		return err_sys(err, errno, "sync the directory of %s", l->file);
	return 0;
}
