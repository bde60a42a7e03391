/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the broker's frames become an HTTP/1.1 message. Every byte is in the
 * connection's output within the iteration in which it came, and on its way at the iteration's end.
 * How much can wait there is bounded by the window that the broker has: it gets credit for what the
 * client has taken. A response that breaks off is never ended properly: the client gets what came
 * of it, and must see that it is incomplete. */
#include "base/clock.h"
#include "gateway/h1_exchange.h"
#include "gateway/state.h"
#include "gateway/tunnel.h"
#include "http/h1_write.h"
#include "tls/websocket.h"

#include <errno.h>

enum {
	FIRST_OUT = 16 * 1024,
	BULK = 8 * 1024,
	BULK_OUT = 80 * 1024, /* four records and their framing */
};

static struct h1 *owner(struct stream *s)
{
	return container_of(s, struct h1, stream);
}

/* Fills the shared head with a status and the fields of the frame. */
static int model(struct h1 *h, const struct net_response *m, struct wire_in *fields)
{
	struct http_head *out = &h->c->g->answer;
	struct str name, value;
	int r = http_head_set_response(out, m->status, STR_NULL);

	for (unsigned i = 0; i < m->fields_n && r >= 0; i++) {
		if (!net_next_field(fields, &name, &value))
			return -EINVAL;
		r = http_fields_add(&out->fields, name, value);
	}
	return r < 0 || !wire_ok(fields) ? -EINVAL : 0;
}

static void on_interim(struct stream *s, const struct net_response *m, struct wire_in *fields)
{
	struct h1 *h = owner(s);
	struct conn *c = h->c;

	if (m->status < 100 || m->status > 199 || m->status == 101 ||
		h->response != H1_RESPONSE_NONE)
		return;
	if (m->status == 100 && !h->wait_continue)
		return;
	if (model(h, m, fields) < 0)
		return;
	/* An HTTP/1.0 client does not know what they are (RFC 9110 15.2). */
	if (!h->http10 && h1_write_response(&c->out, &c->g->answer, 0, NULL) < 0) {
		conn_abort(c);
		return;
	}
	if (m->status == 100)
		h->wait_continue = false;
	h1_arm(h);
	conn_mark(c);
}

/* How the body goes to this client (RFC 9112 6.3). */
static void frame_body(struct h1 *h, const struct net_response *m, struct http_head *out)
{
	bool bodiless = h->to_head || m->status == 204 || m->status == 304;

	h->left = 0;
	switch (m->body) {
	case NET_BODY_LENGTH:
		http_head_set_body(out, HTTP_BODY_LENGTH, m->length);
		h->left = m->length;
		break;
	case NET_BODY_STREAM:
		http_head_set_body(out, h->http10 ? HTTP_BODY_CLOSE : HTTP_BODY_CHUNKED, 0);
		break;
	case NET_BODY_NONE:
	case NET_BODY_END:
		http_head_set_body(out, HTTP_BODY_NONE, 0);
		break;
	}
	h->framing = out->body;
	if (bodiless) {
		/* The length is told all the same: it is that of the answer to a GET. */
		h->framing = out->body = HTTP_BODY_NONE;
		out->flags |= HTTP_TO_HEAD;
	}
	if (h->framing == HTTP_BODY_CLOSE) {
		h->keep = false;
		conn_guard_end(h->c);
	}
}

/* The handshake is between the client and us (RFC 6455 4.2.2): the broker has had its own with the
 * origin. */
static int answer_handshake(struct h1 *h, struct http_head *out)
{
	const struct http_fields *asked = &h->head.fields;
	char accept[TLS_WEBSOCKET_ACCEPT];
	int r;

	tls_websocket_accept(http_fields_get(asked, STR("Sec-WebSocket-Key")), accept);
	http_fields_remove(&out->fields, STR("Sec-WebSocket-Extensions"));
	r = http_fields_set(&out->fields, STR("Upgrade"), STR("websocket"));
	if (r == 0)
		r = http_fields_set(&out->fields, STR("Sec-WebSocket-Accept"), str_from(accept));
	return r < 0 ? r : h1_write_response(&h->c->out, out, H1_W_UPGRADE, NULL);
}

static void become_websocket(struct h1 *h, const struct net_response *m, struct wire_in *fields)
{
	struct conn *c = h->c;

	if (model(h, m, fields) < 0 || answer_handshake(h, &c->g->answer) < 0) {
		h1_fail(h, &answer_bad_response);
		return;
	}
	conn_mark(c);
	if (tunnel_websocket(c, &h->stream) < 0)
		conn_abort(c);
	else
		h1_leave(h);
}

