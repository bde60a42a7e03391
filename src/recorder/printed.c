/* SPDX-License-Identifier: Apache-2.0 */
/* The output of a command: its log is copied, each stream as text if it is short, else as a blob,
 * with the lengths of the pieces in which the two streams alternated. */
#include "manager/execlog.h"
#include "recorder/recorder.h"

#include <errno.h>

enum { CHUNK = 64 << 10, MAX_TURNS = 4096 };

struct printed {
	struct buf text; /* text for the entry itself */
	struct blob_writer blob;
	char ref[STATE_REF_BYTES + 1];
	bool cut; /* the limit of the record was reached */
};

struct turns {
	uint64_t n[MAX_TURNS];
	unsigned count;
};

static int add(struct recorder *r, struct printed *p, struct str piece, struct cloche_err *err)
{
	int e = 0;

	if (p->cut)
		return 0;
	if (p->blob.fd < 0 && buf_len(&p->text) + piece.n <= STATE_DATA_MAX)
		return buf_add_str(&p->text, piece) < 0 ? err_nomem(err) : 0;
	if (r->used + buf_len(&p->text) + p->blob.size + piece.n > r->limit) {
		p->cut = true;
		return 0;
	}
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

static int copy(struct recorder *r, int dir, struct printed p[2], struct turns *turns,
	uint64_t *ret_lost, struct cloche_err *err)
{
	struct execlog_reader log = EXECLOG_READER_INIT;
	_cleanup_(freep) char *chunk = malloc(CHUNK);
	uint64_t at = 0, start = 0, end = 0;
	int e = chunk ? execlog_reader_open(&log, dir, err) : err_nomem(err);

	if (e < 0)
		return e;
	e = execlog_extent(&log, &start, &end);
	*ret_lost = at = start;
	while (e == 0 && at < end) {
		int stream;
		int64_t n = execlog_read(&log, &at, chunk, MIN((uint64_t)CHUNK, end - at), &stream);

		if (n <= 0) {
			e = (int)n;
			break;
		}
		take_turn(turns, stream, (uint64_t)n);
		e = add(r, &p[stream == 2], str_make(chunk, (size_t)n), err);
		at += (uint64_t)n;
	}
	execlog_reader_done(&log);
	return e;
}

static int put(struct recorder *r, struct printed *p, const char *key, const char *ref_key,
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
	struct printed p[2] = {{BUF_INIT(STATE_DATA_MAX), BLOB_WRITER_INIT, "", false},
		{BUF_INIT(STATE_DATA_MAX), BLOB_WRITER_INIT, "", false}};
	_cleanup_(freep) struct turns *turns = calloc(1, sizeof(*turns));
	uint64_t lost = 0;
	int e = turns ? copy(r, dir, p, turns, &lost, err) : err_nomem(err);

	if (e == 0)
		e = put(r, &p[0], "stdout", "stdoutRef", o, err);
	if (e == 0)
		e = put(r, &p[1], "stderr", "stderrRef", o, err);
	if (e == 0 && turns->count > 1) {
		jsonout_open(o, "order", '[');
		for (unsigned i = 0; i < turns->count; i++)
			jsonout_number(o, NULL, turns->n[i]);
		jsonout_close(o, ']');
	}
	if (lost)
		jsonout_number(o, "lost", lost);
	if (p[0].cut || p[1].cut)
		jsonout_bool(o, "cut", true);
	for (int i = 0; i < 2; i++) {
		buf_done(&p[i].text);
		blob_done(&p[i].blob);
	}
	return e;
}
