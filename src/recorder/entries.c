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

int entry_of_missed(struct recorder *r, struct sight *s, const char *path, uint64_t size,
	const char *why, struct cloche_err *err)
{
	int e;

	s->missed = r->turn;
	if (s->told)
		return 0;
	e = entry_of_skip(r, *path ? path : "/", size, why, err);
	s->told = e == 0;
	r->missed = r->missed || !r->quiet;
	return e;
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
 * large. A failure is a matter of this file alone. */
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

/* Whether the file has the contents that are on record. */
static bool has_digest(int fd, const struct stat *st, const char *digest)
{
	_cleanup_(freep) char *chunk = malloc(CHUNK);
	char own[SHA256_HEX_MAX];
	struct sha256 h;
	off_t at = 0;
	ssize_t n = 1;

	sha256_init(&h);
	while (chunk && at < st->st_size && (n = pread(fd, chunk, CHUNK, at)) > 0) {
		sha256_add(&h, str_make(chunk, (size_t)n));
		at += n;
	}
	sha256_hex(&h, own);
	return chunk && at == st->st_size && strcmp(own, digest) == 0;
}

/* The contents are not on record. Whatever they are at the next look, they are new then. */
static int skip_contents(struct recorder *r, struct seen *s, const struct stat *st, const char *why,
	struct cloche_err *err)
{
	s->digest[0] = '\0';
	return entry_of_skip(r, s->path, (uint64_t)st->st_size, why, err);
}

/* The contents cannot be kept: the next look tries again. */
static int miss_contents(struct recorder *r, struct seen *s, const struct stat *st, const char *why,
	struct cloche_err *err)
{
	s->digest[0] = '\0';
	s->unsure = true;
	return entry_of_missed(r, &s->sight, s->path, (uint64_t)st->st_size, why, err);
}

int entry_of_file(
	struct recorder *r, struct seen *s, int fd, const struct stat *st, struct cloche_err *err)
{
	struct state_op op = {
		.kind = STATE_FS_WRITE, .subject = str_from(s->path), .mode = st->st_mode & 07777};
	_cleanup_(freep) char *data = malloc(CHUNK);
	static const char beyond[] = "the limit of the record is reached";
	bool over = !r->quiet && r->used + (uint64_t)st->st_size > r->limit;
	struct cloche_err why = CLOCHE_ERR_INIT;
	char ref[STATE_REF_BYTES + 1];
	char digest[SHA256_HEX_MAX];
	ssize_t n;
	int e;

	_Static_assert(
		(int)CHUNK == (int)STATE_DATA_MAX, "what is read at once stands in the log itself");
	if (!data)
		return err_nomem(err);
	if (st->st_size > RECORDER_MAX_FILE)
		return skip_contents(r, s, st, "it is too large", err);
	if (st->st_size >= CHUNK && *s->digest && has_digest(fd, st, s->digest))
		return entry_of_mode(r, s, st->st_mode, err);
	if (over && st->st_size >= CHUNK)
		return skip_contents(r, s, st, beyond, err);
	n = read_some(fd, data, CHUNK);
	if (n < 0)
		return skip_contents(r, s, st, err_errno_text((int)-n), err);
	if (n < CHUNK) {
		op.object = str_make(data, (size_t)n);
		sha256_text(op.object, digest);
		/* A new mode is recorded all the same. */
		if (over && strcmp(s->digest, digest) != 0)
			return skip_contents(r, s, st, beyond, err);
		return entries_put(r, s, st, &op, digest, err);
	}
	if (over) /* it has grown */
		return skip_contents(r, s, st, beyond, err);
	if (r->quiet)
		return 0;
	e = copy_contents(r, fd, data, (size_t)n, ref, &why);
	if (e < 0)
		return miss_contents(
			r, s, st, why.sys_errno ? err_errno_text(why.sys_errno) : why.message, err);
	if (e > 0)
		return skip_contents(r, s, st, "it grows while it is read", err);
	op.is_ref = true;
	op.object = str_from(ref);
	return entries_put(r, s, st, &op, ref + 7, err);
}
