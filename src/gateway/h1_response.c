/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the broker's frames become an HTTP/1.1 message. Every byte is added to the
 * connection's output in the iteration in which it came, and is sent at the end of it. The broker's
 * window bounds how much output can be pending: the broker gets credit for what the client has
 * taken. A response that breaks off is never ended properly: the client gets what came of it, and
 * must see that it is incomplete. */
#include "base/clock.h"
#include "gateway/h1_exchange.h"
#include "gateway/state.h"
#include "gateway/tunnel.h"
#include "http/h1_write.h"
#include "http/ws.h"

#include <errno.h>

enum {
	FIRST_OUT = 16 * 1024,
	BULK = 8 * 1024,
	BULK_OUT = 80 * 1024, /* four records and their framing */
};

static struct h1 *h1_of(struct exchange *x)
{
	return container_of(x, struct h1, x);
}

/* Many clients take 103 for the answer (RFC 8297, section 3): no interim one goes to them that they
 * have not asked for. HTTP/1.0 clients know none at all (RFC 9110 15.2). */
static bool h1_write_interim(struct exchange *x, struct http_head *head)
{
	if (head->status != 100 || h1_of(x)->http10 || h1_write_response(&x->c->out, head, 0) >= 0)
		return true;
	conn_abort(x->c);
	return false;
}

/* The handshake is between the client and us (RFC 6455 4.2.2): the broker has had its own with the
 * origin. */
static int h1_answer_handshake(struct h1 *h, struct http_head *out)
{
	const struct http_fields *asked = &h->head.fields;
	char accept[WS_ACCEPT_LEN + 1];
	int r;

	ws_accept(http_fields_get(asked, STR("Sec-WebSocket-Key")), accept);
	http_fields_remove(&out->fields, STR("Sec-WebSocket-Extensions"));
	r = http_fields_set(&out->fields, STR("Upgrade"), STR("websocket"));
	if (r == 0)
		r = http_fields_set(&out->fields, STR("Sec-WebSocket-Accept"), str_from(accept));
	return r < 0 ? r : h1_write_response(&h->x.c->out, out, H1_W_UPGRADE);
}

static void h1_become_websocket(struct h1 *h, const struct net_response *m, struct wire_in *fields)
{
	struct conn *c = h->x.c;

	if (exchange_model(&h->x, m, fields) < 0 || h1_answer_handshake(h, &c->g->answer) < 0) {
		h1_fail(h, &answer_bad_response);
		return;
	}
	conn_mark(c);
	if (tunnel_websocket(c, &h->x.stream) < 0)
		conn_abort(c);
	else
		h1_free(h); /* the tunnel owns the stream now */
}

static bool h1_upgrade(struct exchange *x, const struct net_response *m, struct wire_in *fields)
{
	struct h1 *h = h1_of(x);

	if (!h->websocket)
		return false;
	if (m->status == 101) {
		h1_become_websocket(h, m, fields);
		return true;
	}
	/* There will be no WebSocket, and what follows is another request. */
	stream_send_end(&x->stream, NULL);
	return false;
}

static bool h1_write_head(struct exchange *x, const struct net_response *m, struct http_head *head)
{
	struct h1 *h = h1_of(x);
	unsigned flags;
	char *room;

	if (h->http10 && x->framing == HTTP_BODY_CHUNKED) {
		http_head_set_body(head, HTTP_BODY_CLOSE, 0);
		x->framing = HTTP_BODY_CLOSE;
		h->keep = false;
		conn_guard_end(x->c);
	}
	/* If the request's body is still to come, the connection may have to be closed in the
	 * middle of it. */
	if (m->close || h->request != H1_REQUEST_DONE)
		h->keep = false;
	flags = !h->keep ? H1_W_CLOSE : h->http10 ? H1_W_KEEP_ALIVE : 0;
	return buf_reserve(&x->c->out, FIRST_OUT, &room) >= 0 &&
	       h1_write_response(&x->c->out, head, flags) >= 0;
}

static void h1_on_data(struct stream *s, struct str bytes)
{
	struct exchange *x = exchange_of(s);
	struct h1 *h = h1_of(x);
	struct conn *c = x->c;
	char *room;
	int r = 0;

	/* More of a large body comes at once: growing step by step would copy it each time. */
	if (bytes.n >= BULK && buf_len(&c->out) == 0 && buf_reserve(&c->out, BULK_OUT, &room) < 0) {
		conn_abort(c);
		return;
	}
	if (!exchange_take(x, bytes.n)) {
		conn_abort(c);
		return;
	}
	if (x->framing == HTTP_BODY_CHUNKED)
		r = h1_write_chunk(&c->out, bytes);
	else if (x->framing != HTTP_BODY_NONE) /* NONE: the answer to a HEAD, for example */
		r = buf_add_str(&c->out, bytes);
	if (r < 0) {
		conn_abort(c);
		return;
	}
	h1_arm(h);
	if (x->framing == HTTP_BODY_NONE)
		h1_response_drained(h);
	else
		conn_mark(c);
}

/* Write trailers only for a client that has said that it reads them (RFC 9110 6.5.1). */
static int h1_write_trailers(struct h1 *h, uint16_t n, struct wire_in *fields)
{
	struct http_fields *trailers = &h->x.c->g->answer.fields;

	http_fields_clear(trailers);
	if (exchange_fields(fields, n, trailers) < 0)
		return -EINVAL;
	if (!(h->head.flags & HTTP_TE_TRAILERS))
		http_fields_clear(trailers);
	return h1_write_last_chunk(&h->x.c->out, trailers);
}

static void h1_on_end(struct stream *s, uint16_t fields_n, struct wire_in *fields)
{
	struct exchange *x = exchange_of(s);
	struct h1 *h = h1_of(x);
	struct conn *c = x->c;

	if (exchange_is_short(x)) {
		conn_cut(c);
		return;
	}
	if (x->framing == HTTP_BODY_CHUNKED && h1_write_trailers(h, fields_n, fields) < 0) {
		conn_abort(c);
		return;
	}
	if (stream_is_over(&x->stream))
		stream_close(&x->stream, NET_RESET_CANCELLED);
	conn_mark(c);
	h1_response_done(h);
}

static void h1_on_broken(struct exchange *x, const struct answer *a)
{
	if (x->answered)
		conn_cut(x->c);
	else
		h1_fail(h1_of(x), a);
}

static void h1_on_fail(struct exchange *x, const struct answer *a)
{
	h1_fail(h1_of(x), a);
}

static void h1_on_credit(struct stream *s, uint32_t n)
{
	struct h1 *h = h1_of(exchange_of(s));

	if (h->request == H1_REQUEST_BODY)
		conn_want_read(h->x.c, true);
	h1_arm(h);
}

static void h1_on_arm(struct exchange *x)
{
	h1_arm(h1_of(x));
}

static const struct stream_ops h1_stream_ops = {
	.interim = exchange_on_interim,
	.head = exchange_on_head,
	.data = h1_on_data,
	.end = h1_on_end,
	.reset = exchange_on_reset,
	.credit = h1_on_credit,
};

const struct exchange_ops h1_exchange_ops = {
	.stream = &h1_stream_ops,
	.upgrade = h1_upgrade,
	.interim = h1_write_interim,
	.head = h1_write_head,
	.broken = h1_on_broken,
	.fail = h1_on_fail,
	.arm = h1_on_arm,
};

void h1_response_drained(struct h1 *h)
{
	stream_passed_on(&h->x.stream, conn_pending_out(h->x.c));
	h1_arm(h);
}
