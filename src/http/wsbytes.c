/* SPDX-License-Identifier: Apache-2.0 */
#include "http/wsbytes.h"
#include "base/rand.h"

#include <errno.h>

enum { WSBYTES_NORMAL = 1000, WSBYTES_NOT_BINARY = 1003 };

struct wsbytes wsbytes(enum ws_side other)
{
	return (struct wsbytes){.reader = ws_reader(other)};
}

/* Add a whole frame. A client masks each with bytes that nobody can foresee (RFC 6455 5.3). */
static int wsbytes_put_frame(
	struct wsbytes *w, struct buf *out, enum ws_opcode opcode, struct str payload)
{
	struct ws_frame f = {.fin = true,
		.masked = w->reader.side == WS_FROM_SERVER,
		.opcode = opcode,
		.length = payload.n};
	char *at;
	size_t n;
	int r = buf_reserve(out, WS_HEAD_MAX + payload.n, &at);

	if (r < 0)
		return r;
	if (f.masked)
		rand_bytes(f.mask, sizeof(f.mask));
	n = ws_write_head(at, &f);
	if (payload.n)
		memcpy(at + n, payload.p, payload.n);
	if (f.masked)
		ws_mask(at + n, payload.n, f.mask, 0);
	buf_commit(out, n + payload.n);
	return 0;
}

int wsbytes_put(struct wsbytes *w, struct buf *out, struct str bytes)
{
	int r = 0;

	while (bytes.n && r == 0 && !w->closed) {
		struct str piece = str_prefix(bytes, WSBYTES_PIECE);

		r = wsbytes_put_frame(w, out, WS_BINARY, piece);
		bytes = str_from_index(bytes, piece.n);
	}
	return r;
}

int wsbytes_put_close(struct wsbytes *w, struct buf *out, uint16_t code)
{
	const char text[] = {(char)(code >> 8), (char)code};
	int r = w->closed ? 0
			  : wsbytes_put_frame(
				    w, out, WS_CLOSE, str_make(text, code ? sizeof(text) : 0));

	w->closed = w->closed || r == 0;
	return r;
}

/* Add a copy of a piece of a payload as it was before it was masked. */
static int wsbytes_unmask(struct wsbytes *w, struct str piece, struct buf *to)
{
	int r = buf_add_str(to, piece);

	if (r == 0 && w->reader.frame.masked)
		ws_mask(buf_data(to) + buf_len(to) - piece.n, piece.n, w->reader.frame.mask, w->at);
	w->at += piece.n;
	return r;
}

static int wsbytes_pong(struct wsbytes *w, struct str piece, struct buf *out)
{
	char text[WS_CONTROL_MAX];

	memcpy(text, piece.p, piece.n);
	if (w->reader.frame.masked)
		ws_mask(text, piece.n, w->reader.frame.mask, 0);
	return w->closed ? 0 : wsbytes_put_frame(w, out, WS_PONG, str_make(text, piece.n));
}

static int wsbytes_fail(struct wsbytes *w, struct buf *out, uint16_t code)
{
	int r = wsbytes_put_close(w, out, code);

	return r < 0 ? r : -EPROTO;
}

static int wsbytes_begin(struct wsbytes *w, struct buf *out)
{
	const struct ws_frame *f = &w->reader.frame;

	w->at = 0;
	if (f->opcode == WS_TEXT)
		return wsbytes_fail(w, out, WSBYTES_NOT_BINARY);
	return f->opcode == WS_PING && !f->length ? wsbytes_pong(w, STR(""), out) : 0;
}

static int wsbytes_data(struct wsbytes *w, struct str piece, struct buf *bytes, struct buf *out)
{
	switch (w->reader.frame.opcode) {
	case WS_BINARY:
	case WS_CONTINUATION:
		return wsbytes_unmask(w, piece, bytes);
	case WS_PING:
		return wsbytes_pong(w, piece, out);
	case WS_TEXT:
	case WS_CLOSE:
	case WS_PONG:
	default:
		return 0;
	}
}

int wsbytes_take(struct wsbytes *w, struct str in, struct buf *bytes, struct buf *out)
{
	int r = 0;

	while (r == 0) {
		struct str piece;

		switch (ws_read(&w->reader, &in, &piece)) {
		case WS_MORE:
			return 0;
		case WS_HEAD:
			r = wsbytes_begin(w, out);
			break;
		case WS_DATA:
			r = wsbytes_data(w, piece, bytes, out);
			break;
		case WS_CLOSED:
			r = wsbytes_put_close(w, out, WSBYTES_NORMAL);
			return r < 0 ? r : 1;
		case WS_ERROR:
		default:
			return wsbytes_fail(w, out, ws_error_code(w->reader.error));
		}
	}
	return r;
}
