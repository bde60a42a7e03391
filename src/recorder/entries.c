/* SPDX-License-Identifier: Apache-2.0 */
/* Recording single entries. */
#include "recorder/recorder.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

enum { CHUNK = 64 << 10 };

static int append(struct recorder *r, struct state_op *op, struct cloche_err *err)
{
	uint64_t before = r->state.log.size;
	int e;

	if (r->quiet)
		return 0;
	op->exec = r->exec;
	if (r->exec && op->kind != STATE_FS_DELETE)
		op->changed_usec = r->changed_usec;
	e = state_record(&r->state, op, err);
	if (r->state.log.size > before)
		r->used += r->state.log.size - before;
	return e;
}

int entry_of_name(struct recorder *r, enum state_op_kind kind, const char *path, struct str target,
	uint32_t mode, struct cloche_err *err)
{
	struct state_op op = {
		.kind = kind, .subject = str_from(path), .object = target, .mode = mode};

	return append(r, &op, err);
}

int entry_of_mode(struct recorder *r, struct seen *s, uint32_t mode, struct cloche_err *err)
{
	bool same = s->any_mode || (s->mode & 07777) == (mode & 07777);

	s->any_mode = false;
	return same ? 0 : entry_of_name(r, STATE_FS_CHMOD, s->path, STR_NULL, mode & 07777, err);
}

int entry_of_event(
	struct recorder *r, enum state_op_kind kind, struct str args, struct cloche_err *err)
{
	struct state_op op = {.kind = kind, .object = args, .mode = STATE_NO_MODE};

	return state_record(&r->state, &op, err);
}

int contents_begin(struct recorder *r, struct blob_writer *w, struct cloche_err *err)
{
	if (r->lock < 0)
		r->lock = blobs_lock(r->contents, false, err);
	return r->lock < 0 ? r->lock : blob_begin(w, r->contents, err);
}

int contents_finish(struct recorder *r, struct blob_writer *w, char ret[STATE_REF_BYTES + 1],
	struct cloche_err *err)
{
	r->used += w->size;
	return blob_finish(w, r->always, ret, err);
}

int entry_of_skip(struct recorder *r, const char *path, uint64_t size, const char *why,
	struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT((size_t)8 * STATE_PATH_MAX);
	struct jsonout o = {.b = &b};

	if (r->quiet)
		return 0;
	jsonout_open(&o, NULL, '{');
	state_argument_write(&o, "path", str_from(path));
	jsonout_number(&o, "size", size);
	jsonout_text(&o, "why", why);
	if (r->exec)
		jsonout_number(&o, "exec", r->exec);
	jsonout_close(&o, '}');
	return o.error < 0 ? err_nomem(err) : entry_of_event(r, STATE_FS_SKIP, buf_str(&b), err);
}

/* Read at most n bytes from fd; fewer at the end. */
static ssize_t read_some(int fd, char *p, size_t n)
{
	size_t have = 0;

	while (have < n) {
		ssize_t got = read(fd, p + have, n - have);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		have += (size_t)got;
	}
	return (ssize_t)have;
}

/* Copy the contents to a blob. Their first n bytes are in data. Return 1 if they turn out to be too
 * large. */
static int copy_contents(struct recorder *r, int fd, char *data, size_t n,
	char ret[STATE_REF_BYTES + 1], struct cloche_err *err)
{
	_cleanup_(blob_donep) struct blob_writer w = BLOB_WRITER_INIT;
	int e = contents_begin(r, &w, err);

	while (e == 0) {
		ssize_t got;

		e = blob_add(&w, str_make(data, n), err);
		if (e < 0 || n < CHUNK)
			break;
		/* The file may grow while it is read. */
		if (w.size > RECORDER_MAX_FILE)
			return 1;
		got = read_some(fd, data, CHUNK);
		if (got < 0)
			return err_sys(err, (int)-got, "read a file of the room");
		n = (size_t)got;
	}
	return e < 0 ? e : contents_finish(r, &w, ret, err);
}

/* Append the entry, or only the mode if the contents have not changed. */
static int entries_put(struct recorder *r, struct seen *s, const struct stat *st,
	struct state_op *op, const char *digest, struct cloche_err *err)
{
	bool same = strcmp(s->digest, digest) == 0;
	int e = same ? entry_of_mode(r, s, st->st_mode, err) : append(r, op, err);

	s->any_mode = false;
	snprintf(s->digest, sizeof(s->digest), "%s", e == 0 ? digest : "");
	return e;
}

int entry_of_file(
	struct recorder *r, struct seen *s, int fd, const struct stat *st, struct cloche_err *err)
{
	struct state_op op = {
		.kind = STATE_FS_WRITE, .subject = str_from(s->path), .mode = st->st_mode & 07777};
	_cleanup_(freep) char *data = malloc(CHUNK);
	static const char beyond[] = "the limit of the record is reached";
	bool over = !r->quiet && r->used + (uint64_t)st->st_size > r->limit;
	char ref[STATE_REF_BYTES + 1];
	char digest[SHA256_HEX_MAX];
	ssize_t n;
	int e;

	_Static_assert(
		(int)CHUNK == (int)STATE_DATA_MAX, "what is read at once stands in the log itself");
	if (!data)
		return err_nomem(err);
	if (st->st_size > RECORDER_MAX_FILE)
		return entry_of_skip(r, s->path, (uint64_t)st->st_size, "it is too large", err);
	if (over && st->st_size >= CHUNK)
		return entry_of_skip(r, s->path, (uint64_t)st->st_size, beyond, err);
	n = read_some(fd, data, CHUNK);
	if (n < 0)
		return entry_of_skip(
			r, s->path, (uint64_t)st->st_size, err_errno_text((int)-n), err);
	if (n < CHUNK) {
		op.object = str_make(data, (size_t)n);
		sha256_text(op.object, digest);
		/* A new mode is recorded all the same. */
		if (over && strcmp(s->digest, digest) != 0)
			return entry_of_skip(r, s->path, (uint64_t)st->st_size, beyond, err);
		return entries_put(r, s, st, &op, digest, err);
	}
	if (over) /* it has grown */
		return entry_of_skip(r, s->path, (uint64_t)st->st_size, beyond, err);
	e = r->quiet ? 0 : copy_contents(r, fd, data, (size_t)n, ref, err);
	if (r->quiet || e < 0)
		return e;
	if (e > 0)
		return entry_of_skip(
			r, s->path, (uint64_t)st->st_size, "it grows while it is read", err);
	op.is_ref = true;
	op.object = str_from(ref);
	return entries_put(r, s, st, &op, ref + 7, err);
}
