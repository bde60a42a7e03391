/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: what the library has decoded goes to the caller's handlers, and what a peer
 * does is counted (h2.c). If h2_head.c refuses a head, the stream is reset before the caller has
 * heard of it. */
#include "http/h2_internal.h"

#include "http/limits.h"

#include <errno.h>

enum { FIRST_WINDOW = 65535 /* until our settings are known (RFC 9113 6.9.2) */ };

static void tell_malformed(struct h2 *h, const char *why)
{
	if (!h->refused && h->c.on->malformed)
		h->c.on->malformed(h->c.arg, &h->head, why);
	h->refused = true;
}

/* Reset the stream of a bad head. */
static int refuse(struct h2 *h, int32_t id, int r, const char *why)
{
	bool memory = r == -ENOMEM;

	h->within_head = false;
	tell_malformed(h, memory ? "out of memory" : why);
	(void)nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, id,
		memory ? NGHTTP2_INTERNAL_ERROR : NGHTTP2_PROTOCOL_ERROR);
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

/* Frames that bring something to an existing stream get back what they paid. A head, and DATA that
 * is not a small piece, also pay for two frames that carry nothing. */
static void pay_back(struct h2 *h, const nghttp2_frame_hd *hd)
{
	bool end = hd->flags & NGHTTP2_FLAG_END_STREAM;

	if (hd->type == NGHTTP2_HEADERS)
		http_rate_earn(&h->control, 3);
	if (hd->type != NGHTTP2_DATA || hd->length == 0 || (hd->length < HTTP_PIECE_MIN && !end))
		return;
	http_rate_earn(&h->pieces, 1);
	http_rate_earn(&h->control, 2);
}

/* The library does not report frames that it drops because their stream is closed. So each frame
 * pays before the library gets it. */
static int frame_pay(struct h2 *h, unsigned type, size_t length)
{
	if (type == NGHTTP2_DATA && length > 0)
		return http_rate_take(&h->pieces) ? 0 : h2_calm(h, "too many small frames of data");
	return http_rate_take(&h->control) ? 0 : h2_calm(h, "too many frames that carry nothing");
}

static int32_t frame_stream_id(const uint8_t head[9])
{
	return (head[5] & 0x7f) << 24 | head[6] << 16 | head[7] << 8 | head[8];
}

static int frame_refuse(struct h2 *h, const char *why, uint32_t error)
{
	h->error = why;
	(void)nghttp2_session_terminate_session(h->session, error);
	return -EPROTO;
}

/* RFC 9113 section 5.1: a message on a closed stream is an error, unless we may have reset the
 * stream: then the peer may not know yet. The library drops both, and PRIORITY of no stream
 * (section 6.3). Streams with even numbers were never open: the library refuses them. */
static int frame_find_stream(struct h2 *h, unsigned type, int32_t id)
{
	if (type == NGHTTP2_PRIORITY && id == 0)
		return frame_refuse(h, "PRIORITY of no stream", NGHTTP2_PROTOCOL_ERROR);
	if (h->c.role != H2_SERVER || (type != NGHTTP2_DATA && type != NGHTTP2_HEADERS) ||
		id % 2 == 0 || id > h->newest || id <= h->newest_reset ||
		nghttp2_session_find_stream(h->session, id))
		return 0;
	return frame_refuse(h, "a frame on a closed stream", NGHTTP2_STREAM_CLOSED);
}

