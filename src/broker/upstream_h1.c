/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: HTTP/1.1 on a connection to an origin: one request and its response after
 * the other. The request is written from the model. A body of known length is sent from the
 * stream's own memory, a small one together with the head. The response goes through the strict
 * parser. No more of it is read than the gateway takes (pump), so nothing of it is ever kept
 * here. */
#include "base/fd.h"
#include "broker/broker_internal.h"
#include "broker/decide.h"
#include "broker/pool.h"
#include "broker/refuse.h"
#include "broker/request_body.h"
#include "broker/response.h"
#include "broker/stream.h"
#include "broker/upstream.h"
#include "http/body.h"
#include "http/h1.h"
#include "http/h1_write.h"
#include "ipc/chan.h"
#include "ipc/netchan.h"
#include "loop/loop.h"

#include <errno.h>

static const struct upstream_ops upstream_h1;

enum {
	READS_AT_ONCE = 4,    /* of a TLS record each: half a window, which the gateway passes on
			       * while the other half is read */
	JOIN_MAX = 16 * 1024, /* bytes of a body that are copied to go out with the head */
	OUT_FULL = 16 * 1024, /* if this many framed bytes wait, no more are framed */
	OUT_ROOM = HTTP_HEAD_MAX * 4 + NET_WINDOW,
};

struct h1_origin {
	struct upstream *u;
	struct stream *stream; /* NULL while idle */
	struct buf out;        /* of the request: head, framing, small bodies */
	bool request_ended;    /* its last byte is in out, or was sent */
	bool started;          /* bytes of the response have come */
	bool in_body;          /* the head is complete */
	bool paused;           /* not reading: the gateway takes no more */
	bool write_lost;       /* the origin takes no more of the request */
	bool last;             /* the origin was told that no other request comes */
	struct h1_parser parser;
	struct http_head head;
	struct http_body body;
	struct http_fields trailers;
};

static struct h1_origin *of(const struct upstream *u)
{
	return u->protocol;
}

int upstream_h1_start(struct upstream *u)
{
	struct h1_origin *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->u = u;
	h->out = BUF_INIT(OUT_ROOM);
	h->head = HTTP_HEAD_INIT;
	h->trailers = HTTP_FIELDS_INIT;
	u->protocol = h;
	u->ops = &upstream_h1;
	return 0;
}

static void end(struct upstream *u)
{
	struct h1_origin *h = of(u);

	http_body_done(&h->body);
	http_head_done(&h->head);
	http_fields_done(&h->trailers);
	buf_done_wiped(&h->out);
	free(h);
}

/* --- the request --- */

/* Bytes after the handshake of a WebSocket are not a body, and wait for its answer. */
static struct str body_to_send(const struct h1_origin *h)
{
	return h->stream->kind == NET_KIND_HTTP ? request_body(h->stream) : STR_NULL;
}

static bool has_output(const struct h1_origin *h)
{
	return h->stream && !h->write_lost && (buf_len(&h->out) > 0 || body_to_send(h).n > 0);
}

/* If the connection were watched while there is nothing to read or write, epoll would report again
 * and again that the origin has broken it. So it is not watched then; the next read finds that it
 * is broken. */
static void watch(struct h1_origin *h)
{
	struct upstream *u = h->u;

	if (u->dead || upstream_watch(u, !h->paused, u->want_out || has_output(h)))
		return;
	if (h->stream)
		response_lost(h->stream, "no memory to watch a connection");
	else
		upstream_close(u);
}

/* The origin takes no more of the request. It may still answer (413, 401): that is read first. */
static void write_failed(struct h1_origin *h)
{
	h->write_lost = true;
	if (!h->stream->keep) /* else it may be sent once more */
		request_body_drop(h->stream);
}

/* Move waiting bytes of the body into `out` if they have to be framed, or go with the head. */
static int frame(struct h1_origin *h)
{
	struct stream *s = h->stream;
	bool chunked = s->head.body == HTTP_BODY_CHUNKED;
	struct str body = str_prefix(body_to_send(h), OUT_FULL);
	int r = 0;

	if (h->request_ended || buf_len(&h->out) >= OUT_FULL)
		return 0;
	if (chunked && body.n > 0) {
		/* The rest waits in s->body, where it is counted. */
		body = str_prefix(body, OUT_FULL);
		r = h1_write_chunk(&h->out, body);
	} else if (buf_len(&h->out) > 0 && body.n > 0 && body.n <= JOIN_MAX)
		r = buf_add_str(&h->out, body);
	else
		body.n = 0;
	if (r == 0 && body.n > 0)
		request_body_taken(s, body.n);
	if (r == 0 && request_body_complete(s) && body_to_send(h).n == 0) {
		h->request_ended = true;
		if (chunked)
			r = h1_write_last_chunk(&h->out, s->trailers.n ? &s->trailers : NULL);
	}
	return r;
}