static void on_head(struct stream *s, const struct net_response *m, struct wire_in *fields)
{
	struct h1 *h = owner(s);
	struct conn *c = h->c;
	struct http_head *out = &c->g->answer;
	unsigned flags;
	char *room;

	if (h->websocket && m->status == 101) {
		become_websocket(h, m, fields);
		return;
	}
	if (h->websocket) /* nothing is to come of it, and what follows is another request */
		stream_send_end(s, NULL);
	if (m->status < 200 || model(h, m, fields) < 0) {
		h1_fail(h, &answer_bad_response);
		return;
	}
	frame_body(h, m, out);
	/* With a body still to come the connection may have to be closed in the middle of it. */
	if (m->close || h->request != H1_REQUEST_DONE)
		h->keep = false;
	flags = !h->keep ? H1_W_CLOSE : h->http10 ? H1_W_KEEP_ALIVE : 0;
	if (buf_reserve(&c->out, FIRST_OUT, &room) < 0 ||
		h1_write_response(&c->out, out, flags, NULL) < 0) {
		h1_fail(h, &answer_bad_response);
		return;
	}
	h->response = H1_RESPONSE_BODY;
	h->wait_continue = false;
	h1_arm(h);
	conn_mark(c);
}

static void on_data(struct stream *s, struct str bytes)
{
	struct h1 *h = owner(s);
	struct conn *c = h->c;
	char *room;
	int r = 0;

	/* Of a large body more comes at once: growing step by step would copy it each time. */
	if (bytes.n >= BULK && buf_len(&c->out) == 0 && buf_reserve(&c->out, BULK_OUT, &room) < 0) {
		conn_abort(c);
		return;
	}
	switch (h->framing) {
	case HTTP_BODY_NONE: /* the answer to a HEAD: nothing of it goes out */
		break;
	case HTTP_BODY_LENGTH:
		if (bytes.n > h->left) {
			conn_abort(c);
			return;
		}
		h->left -= bytes.n;
		r = buf_add_str(&c->out, bytes);
		break;
	case HTTP_BODY_CHUNKED:
		r = h1_write_chunk(&c->out, bytes);
		break;
	case HTTP_BODY_CLOSE:
		r = buf_add_str(&c->out, bytes);
		break;
	}
	if (r < 0) {
		conn_abort(c);
		return;
	}
	h1_arm(h);
	if (h->framing == HTTP_BODY_NONE)
		h1_response_drained(h);
	else
		conn_mark(c);
}

static int read_trailers(struct h1 *h, uint16_t n, struct wire_in *fields, struct http_fields *ret)
{
	struct str name, value;
	int r = 0;

	for (unsigned i = 0; i < n && r >= 0; i++) {
		if (!net_next_field(fields, &name, &value))
			return -EINVAL;
		/* Only for a client that has said that it reads them (RFC 9110 6.5.1). */
		if (h->head.flags & HTTP_TE_TRAILERS)
			r = http_fields_add(ret, name, value);
	}
	return r < 0 || !wire_ok(fields) ? -EINVAL : 0;
}

static void on_end(struct stream *s, uint16_t fields_n, struct wire_in *fields)
{
	struct h1 *h = owner(s);
	struct conn *c = h->c;
	struct http_fields *trailers = &c->g->answer.fields;

	if (h->framing == HTTP_BODY_LENGTH && h->left > 0) {
		conn_cut(c);
		return;
	}
	if (h->framing == HTTP_BODY_CHUNKED) {
		http_fields_clear(trailers);
		if (read_trailers(h, fields_n, fields, trailers) < 0 ||
			h1_write_last_chunk(&c->out, trailers) < 0) {
			conn_abort(c);
			return;
		}
	}
	if (stream_is_over(s))
		stream_close(s, NET_RESET_CANCELLED);
	conn_mark(c);
	h1_response_done(h);
}

static void on_reset(struct stream *s, enum net_reset why)
{
	if (owner(s)->response != H1_RESPONSE_NONE)
		conn_cut(owner(s)->c);
	else
		h1_fail(owner(s), why == NET_RESET_LIMIT ? &answer_limit : &answer_failed);
}

static void on_credit(struct stream *s)
{
	struct h1 *h = owner(s);

	if (h->request == H1_REQUEST_BODY)
		conn_want_read(h->c, true);
	h1_arm(h);
}

const struct stream_ops h1_stream_ops = {
	.interim = on_interim,
	.head = on_head,
	.data = on_data,
	.end = on_end,
	.reset = on_reset,
	.credit = on_credit,
};

void h1_response_drained(struct h1 *h)
{
	stream_passed_on(&h->stream, conn_pending_out(h->c));
	h1_arm(h);
}
