/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: base http */
/* However WebSocket frames are cut, the same comes out; and what came out, written anew, is read as
 * the same again. */
#include "base/buf.h"
#include "http/ws.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
	if (!cond)
		abort();
}

struct outcome {
	enum ws_result last;
	struct ws_reader reader;
	struct buf wire; /* written anew */
};

static void take(struct outcome *o, struct str *in)
{
	struct str piece = STR_NULL, before = *in;
	char head[WS_HEAD_MAX];
	uint64_t at = 0;

	while ((o->last = ws_read(&o->reader, in, &piece)) == WS_HEAD || o->last == WS_DATA) {
		const struct ws_frame *f = &o->reader.frame;

		if (o->last == WS_HEAD) {
			at = 0;
			require(f->length <= WS_FRAME_MAX);
			require(buf_add(&o->wire, head, ws_write_head(head, f)) == 0);
			continue;
		}
		require(piece.n > 0 && at + piece.n <= f->length);
		at += piece.n;
		require(f->opcode >= WS_CLOSE ||
			(piece.p >= before.p && piece.p + piece.n <= before.p + before.n));
		require(buf_add_str(&o->wire, piece) == 0);
	}
	require(o->last != WS_MORE || in->n == 0);
	require(o->last != WS_ERROR || o->reader.error != WS_E_OK);
}

static void read_cut(
	struct outcome *o, enum ws_side side, const uint8_t *data, size_t size, size_t step)
{
	size_t at = 0;

	*o = (struct outcome){.reader = ws_reader(side), .wire = BUF_INIT(SIZE_MAX / 2)};
	while (o->last == WS_MORE && at < size) {
		size_t n = step && step < size - at ? step : size - at;
		char *copy = malloc(n);
		struct str in = str_make(copy, n);

		require(copy != NULL);
		memcpy(copy, data + at, n);
		take(o, &in);
		at += n;
		free(copy);
	}
}

static void require_same(const struct outcome *a, const struct outcome *b)
{
	const struct ws_counts *m = &a->reader.counts, *n = &b->reader.counts;

	require(a->last == b->last && a->reader.error == b->reader.error);
	require(str_eq(buf_str(&a->wire), buf_str(&b->wire)));
	require(m->frames == n->frames && m->messages == n->messages && m->bytes == n->bytes);
	require(m->close_code == n->close_code);
}

static void check_side(enum ws_side side, const uint8_t *data, size_t size)
{
	static const size_t steps[] = {1, 2, 3, 7, 61};
	struct outcome whole, other;

	read_cut(&whole, side, data, size, 0);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		read_cut(&other, side, data, size, steps[i]);
		require_same(&whole, &other);
		buf_done(&other.wire);
	}
	/* What was written is a front part of what was read: nothing is repaired. */
	require(buf_len(&whole.wire) <= size);
	require(buf_len(&whole.wire) == 0 ||
		memcmp(buf_data(&whole.wire), data, buf_len(&whole.wire)) == 0);
	read_cut(&other, side, (const uint8_t *)buf_data(&whole.wire), buf_len(&whole.wire), 0);
	require(other.last == (whole.last == WS_ERROR ? WS_MORE : whole.last));
	require(str_eq(buf_str(&whole.wire), buf_str(&other.wire)));
	buf_done(&other.wire);
	buf_done(&whole.wire);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_side(WS_FROM_CLIENT, data, size);
	check_side(WS_FROM_SERVER, data, size);
	return 0;
}