/* Write some bytes. Return the result. */
static enum tls_io write_out(struct h1_origin *h)
{
	bool framed = buf_len(&h->out) > 0;
	struct str bytes = framed ? buf_str(&h->out) : body_to_send(h);
	size_t n = 0;
	enum tls_io io = upstream_write(h->u, bytes, &n);

	if (io != TLS_IO_OK)
		return io;
	if (!framed) {
		request_body_taken(h->stream, n);
		return io;
	}
	if (h->stream->secret)
		explicit_bzero(buf_data(&h->out), n);
	buf_consume(&h->out, n);
	h->stream->active = loop_now(h->u->broker->loop);
	return io;
}

static void send_request(struct upstream *u, struct stream *s)
{
	struct h1_origin *h = of(u);

	while (!h->write_lost) {
		enum tls_io io;

		if (frame(h) < 0) {
			refuse_upstream(
				s, 503, "out_of_memory", "no memory for the request's body");
			return;
		}
		if (!has_output(h))
			break;
		io = write_out(h);
		if (io == TLS_IO_WRITE || io == TLS_IO_READ)
			break;
		if (io != TLS_IO_OK)
			write_failed(h);
	}
	watch(h);
}

/* RFC 9110 9.3.1, 9.3.5: some servers ignore such a body and would read it as the next request,
 * which was not judged. They do not if they are told that there is no next one. */
static bool is_body_doubtful(const struct http_head *h)
{
	struct str method = http_head_method(h);

	return h->body != HTTP_BODY_NONE &&
	       (str_eq(method, STR("GET")) || str_eq(method, STR("HEAD")) ||
		       str_eq(method, STR("DELETE")));
}

static void begin(struct upstream *u, struct stream *s)
{
	struct h1_origin *h = of(u);
	struct cloche_err err = CLOCHE_ERR_INIT;
	bool upgrade = s->kind == NET_KIND_WEBSOCKET;
	unsigned flags = (s->te_trailers ? H1_W_TRAILERS : 0) | (upgrade ? H1_W_UPGRADE : 0);

	h->stream = s;
	h->last = is_body_doubtful(&s->head);
	flags |= h->last ? H1_W_CLOSE : 0;
	h->request_ended = h->started = h->in_body = h->paused = h->write_lost = false;
	http_body_done(&h->body);
	h1_parser_response(&h->parser, &h->head,
		(s->is_head ? H1_TO_HEAD : 0) | (upgrade ? H1_UPGRADE_ASKED : 0));
	if (h1_write_request(&h->out, &s->head, flags, &err) < 0) {
		refuse_upstream(s, 502, "request_not_sent", err.message);
		return;
	}
	send_request(u, s);
}

/* --- the response --- */

/* Put the connection into the pool, or close it. */
static void let_go(struct h1_origin *h, bool reusable)
{
	struct upstream *u = h->u;

	h->stream->up = NULL;
	h->stream = NULL;
	if (!reusable) {
		upstream_close(u);
		return;
	}
	h->paused = u->want_out = false;
	watch(h);
	/* Bytes that TLS has read beyond the response would become the beginning of the next
	 * one. */
	if (!u->dead && u->tls && tls_client_has_pending(u->tls))
		u->ops->event(u, EPOLLIN);
	if (!u->dead)
		pool_put(u);
}

static void complete(struct h1_origin *h, size_t left_over)
{
	struct stream *s = h->stream;
	bool reusable = (h->head.flags & HTTP_KEEP_ALIVE) && h->body.framing != HTTP_BODY_CLOSE &&
			left_over == 0 && h->request_ended && !h->write_lost && !h->last &&
			!has_output(h);

	if (!response_end(s, &h->trailers))
		return;
	let_go(h, reusable);
	stream_finish(s);
}

/* Return 1 if the head is complete, 0 if more is needed or the exchange has ended. */
static int feed_head(struct h1_origin *h, struct str *bytes)
{
	for (;;) {
		size_t used = 0;
		enum h1_result r = h1_parse(&h->parser, *bytes, &used);

		*bytes = str_from_index(*bytes, used);
		if (r == H1_MORE)
			return 0;
		if (r == H1_ERROR) {
			response_malformed(h->stream, h1_error_text(h->parser.error));
			return 0;
		}
		if (h->head.status >= 200 || h->head.status == 101)
			return 1;
		if (!response_interim(h->stream, &h->head))
			return 0;
		h1_parser_next(&h->parser);
	}
}

