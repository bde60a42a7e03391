/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: base http */
/* However a WebSocket that carries bytes is cut, the same bytes come out, and never more than went
 * in; and what came out comes out again at the other end of one of ours. */
#include "http/wsbytes.h"

#include <errno.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
	if (!cond)
		abort();
}

struct outcome {
	struct wsbytes ws;
	struct buf bytes, out;
	int r;
};

static void take_cut(
	struct outcome *o, enum ws_side other, const uint8_t *data, size_t size, size_t step)
{
	*o = (struct outcome){wsbytes(other), BUF_INIT(SIZE_MAX / 2), BUF_INIT(SIZE_MAX / 2), 0};
	for (size_t at = 0; at < size && o->r == 0; at += step) {
		size_t n = step < size - at ? step : size - at;
		char *copy = malloc(n);

		require(copy != NULL);
		memcpy(copy, data + at, n);
		o->r = wsbytes_take(&o->ws, str_make(copy, n), &o->bytes, &o->out);
		free(copy);
	}
	require(o->r == 0 || o->r == 1 || o->r == -EPROTO);
	require(buf_len(&o->bytes) <= size);
	require((o->r != 0) == o->ws.closed);
}

static void outcome_done(struct outcome *o)
{
	buf_done(&o->bytes);
	buf_done(&o->out);
}

static enum ws_side opposite(enum ws_side side)
{
	return side == WS_FROM_CLIENT ? WS_FROM_SERVER : WS_FROM_CLIENT;
}

static void carry_again(enum ws_side other, const struct outcome *o)
{
	struct wsbytes ours = wsbytes(opposite(other));
	struct buf wire = BUF_INIT(SIZE_MAX / 2);
	struct outcome again;

	require(wsbytes_put(&ours, &wire, buf_str(&o->bytes)) == 0);
	take_cut(&again, other, (const uint8_t *)buf_data(&wire), buf_len(&wire), SIZE_MAX / 2);
	require(again.r == 0 && buf_len(&again.out) == 0);
	require(str_eq(buf_str(&again.bytes), buf_str(&o->bytes)));
	outcome_done(&again);
	/* The other end understands each answer. */
	take_cut(&again, opposite(other), (const uint8_t *)buf_data(&o->out), buf_len(&o->out),
		SIZE_MAX / 2);
	require(again.r == (o->ws.closed ? 1 : 0) && buf_len(&again.bytes) == 0);
	outcome_done(&again);
	buf_done(&wire);
}

static void check_side(enum ws_side other, const uint8_t *data, size_t size)
{
	static const size_t steps[] = {1, 2, 7, 61};
	struct outcome whole, cut;

	take_cut(&whole, other, data, size, SIZE_MAX / 2);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		take_cut(&cut, other, data, size, steps[i]);
		require(cut.r == whole.r && buf_len(&cut.out) == buf_len(&whole.out));
		require(str_eq(buf_str(&cut.bytes), buf_str(&whole.bytes)));
		outcome_done(&cut);
	}
	carry_again(other, &whole);
	outcome_done(&whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_side(WS_FROM_CLIENT, data, size);
	check_side(WS_FROM_SERVER, data, size);
	return 0;
}
