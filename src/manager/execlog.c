/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a process of the room may print any amount in any pattern. So that it cannot
 * fill the host's disk, at most `max` bytes of output are kept, dropped in steps of an eighth, and
 * an index of at most an eighth of that (but at least 256 KiB). If the streams alternate so often
 * that the index is full, its older half is dropped together with the output that it described. A
 * write error (a full disk, a file system without holes once `max` is reached) ends the log, never
 * the process: the rest is counted and thrown away. */
#include "manager/execlog.h"
#include "base/fd.h"
#include "base/macro.h"
#include "ipc/rundir.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(EXECLOG_MIN_BYTES / 8 >= 64 * 1024, "a part is no less than a block");
enum {
	BLOCK = 64 * 1024, /* holes begin and end at its multiples */
	SPARE = 4 * BLOCK,
	PART = 8, /* 1/PART of max: dropped at once (at least a block); the index's share */
	READ_TRIES = 512,
};

static uint64_t round_down(uint64_t n)
{
	return n - n % BLOCK;
}

static void stop(struct execlog *l, int e)
{
	/* Free some space on a full disk, so that the end of the process can be recorded. */
	if ((e == ENOSPC || e == EDQUOT) && l->out >= 0) {
		uint64_t upto = MIN(l->first + SPARE, l->end) / BLOCK * BLOCK;

		if (upto <= l->first)
			upto = l->end;
		if (upto > l->first && fallocate(l->out, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					       (off_t)l->first, (off_t)(upto - l->first)) == 0)
			l->first = upto;
	}
	l->out = fd_close(l->out);
	l->index = fd_close(l->index);
	l->sys_errno = e;
}

int execlog_make(struct execlog *l, int dir, uint64_t max)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

	*l = EXECLOG_INIT;
	l->max = MAX(max ? max : (uint64_t)EXECLOG_DEFAULT_BYTES, (uint64_t)EXECLOG_MIN_BYTES);
	l->index = openat(dir, RUNDIR_INDEX, flags, 0600);
	/* Made last, so that a visible log has both files. */
	if (l->index >= 0)
		l->out = openat(dir, RUNDIR_OUT, flags, 0600);
	if (l->out < 0)
		stop(l, errno);
	return -l->sys_errno;
}

void execlog_done(struct execlog *l)
{
	l->out = fd_close(l->out);
	l->index = fd_close(l->index);
}

/* Punch a hole from *first to upto. */
static bool give_up(struct execlog *l, int fd, uint64_t *first, uint64_t upto)
{
	upto = round_down(upto);
	if (upto <= *first)
		return true;
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)*first,
		    (off_t)(upto - *first)) < 0) {
		stop(l, errno);
		return false;
	}
	*first = upto;
	return true;
}

/* Drop the older half of the index, and the output that only it described. */
static bool shorten_index(struct execlog *l)
{
	uint64_t upto = round_down(l->index_first + (l->index_end - l->index_first) / 2);
	uint64_t entry;

	if (pread(l->index, &entry, sizeof(entry), (off_t)upto) != (ssize_t)sizeof(entry)) {
		stop(l, EIO);
		return false;
	}
	/* If the offset is within a block, the output before it in that block stays without an
	 * entry, and readers skip it. */
	return give_up(l, l->out, &l->first, le64toh(entry) >> 1) &&
	       give_up(l, l->index, &l->index_first, upto);
}

/* Make space for n bytes of a stream, and add an index entry if the stream changes. Return false if
 * nothing can be logged. */
static bool prepare(struct execlog *l, int stream, uint64_t n)
{
	uint64_t entry = htole64(l->end << 1 | (stream == 2));

	if (l->out < 0)
		return false;
	if (l->end + n - l->first > l->max &&
		!give_up(l, l->out, &l->first, l->end + n - l->max + l->max / PART))
		return false;
	if (stream == l->stream)
		return true;
	if (l->index_end - l->index_first >= MAX(l->max / PART, (uint64_t)4 * BLOCK) &&
		!shorten_index(l))
		return false;
	if (pwrite(l->index, &entry, sizeof(entry), (off_t)l->index_end) !=
		(ssize_t)sizeof(entry)) {
		stop(l, errno ? errno : ENOSPC);
		return false;
	}
	l->index_end += sizeof(entry);
	l->stream = stream;
	return true;
}

/* Discard n bytes from a pipe. Return how many were there. */
static uint64_t throw_away(int pipe, uint64_t n)
{
	char chunk[16 * 1024];
	uint64_t gone = 0;

	while (gone < n) {
		ssize_t r = read(pipe, chunk, MIN(sizeof(chunk), n - gone));

		if (r <= 0)
			break;
		gone += (uint64_t)r;
	}
	return gone;
}

uint64_t execlog_splice(struct execlog *l, int stream, int pipe, uint64_t n)
{
	uint64_t moved = 0, dropped;

	if (prepare(l, stream, n)) {
		while (moved < n) {
			off_t at = (off_t)l->end;
			ssize_t r = splice(pipe, NULL, l->out, &at, n - moved, SPLICE_F_NONBLOCK);

			if (r < 0 && errno == EINTR)
				continue;
			/* A process of the room may have read its own output. */
			if (r == 0 || (r < 0 && errno == EAGAIN))
				return moved;
			if (r < 0) {
				stop(l, errno);
				break;
			}
			moved += (uint64_t)r;
			l->end += (uint64_t)r;
		}
	}
	dropped = throw_away(pipe, n - moved);
	l->lost += dropped;
	return moved + dropped;
}

