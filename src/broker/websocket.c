/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-NO-RAW-BYTES): the broker does its own handshake with an origin (RFC
 * 6455 4.1), with its own key and without extensions, so that frames stay readable. After the 101
 * the frames of both sides are read, judged and written anew.
 *
 * Frames of the room are handled as a request's body. They get a new mask, which the room cannot
 * know, so that it cannot choose the bytes that a middlebox reads (RFC 6455 10.3). Frames of the
 * origin are searched for secrets, payload by payload. What the scrubber holds back goes out with
 * the end of its frame, so nothing is delayed, but a value that is split over frames is not found.
 * Lengths stay the same, so heads do not change. */
#include "broker/websocket.h"
#include "base/rand.h"
#include "broker/broker_internal.h"
#include "broker/refuse.h"
#include "broker/response.h"
#include "broker/scrubbing.h"
#include "broker/stream.h"
#include "http/valid.h"
#include "http/ws.h"
#include "ipc/netchan.h"

#include <errno.h>

enum {
	/* Earlier bytes that a reader may have held back. */
	HELD_MAX = WS_HEAD_MAX + WS_CONTROL_MAX,
	OUT_ROOM = 4 * SCRATCH,
	WS_MASK = 4,
};

struct websocket {
	struct ws_reader up, down;
	unsigned char mask[4]; /* turns the room's mask into ours */
	/* The next masks, made in advance: a small frame should not cost a system call. */
	unsigned char masks[64][WS_MASK];
	size_t masks_left;
	uint64_t at;         /* bytes of the current payload that were sent */
	struct buf out;      /* of the origin's frames, towards the gateway */
	uint16_t close_code; /* of the close frame that came first */
	char accept[WS_ACCEPT_LEN + 1];
};

static struct websocket *websocket_of(const struct stream *s)
{
	return s->filter[CHAIN_WEBSOCKET];
}

static void websocket_note_close(struct websocket *w, const struct ws_reader *r)
{
	if (!w->close_code)
		w->close_code = r->counts.close_code;
}

/* --- from the room --- */

static void websocket_next_mask(struct websocket *w, unsigned char ret[WS_MASK])
{
	if (w->masks_left == 0) {
		rand_bytes(w->masks, sizeof(w->masks));
		w->masks_left = ARRAY_SIZE(w->masks);
	}
	memcpy(ret, w->masks[--w->masks_left], WS_MASK);
}

static int websocket_begin_frame(struct websocket *w, struct buf *out)
{
	struct ws_frame f = w->up.frame;
	char head[WS_HEAD_MAX];

	websocket_next_mask(w, f.mask);
	for (size_t i = 0; i < sizeof(f.mask); i++)
		w->mask[i] = f.mask[i] ^ w->up.frame.mask[i];
	w->at = 0;
	return buf_add(out, head, ws_write_head(head, &f));
}

static int websocket_add_payload(struct websocket *w, struct str piece, struct buf *out)
{
	int r = buf_add_str(out, piece);

	if (r == 0)
		ws_mask(buf_data(out) + buf_len(out) - piece.n, piece.n, w->mask, w->at);
	w->at += piece.n;
	return r;
}

static int websocket_request_data(struct stream *s, struct str bytes, struct cloche_err *err)
{
	struct websocket *w = websocket_of(s);
	struct buf *out = &s->body;
	struct str piece;
	int r = 0;

	while (r == 0) {
		switch (ws_read(&w->up, &bytes, &piece)) {
		case WS_HEAD:
			r = websocket_begin_frame(w, out);
			break;
		case WS_DATA:
			r = websocket_add_payload(w, piece, out);
			break;
		case WS_CLOSED:
			websocket_note_close(w, &w->up);
			return 0;
		case WS_MORE:
			return 0;
		case WS_ERROR:
			return err_set(err, E_PROTOCOL, "%s", ws_error_text(w->up.error));
		}
	}
	return r;
}

static void websocket_free(struct stream *s)
{
	struct websocket *w = websocket_of(s);

	buf_done_wiped(&w->out);
	free(w);
}

/* --- the handshake --- */

static int websocket_begin(struct stream *s)
{
	static const struct str ours[] = {{"sec-websocket-extensions", 24},
		{"sec-websocket-key", 17}, {"sec-websocket-version", 21},
		{"sec-websocket-accept", 20}};
	struct websocket *w = calloc(1, sizeof(*w));
	struct http_fields *f = &s->head.fields;
	char key[WS_KEY_LEN + 1];
	int r;

	if (!w)
		return -ENOMEM;
	*w = (struct websocket){.up = ws_reader(WS_FROM_CLIENT),
		.down = ws_reader(WS_FROM_SERVER),
		.out = BUF_INIT(OUT_ROOM)};
	s->filter[CHAIN_WEBSOCKET] = w;
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		http_fields_remove(f, ours[i]);
	ws_make_key(key);
	ws_accept(str_from(key), w->accept);
	r = http_fields_set(f, STR("Upgrade"), STR("websocket"));
	if (r == 0)
		r = http_fields_set(f, STR("Sec-WebSocket-Version"), STR("13"));
	return r < 0 ? r : http_fields_set(f, STR("Sec-WebSocket-Key"), str_from(key));
}

