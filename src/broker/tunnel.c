/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: connections to an origin that do not carry HTTP any more: the frames of a
 * WebSocket, after its handshake (upstream_h1.c), and the bytes of a tunnel, which are the client's
 * own TLS. Each direction is read no faster than the other end takes it. Such a connection serves
 * one stream and is closed with it.
 *
 * Each direction of a tunnel ends by itself, as with TCP. If anything else ends the tunnel, even
 * the death of this program, the origin gets a reset, because a normal end could mean that the data
 * is complete. A WebSocket ends when both sides have sent a close frame, or when the origin closes
 * after one was sent. Without any close frame it was cut off. */
#include "base/fd.h"
#include "broker/broker_internal.h"
#include "broker/log.h"
#include "broker/request_body.h"
#include "broker/response.h"
#include "broker/stream.h"
#include "broker/upstream.h"
#include "broker/websocket.h"
#include "http/ws.h"
#include "ipc/netchan.h"

#include <errno.h>
#include <sys/socket.h>

enum { READS_AT_ONCE = 8 };

struct tunnel {
	struct upstream *u;
	struct stream *stream; /* NULL: it is over */
	bool paused;           /* the gateway takes no more */
	bool down_ended, up_ended;
};

static struct tunnel *of(const struct upstream *u)
{
	return u->protocol;
}

static void watch(struct tunnel *t)
{
	struct upstream *u = t->u;

	if (!u->dead && t->stream &&
		!upstream_watch(u, !t->paused && !t->down_ended,
			u->want_out || request_body(t->stream).n > 0))
		response_lost(t->stream, "no memory to watch a connection");
}

/* Send END to the gateway. Return false if the exchange is over. */
static bool end_down(struct tunnel *t)
{
	struct http_fields none = HTTP_FIELDS_INIT;

	if (t->down_ended)
		return true;
	t->down_ended = true;
	return response_end(t->stream, &none);
}

static void finish(struct tunnel *t)
{
	struct stream *s = t->stream;

	if (!end_down(t))
		return;
	if (s->kind == NET_KIND_TUNNEL)
		fd_set_reset(t->u->fd, false);
	s->up = NULL;
	t->stream = NULL;
	upstream_close(t->u);
	stream_finish(s);
}

/* Return whether both directions have ended. */
static bool is_over(const struct tunnel *t)
{
	const struct stream *s = t->stream;

	if (s->kind == NET_KIND_WEBSOCKET)
		return websocket_has_closed(s, true) && websocket_has_closed(s, false);
	return t->up_ended && t->down_ended;
}

static void send_up(struct upstream *u, struct stream *s)
{
	struct tunnel *t = of(u);

	while (request_body(s).n > 0) {
		size_t n = 0;
		enum tls_io io = upstream_write(u, request_body(s), &n);

		if (io == TLS_IO_WRITE || io == TLS_IO_READ) {
			watch(t);
			return;
		}
		if (io != TLS_IO_OK) {
			response_lost(s, upstream_error(u));
			return;
		}
		request_body_taken(s, n);
	}
	if (request_body_complete(s) && !t->up_ended) {
		t->up_ended = true;
		if (s->kind == NET_KIND_TUNNEL)
			(void)shutdown(u->fd, SHUT_WR);
	}
	if (is_over(t))
		finish(t);
	else
		watch(t);
}

static void on_eof(struct tunnel *t, bool clean)
{
	struct stream *s = t->stream;

	if (s->kind == NET_KIND_WEBSOCKET) {
		if (websocket_has_closed(s, true) || websocket_has_closed(s, false))
			finish(t);
		else
			response_lost(s, "it sent no close frame");
		return;
	}
	if (!clean) {
		response_lost(s, upstream_error(t->u));
		return;
	}
	if (!end_down(t))
		return;
	if (is_over(t))
		finish(t);
	else
		watch(t);
}

/* Return false if the stream is over. */
static bool pass_down(struct tunnel *t, struct str bytes)
{
	struct stream *s = t->stream;

	if (!response_data(s, bytes))
		return false;
	if (!is_over(t) || request_body(s).n > 0)
		return true;
	finish(t);
	return false;
}

