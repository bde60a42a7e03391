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
#include "ipc/netchan.h"

#include <sys/socket.h>

/* Send END to the gateway. Return false if the exchange is over. */
static bool tunnel_end_down(struct upstream *u)
{
	struct http_fields none = HTTP_FIELDS_INIT;

	if (u->in_ended)
		return true;
	u->in_ended = true;
	return response_end(u->stream, &none);
}

static void tunnel_finish(struct upstream *u)
{
	struct stream *s = u->stream;

	if (!tunnel_end_down(u))
		return;
	if (s->kind == NET_KIND_TUNNEL)
		fd_set_reset(u->fd, false);
	upstream_close(u);
	stream_finish(s);
}

/* Return whether both directions have ended. */
static bool tunnel_is_over(const struct upstream *u)
{
	const struct stream *s = u->stream;

	if (s->kind == NET_KIND_WEBSOCKET)
		return websocket_has_closed(s, true) && websocket_has_closed(s, false);
	return u->out_ended && u->in_ended;
}

static void tunnel_go_on(struct upstream *u)
{
	if (tunnel_is_over(u))
		tunnel_finish(u);
	else
		upstream_single_watch(u);
}

static bool tunnel_has_output(const struct upstream *u)
{
	return request_body(u->stream).n > 0;
}

static void tunnel_send(struct upstream *u, struct stream *s)
{
	while (request_body(s).n > 0) {
		size_t n = 0;
		enum tls_io io = upstream_write(u, request_body(s), &n);

		if (io == TLS_IO_WRITE || io == TLS_IO_READ) {
			upstream_single_watch(u);
			return;
		}
		if (io != TLS_IO_OK) {
			response_lost(s, upstream_error(u));
			return;
		}
		request_body_taken(s, n);
	}
	if (request_body_complete(s) && !u->out_ended) {
		u->out_ended = true;
		if (s->kind == NET_KIND_TUNNEL)
			(void)shutdown(u->fd, SHUT_WR);
	}
	tunnel_go_on(u);
}

static void tunnel_eof(struct upstream *u, bool clean)
{
	struct stream *s = u->stream;

	if (s->kind == NET_KIND_WEBSOCKET) {
		if (websocket_has_closed(s, true) || websocket_has_closed(s, false))
			tunnel_finish(u);
		else
			response_lost(s, "it sent no close frame");
		return;
	}
	if (!clean)
		response_lost(s, upstream_error(u));
	else if (tunnel_end_down(u))
		tunnel_go_on(u);
}

static void tunnel_take(struct upstream *u, struct str bytes)
{
	if (response_data(u->stream, bytes) && tunnel_is_over(u) && !tunnel_has_output(u))
		tunnel_finish(u);
}

/* The connection of a tunnel is there: say so to the gateway. */
static void tunnel_begin(struct upstream *u, struct stream *s)
{
	struct net_response m = {.stream = s->id, .status = 200, .body = NET_BODY_STREAM};
	const struct cassette_headers none = tape_headers(NULL);
	struct net_fields_out f = net_begin_response(&u->broker->net, NET_HEAD, &m);

	fd_set_reset(u->fd, true);
	s->status = 200;
	stream_go(s, STREAM_ANSWERING);
	tape_response(s, &m, &none);
	broker_flush_later(u->broker);
	if (net_end_fields(&f) < 0) {
		broker_fail(u->broker);
		return;
	}
	tunnel_send(u, s);
}

void upstream_tunnel_start(struct upstream *u)
{
	static const struct upstream_ops ops = {
		.begin = tunnel_begin,
		.send = tunnel_send,
		.resume = upstream_single_resume,
		.event = upstream_single_event,
		.work = upstream_single_work,
		.has_output = tunnel_has_output,
		.take = tunnel_take,
		.eof = tunnel_eof,
	};

	u->ops = &ops;
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
	u->protocol = NULL;
	upstream_tunnel_start(u);
	if (rest.n > 0)
		tunnel_take(u, rest);
	if (u->dead)
		return;
	/* Bytes that TLS has already read cause no event. */
	upstream_work_later(u);
	tunnel_send(u, s);
}