static void feed_body(struct h1_origin *h, struct str *bytes)
{
	for (;;) {
		struct str data;
		enum http_body_result r = http_body_read_all(&h->body, bytes, &data);

		if (data.n > 0 && !response_data(h->stream, data))
			return;
		switch (r) {
		case HTTP_BODY_MORE:
			return;
		case HTTP_BODY_DATA:
			break;
		case HTTP_BODY_DONE:
			complete(h, bytes->n);
			return;
		case HTTP_BODY_BAD:
			response_malformed(h->stream, http_body_error(&h->body));
			return;
		}
	}
}

/* h may be gone afterwards. */
static void feed(struct h1_origin *h, struct str bytes)
{
	struct stream *s = h->stream;

	s->active = loop_now(h->u->broker->loop);
	if (!h->started) {
		h->started = true;
		request_body_commit(s);
	}
	if (!h->in_body) {
		if (feed_head(h, &bytes) == 0)
			return;
		if (h->head.status == 101) {
			upstream_to_websocket(h->u, s, &h->head, bytes);
			return;
		}
		/* Take the framing from the head as it was parsed, before it is changed. */
		http_body_init(&h->body, &h->head, &h->trailers);
		h->in_body = true;
		if (!response_head(s, &h->head))
			return;
	}
	feed_body(h, &bytes);
}

static void on_eof(struct h1_origin *h, bool clean)
{
	struct stream *s = h->stream;
	struct upstream *u = h->u;

	if (!h->started && u->used && s->keep) {
		s->retries++;
		s->up = NULL;
		h->stream = NULL;
		upstream_close(u);
		request_body_rewind(s);
		request_go(s, true);
		return;
	}
	if (h->in_body && http_body_eof(&h->body) == 0 &&
		(clean || h->body.framing != HTTP_BODY_CLOSE))
		complete(h, 0);
	else
		response_lost(s, upstream_error(u));
}

static void pump(struct upstream *u)
{
	struct broker *b = u->broker;

	for (int i = 0; i < READS_AT_ONCE; i++) {
		struct h1_origin *h = u->dead || u->ops != &upstream_h1 ? NULL : of(u);
		size_t max, n = 0;
		enum tls_io io;

		if (!h || !h->stream)
			return;
		if (i > 0 && u->drained) {
			fd_acknowledge(u->fd);
			watch(h);
			return;
		}
		max = response_room(h->stream);
		h->paused = max == 0;
		if (h->paused) {
			watch(h);
			return;
		}
		io = upstream_read(u, b->scratch, max, &n);
		if (io == TLS_IO_READ || io == TLS_IO_WRITE) {
			u->want_out = io == TLS_IO_WRITE;
			fd_acknowledge(u->fd);
			watch(h);
			return;
		}
		if (io != TLS_IO_OK) {
			on_eof(h, io == TLS_IO_EOF);
			return;
		}
		feed(h, str_make(b->scratch, n));
	}
	if (!u->dead)
		upstream_work_later(u);
}

static void resume(struct upstream *u, struct stream *s)
{
	struct h1_origin *h = of(u);

	if (!h->paused || response_room(s) == 0)
		return;
	h->paused = false;
	/* Bytes that TLS has already read cause no event. */
	upstream_work_later(u);
}

static void detach(struct upstream *u, struct stream *s)
{
	of(u)->stream = NULL;
	upstream_close(u);
}

/* On an idle connection only session tickets may come. Anything else, or its end, closes it. */
static void idle_event(struct upstream *u)
{
	char c;
	size_t n;

	if (upstream_read(u, &c, 1, &n) != TLS_IO_READ)
		upstream_close(u);
}

static void on_event(struct upstream *u, uint32_t events)
{
	struct h1_origin *h = of(u);

	if (!h->stream) {
		idle_event(u);
		return;
	}
	if (u->want_out)
		events |= EPOLLIN; /* a read that waited for writability */
	u->want_out = false;
	if ((events & EPOLLOUT) && has_output(h))
		send_request(u, h->stream);
	if (!u->dead && (events & ~(uint32_t)EPOLLOUT))
		pump(u);
}

static const struct upstream_ops upstream_h1 = {
	.begin = begin,
	.send = send_request,
	.resume = resume,
	.detach = detach,
	.event = on_event,
	.work = pump,
	.end = end,
};