static void pump(struct upstream *u)
{
	struct broker *b = u->broker;

	for (int i = 0; i < READS_AT_ONCE; i++) {
		struct tunnel *t = u->dead ? NULL : of(u);
		size_t max, n = 0;
		enum tls_io io;

		if (!t || !t->stream || t->down_ended)
			return;
		if (i > 0 && u->drained) {
			fd_acknowledge(u->fd);
			watch(t);
			return;
		}
		max = response_room(t->stream);
		t->paused = max == 0;
		if (t->paused) {
			watch(t);
			return;
		}
		io = upstream_read(u, b->scratch, max, &n);
		if (io == TLS_IO_READ || io == TLS_IO_WRITE) {
			u->want_out = io == TLS_IO_WRITE;
			fd_acknowledge(u->fd);
			watch(t);
			return;
		}
		if (io != TLS_IO_OK) {
			on_eof(t, io == TLS_IO_EOF);
			return;
		}
		if (!pass_down(t, str_make(b->scratch, n)))
			return;
	}
	if (!u->dead)
		upstream_work_later(u);
}

static void resume(struct upstream *u, struct stream *s)
{
	struct tunnel *t = of(u);

	if (!t->paused || response_room(s) == 0)
		return;
	t->paused = false;
	/* Bytes that TLS has already read cause no event. */
	upstream_work_later(u);
}

static void detach(struct upstream *u, struct stream *s)
{
	of(u)->stream = NULL;
	upstream_close(u);
}

static void on_event(struct upstream *u, uint32_t events)
{
	struct tunnel *t = of(u);

	if (!t->stream)
		return;
	if (u->want_out)
		events |= EPOLLIN; /* a read that waited for writability */
	u->want_out = false;
	if (events & EPOLLOUT)
		send_up(u, t->stream);
	if (!u->dead && (events & ~(uint32_t)EPOLLOUT))
		pump(u);
}

static void end(struct upstream *u)
{
	free(u->protocol);
}

/* The connection of a tunnel is there: say so to the gateway. */
static void begin(struct upstream *u, struct stream *s)
{
	struct net_response m = {.stream = s->id, .status = 200, .body = NET_BODY_STREAM};
	const struct cassette_headers none = tape_headers(NULL);
	struct net_fields_out f = net_begin_response(&u->broker->net, NET_HEAD, &m);

	fd_set_reset(u->fd, true);
	of(u)->stream = s;
	s->status = 200;
	stream_go(s, STREAM_ANSWERING);
	tape_response(s, &m, &none);
	broker_flush_later(u->broker);
	if (net_end_fields(&f) < 0) {
		broker_fail(u->broker);
		return;
	}
	send_up(u, s);
}

static const struct upstream_ops upstream_tunnel = {
	.begin = begin,
	.send = send_up,
	.resume = resume,
	.detach = detach,
	.event = on_event,
	.work = pump,
	.end = end,
};

int upstream_tunnel_start(struct upstream *u)
{
	struct tunnel *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->u = u;
	u->protocol = t;
	u->ops = &upstream_tunnel;
	return 0;
}

/* The head is for the gateway, which has its own handshake with the client. */
static bool accept_websocket(struct stream *s, struct http_head *h)
{
	const char *why = websocket_judge_answer(s, h);

	if (why) {
		response_malformed(s, why);
		return false;
	}
	http_fields_remove(&h->fields, STR("Sec-WebSocket-Accept"));
	http_fields_remove(&h->fields, STR("Content-Encoding"));
	h->body = HTTP_BODY_CHUNKED;
	return response_head(s, h);
}

void upstream_to_websocket(
	struct upstream *u, struct stream *s, struct http_head *h, struct str rest)
{
	if (!accept_websocket(s, h))
		return;
	log_websocket(s);
	stream_go(s, STREAM_SWITCHED);
	u->ops->end(u);
	u->ops = NULL;
	u->protocol = NULL;
	if (upstream_tunnel_start(u) < 0) {
		response_lost(s, "no memory for a connection");
		return;
	}
	of(u)->stream = s;
	if (rest.n > 0 && !pass_down(of(u), rest))
		return;
	/* Bytes that TLS has already read cause no event. */
	upstream_work_later(u);
	send_up(u, s);
}