ssize_t h2_frame_next(struct h2 *h, struct str bytes)
{
	size_t n = 0, rest;

	if (h->frame_left == 0) {
		const uint8_t *b = h->frame_head;

		n = MIN(sizeof(h->frame_head) - h->frame_have, bytes.n);
		memcpy(h->frame_head + h->frame_have, bytes.p, n);
		h->frame_have += (unsigned)n;
		if (h->frame_have < sizeof(h->frame_head))
			return (ssize_t)n;
		h->frame_have = 0;
		h->frame_left = (size_t)b[0] << 16 | (size_t)b[1] << 8 | b[2];
		if (frame_pay(h, b[3], h->frame_left) < 0 ||
			frame_find_stream(h, b[3], frame_stream_id(b)) < 0)
			return -EPROTO;
	}
	rest = MIN(h->frame_left, bytes.n - n);
	h->frame_left -= rest;
	return (ssize_t)(n + rest);
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *arg)
{
	struct h2 *h = arg;

	h->within_head &= hd->type == NGHTTP2_CONTINUATION;
	if (hd->type == NGHTTP2_CONTINUATION && ++h->continuations > H2_CONTINUATIONS_MAX)
		return h2_calm(h, "a head in too many frames");
	return 0;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct h2 *h = arg;
	struct h2_stream *st;

	h->within_head = true;
	h2_head_begin(h);
	if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	st = h2_stream_new(h);
	if (!st)
		return refuse(h, frame->hd.stream_id, -ENOMEM, NULL);
	st->id = frame->hd.stream_id;
	h->newest = st->id;
	if (nghttp2_session_set_stream_user_data(session, st->id, st) < 0) {
		h2_stream_closed(st, H2_INTERNAL_ERROR);
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
	size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *arg)
{
	struct h2 *h = arg;
	struct h2_stream *st = h2_stream_of(h, frame->hd.stream_id);
	struct str n = str_make(name, name_n), v = str_make(value, value_n);
	int r;

	if (!st)
		return 0;
	r = st->answered ? h2_trailer_add(h, n, v) : h2_head_add(h, h->c.role == H2_SERVER, n, v);
	return r < 0 ? refuse(h, st->id, r, h->why) : 0;
}

/* Refuse a field that the library would leave out silently. */
static int on_invalid_header(nghttp2_session *session, const nghttp2_frame *frame,
	const uint8_t *name, size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags,
	void *arg)
{
	return refuse(arg, frame->hd.stream_id, -EPROTO, "malformed field");
}

static void end(struct h2 *h, struct h2_stream *st)
{
	st->remote_end = true;
	if (!st->detached && !st->overrun)
		h->c.on->end(h->c.arg, st, &h->trailers);
}

static int on_headers(struct h2 *h, struct h2_stream *st, bool is_end)
{
	int r;

	if (!st->answered) {
		r = h2_head_finish(h, st, is_end);
		if (r < 0) {
			(void)refuse(h, st->id, r, h->why);
			return 0;
		}
		st->told = true;
		st->answered = h->c.role == H2_SERVER || h->head.status >= 200;
		if (!st->detached)
			h->c.on->head(h->c.arg, st, &h->head);
		http_fields_clear(&h->trailers);
	}
	if (is_end)
		end(h, st);
	return 0;
}

static void on_settings(const struct h2 *h, bool ack)
{
	void (*tell)(void *arg) = ack ? h->c.on->acknowledged : h->c.on->settings;

	if (tell)
		tell(h->c.arg);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct h2 *h = arg;
	struct h2_stream *st = h2_stream_of(h, frame->hd.stream_id);
	bool is_end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

	h->within_head = false;
	if (st)
		pay_back(h, &frame->hd);
	switch (frame->hd.type) {
	case NGHTTP2_HEADERS:
		return st ? on_headers(h, st, is_end) : 0;
	case NGHTTP2_DATA:
		if (st && is_end) {
			http_fields_clear(&h->trailers);
			end(h, st);
		}
		return 0;
	case NGHTTP2_RST_STREAM:
		return http_rate_take(&h->resets) ? 0 : h2_calm(h, "too many streams were reset");
	case NGHTTP2_SETTINGS:
		on_settings(h, frame->hd.flags & NGHTTP2_FLAG_ACK);
		return 0;
	case NGHTTP2_GOAWAY:
		h->going = true;
		if (h->c.on->goaway)
			h->c.on->goaway(h->c.arg, frame->goaway.error_code);
		return 0;
	default:
		return 0;
	}
}

static int on_data(
	nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *arg)
{
	struct h2 *h = arg;
	struct h2_stream *st = h2_stream_of(h, id);

	/* The library resets a stream that has sent too much, but delivers the data
	 * nevertheless. */
	if (st && st->held + n > MAX(st->window, (uint32_t)FIRST_WINDOW))
		st->overrun = true;
	if (!st || st->detached || st->overrun || !st->told) {
		(void)nghttp2_session_consume(session, id, n);
		return 0;
	}
	st->held += n;
	h->c.on->data(h->c.arg, st, str_make(p, n));
	return 0;
}

static int on_invalid_frame(
	nghttp2_session *session, const nghttp2_frame *frame, int error, void *arg)
{
	struct h2 *h = arg;

	h->within_head = false;
	if (frame->hd.type == NGHTTP2_HEADERS && h2_stream_of(h, frame->hd.stream_id))
		tell_malformed(h, nghttp2_strerror(error));
	return h2_glitch(h);
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *arg)
{
	struct h2_stream *st = h2_stream_of(arg, id);

	if (!st)
		return 0;
	(void)nghttp2_session_set_stream_user_data(session, id, NULL);
	h2_stream_closed(st, error);
	return 0;
}

void h2_recv_callbacks(nghttp2_session_callbacks *cb)
{
	nghttp2_session_callbacks_set_on_begin_frame_callback(cb, on_begin_frame);
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_invalid_header_callback(cb, on_invalid_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(cb, on_invalid_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
}