void execlog_write(struct execlog *l, int stream, const void *p, uint64_t n)
{
	const char *at = p;

	if (prepare(l, stream, n)) {
		while (n > 0) {
			ssize_t r = pwrite(l->out, at, n, (off_t)l->end);

			if (r < 0 && errno == EINTR)
				continue;
			if (r <= 0) {
				stop(l, errno);
				break;
			}
			at += r;
			n -= (uint64_t)r;
			l->end += (uint64_t)r;
		}
	}
	l->lost += n;
}

/* --- reading --- */

int execlog_reader_open(struct execlog_reader *r, int dir, struct cloche_err *err)
{
	*r = EXECLOG_READER_INIT;
	r->out = openat(dir, RUNDIR_OUT, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (r->out >= 0)
		r->index = openat(dir, RUNDIR_INDEX, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (r->index < 0) {
		int e = errno;

		execlog_reader_done(r);
		return e == ENOENT ? err_set(err, E_NOT_FOUND, "this process has no log")
				   : err_sys(err, e, "open the log");
	}
	return 0;
}

void execlog_reader_done(struct execlog_reader *r)
{
	r->out = fd_close(r->out);
	r->index = fd_close(r->index);
}

/* Return where data begins in a file of this size (size if there is none), or -errno. */
static int64_t first_data(int fd, int64_t size)
{
	off_t at;

	if (size == 0)
		return 0;
	at = lseek(fd, 0, SEEK_DATA);
	if (at < 0)
		return errno == ENXIO ? size : -errno;
	return MIN((int64_t)at, size);
}

/* The output at one moment, and the index a moment later: the writer adds an entry for a new stream
 * before it writes the data, so the index covers all of that output. */
struct view {
	uint64_t start, end;
	uint64_t index_start, index_end; /* offsets in bytes, whole entries */
};

static int read_entry(const struct execlog_reader *r, uint64_t at, uint64_t *ret)
{
	uint64_t entry;
	ssize_t n = pread(r->index, &entry, sizeof(entry), (off_t)at);

	if (n != (ssize_t)sizeof(entry))
		return n < 0 ? -errno : -EAGAIN;
	*ret = le64toh(entry);
	return 0;
}

static int look(const struct execlog_reader *r, struct view *v)
{
	struct stat out, index;
	int64_t first, index_first;
	uint64_t entry;
	int e;

	if (fstat(r->out, &out) < 0 || fstat(r->index, &index) < 0)
		return -errno;
	index_first = first_data(r->index, index.st_size);
	first = first_data(r->out, out.st_size);
	if (first < 0 || index_first < 0)
		return (int)MIN(first, index_first);
	*v = (struct view){.start = (uint64_t)first, .end = (uint64_t)out.st_size};
	v->index_start = (uint64_t)index_first;
	v->index_end = (uint64_t)index.st_size - (uint64_t)index.st_size % EXECLOG_ENTRY;
	if (v->index_start >= v->index_end) {
		v->start = v->end;
		return 0;
	}
	e = read_entry(r, v->index_start, &entry);
	if (e < 0)
		return e;
	v->start = MIN(MAX(v->start, entry >> 1), v->end);
	return 0;
}

int execlog_extent(const struct execlog_reader *r, uint64_t *ret_start, uint64_t *ret_end)
{
	struct view v = {0};
	int e = look(r, &v);

	if (e < 0)
		return e;
	*ret_start = v.start;
	*ret_end = v.end;
	return 0;
}

/* Find the stream of the byte at offset and where the other stream begins next (UINT64_MAX: not
 * yet). */
static int find_stream(const struct execlog_reader *r, const struct view *v, uint64_t offset,
	int *ret_stream, uint64_t *ret_until)
{
	/* Invariant: the entry at low is not behind offset, the one at high is. */
	uint64_t low = v->index_start / EXECLOG_ENTRY, high = v->index_end / EXECLOG_ENTRY;
	uint64_t entry = 0;
	int e;

	*ret_until = UINT64_MAX;
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		e = read_entry(r, middle * EXECLOG_ENTRY, &entry);
		if (e < 0)
			return e;
		if (entry >> 1 <= offset) {
			low = middle;
		} else {
			high = middle;
			*ret_until = entry >> 1;
		}
	}
	e = read_entry(r, low * EXECLOG_ENTRY, &entry);
	if (e == 0)
		*ret_stream = entry & 1 ? 2 : 1;
	return e;
}

int64_t execlog_read(
	const struct execlog_reader *r, uint64_t *offset, void *p, uint64_t size, int *ret_stream)
{
	/* Try again if the writer has dropped this part, or a part of the index, meanwhile. */
	for (int tries = 0; tries < READ_TRIES; tries++) {
		struct view v, after;
		uint64_t until, at;
		ssize_t n;
		int e = look(r, &v);

		if (e == -EAGAIN)
			continue;
		if (e < 0)
			return e;
		at = MAX(*offset, v.start);
		if (at >= v.end) {
			*offset = at;
			return 0;
		}
		e = find_stream(r, &v, at, ret_stream, &until);
		if (e < 0 && e != -EAGAIN)
			return e;
		until = MIN(until, v.end);
		size = MIN(size, until - at);
		n = pread(r->out, p, size, (off_t)at);
		if (n < 0)
			return -errno;
		e = look(r, &after);
		if (e == 0 && n > 0 && after.start <= at && after.index_start == v.index_start) {
			*offset = at;
			return n;
		}
	}
	return -EAGAIN;
}
