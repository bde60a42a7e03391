/* SPDX-License-Identifier: Apache-2.0 */
/* The output of a command: its log is copied, each stream as text if it is short, else as a blob,
 * with the lengths of the pieces in which the two streams alternated. What the limit of the record
 * still permits is kept, from the beginning; the rest is cut off. */
#include "manager/execlog.h"
#include "recorder/recorder.h"

enum { CHUNK = 64 << 10, MAX_TURNS = 4096 };

struct stream {
	struct buf text; /* text for the entry itself */
	struct blob_writer blob;
	char ref[STATE_REF_BYTES + 1];
};

struct turns {
	uint64_t n[MAX_TURNS];
	unsigned count;
};

struct printed {
	struct stream streams[2];
	struct turns turns;
	uint64_t kept; /* bytes of both streams */
	uint64_t lost;
	bool cut; /* the limit of the record was reached */
};

static int add(struct recorder *r, struct stream *p, struct str piece, struct cloche_err *err)
{
	int e = 0;

	if (p->blob.fd < 0 && buf_len(&p->text) + piece.n <= STATE_DATA_MAX)
		return buf_add_str(&p->text, piece) < 0 ? err_nomem(err) : 0;
	if (p->blob.fd < 0) {
		e = contents_begin(r, &p->blob, err);
		if (e == 0)
			e = blob_add(&p->blob, buf_str(&p->text), err);
	}
	return e == 0 ? blob_add(&p->blob, piece, err) : e;
}

static void take_turn(struct turns *t, int stream, uint64_t n)
{
	unsigned parity = stream == 2;

	if (t->count > 0 && (t->count - 1) % 2 == parity) {
		t->n[t->count - 1] += n;
		return;
	}
	/* The first length is for standard output, so it may be 0. */
	if (t->count == 0 && parity == 1)
		t->n[t->count++] = 0;
	if (t->count < MAX_TURNS)
		t->n[t->count++] = n;
}

/* Keep as much of the piece as the limit permits. What a text takes in the entry beyond its own
 * bytes counts for the next entries. */
static int printed_take(
	struct recorder *r, struct printed *p, int stream, struct str piece, struct cloche_err *err)
{
	uint64_t used = r->used + p->kept, left = used < r->limit ? r->limit - used : 0;

	p->cut = piece.n > left;
	piece = str_prefix(piece, (size_t)MIN(left, (uint64_t)piece.n));
	if (piece.n == 0)
		return 0;
	p->kept += piece.n;
	take_turn(&p->turns, stream, piece.n);
	return add(r, &p->streams[stream == 2], piece, err);
}

static int copy(struct recorder *r, int dir, struct printed *p, struct cloche_err *err)
{
	struct execlog_reader log = EXECLOG_READER_INIT;
	_cleanup_(freep) char *chunk = malloc(CHUNK);
	uint64_t at = 0, start = 0, end = 0;
	int e = chunk ? execlog_reader_open(&log, dir, err) : err_nomem(err);

	if (e < 0)
		return e;
	e = execlog_extent(&log, &start, &end);
	p->lost = at = start;
	while (e == 0 && at < end && !p->cut) {
		int stream;
		int64_t n = execlog_read(&log, &at, chunk, MIN((uint64_t)CHUNK, end - at), &stream);

		if (n <= 0) {
			e = (int)n;
			break;
		}
		e = printed_take(r, p, stream, str_make(chunk, (size_t)n), err);
		at += (uint64_t)n;
	}
	execlog_reader_done(&log);
	return e;
}

static int printed_put(struct recorder *r, struct stream *p, const char *key, const char *ref_key,
	struct jsonout *o, struct cloche_err *err)
{
	int e = 0;

	if (p->blob.fd >= 0) {
		e = contents_finish(r, &p->blob, p->ref, err);
		if (e == 0)
			jsonout_text(o, ref_key, p->ref);
	} else {
		state_argument_write(o, key, buf_str(&p->text));
	}
	return e;
}

int printed_add(struct recorder *r, int dir, struct jsonout *o, struct cloche_err *err)
{
	_cleanup_(freep) struct printed *p = calloc(1, sizeof(*p));
	int e;

	if (!p)
		return err_nomem(err);
	for (int i = 0; i < 2; i++)
		p->streams[i] = (struct stream){BUF_INIT(STATE_DATA_MAX), BLOB_WRITER_INIT, ""};
	e = copy(r, dir, p, err);
	if (e == 0)
		e = printed_put(r, &p->streams[0], "stdout", "stdoutRef", o, err);
	if (e == 0)
		e = printed_put(r, &p->streams[1], "stderr", "stderrRef", o, err);
	if (e == 0 && p->turns.count > 1) {
		jsonout_open(o, "order", '[');
		for (unsigned i = 0; i < p->turns.count; i++)
			jsonout_number(o, NULL, p->turns.n[i]);
		jsonout_close(o, ']');
	}
	if (p->lost)
		jsonout_number(o, "lost", p->lost);
	if (p->cut)
		jsonout_bool(o, "cut", true);
	for (int i = 0; i < 2; i++) {
		buf_done(&p->streams[i].text);
		blob_done(&p->streams[i].blob);
	}
	return e;
}