static int websocket_judge_head(struct stream *s, size_t *whole)
{
	if (s->kind != NET_KIND_WEBSOCKET || websocket_begin(s) == 0)
		return 0;
	refuse_upstream(s, 502, "request_not_sent", "too many header fields");
	return -1;
}

/* RFC 6455 4.1: the answer has no protocol, or one that was asked for. */
static bool websocket_is_protocol_asked_for(
	const struct http_fields *asked, const struct http_fields *f)
{
	struct str name = STR("sec-websocket-protocol"), chosen = http_fields_get(f, name);
	int i;

	if (http_fields_count(f, name) == 0)
		return true;
	for (i = http_fields_find(asked, name, 0); i >= 0;
		i = http_fields_find(asked, name, (unsigned)i + 1))
		if (http_list_has(http_fields_value(asked, (unsigned)i), chosen))
			return http_fields_count(f, name) == 1;
	return false;
}

const char *websocket_judge_answer(const struct stream *s, const struct http_head *h)
{
	const struct http_fields *f = &h->fields;
	struct str name = STR("sec-websocket-accept");

	if (!(h->flags & HTTP_UPGRADE_WS))
		return "it changes to another protocol";
	if (http_fields_count(f, name) != 1 ||
		!str_eq(http_fields_get(f, name), str_from(websocket_of(s)->accept)))
		return "its Sec-WebSocket-Accept is wrong";
	if (http_fields_count(f, STR("sec-websocket-extensions")) > 0)
		return "it has a WebSocket extension that was not asked for";
	if (!websocket_is_protocol_asked_for(&s->head.fields, f))
		return "it has a WebSocket protocol that was not asked for";
	return NULL;
}

/* --- from the origin --- */

/* A control frame always comes as a whole. */
static int websocket_pass_control(struct stream *s, struct str piece)
{
	char text[WS_CONTROL_MAX];

	memcpy(text, piece.p, piece.n);
	scrubbing_whole(s, text, piece.n);
	return buf_add(&websocket_of(s)->out, text, piece.n);
}

static int websocket_pass_payload(struct stream *s, struct str piece)
{
	struct websocket *w = websocket_of(s);
	struct str first, second;
	int r;

	if (w->down.frame.opcode >= WS_CLOSE)
		return websocket_pass_control(s, piece);
	scrubbing_feed(s, piece, &first, &second);
	r = buf_add_str(&w->out, first);
	if (r == 0)
		r = buf_add_str(&w->out, second);
	if (r == 0 && w->down.left == 0)
		r = buf_add_str(&w->out, scrubbing_end(s));
	return r;
}

static int websocket_read_down(struct stream *s, struct str bytes)
{
	struct websocket *w = websocket_of(s);
	char head[WS_HEAD_MAX], *room;
	struct str piece;
	int r = buf_reserve(&w->out, bytes.n + HELD_MAX, &room);

	while (r == 0) {
		switch (ws_read(&w->down, &bytes, &piece)) {
		case WS_HEAD:
			r = buf_add(&w->out, head, ws_write_head(head, &w->down.frame));
			break;
		case WS_DATA:
			r = websocket_pass_payload(s, piece);
			break;
		case WS_CLOSED:
			websocket_note_close(w, &w->down);
			return 0;
		case WS_MORE:
		case WS_ERROR:
			return 0;
		}
	}
	return r;
}

/* An answer that does not accept the handshake is handled like any other. */
static bool websocket_response_data(struct stream *s, struct str bytes)
{
	struct websocket *w = websocket_of(s);
	bool sent;

	if (s->state != STREAM_SWITCHED)
		return chain_response_data(s, CHAIN_WEBSOCKET + 1, bytes);
	response_count(s, bytes.n);
	if (websocket_read_down(s, bytes) < 0) {
		broker_fail(s->broker);
		return false;
	}
	sent = response_send(s, buf_str(&w->out));
	buf_clear(&w->out);
	if (!sent || w->down.error == WS_E_OK)
		return sent;
	response_malformed(s, ws_error_text(w->down.error));
	return false;
}

bool websocket_has_closed(const struct stream *s, bool up)
{
	const struct websocket *w = websocket_of(s);

	return w && (up ? w->up.closed : w->down.closed);
}

static void websocket_log(const struct stream *s, struct netlog_event *ev)
{
	const struct websocket *w = websocket_of(s);

	if (ev->kind != NETLOG_WEBSOCKET)
		return;
	ev->close_code = w->close_code;
	ev->frames_out = w->up.counts.frames;
	ev->payload_out = w->up.counts.bytes;
	ev->frames_in = w->down.counts.frames;
	ev->payload_in = w->down.counts.bytes;
}

const struct filter filter_websocket = {
	.judge_head = websocket_judge_head,
	.request_data = websocket_request_data,
	.response_data = websocket_response_data,
	.log = websocket_log,
	.free = websocket_free,
};
