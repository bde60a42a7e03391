/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: HTTP/1.1 on a connection to an origin: one request and its response after
 * the other. The request is written from the model. A body of known length is sent from the
 * stream's own memory, a small one together with the head. The response goes through the strict
 * parser. No more of it is read than the gateway takes, so nothing of it is ever kept here. */
#include "base/clock.h"
#include "base/parse.h"
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
#include "http/valid.h"
#include "ipc/chan.h"
#include "ipc/netchan.h"
#include "loop/loop.h"

#include <errno.h>

static const struct upstream_ops upstream_h1;

enum {
	JOIN_MAX = 16 * 1024, /* bytes of a body that are copied to go out with the head */
	OUT_FULL = 16 * 1024, /* if this many framed bytes wait, no more are framed */
	OUT_ROOM = HTTP_HEAD_MAX * 4 + NET_WINDOW,
};

struct h1_origin {
	struct upstream *u;
	struct buf out;     /* of the request: head, framing, small bodies */
	bool request_ended; /* its last byte is in out, or was sent */
	bool started;       /* bytes of the response have come */
	bool in_body;       /* the head is complete */
	bool write_lost;    /* the origin takes no more of the request */
	bool last;          /* the origin was told that no other request comes */
	uint64_t idle_usec; /* for how long the origin keeps it for the next request */
	struct h1_parser parser;
	struct http_head head;
	struct http_body body;
	struct http_fields trailers;
};

static struct h1_origin *upstream_h1_of(const struct upstream *u)
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

static void h1_end(struct upstream *u)
{
	struct h1_origin *h = upstream_h1_of(u);

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
	const struct stream *s = h->u->stream;

	return s->kind == NET_KIND_HTTP ? request_body(s) : STR_NULL;
}

static bool h1_has_output(const struct upstream *u)
{
	const struct h1_origin *h = upstream_h1_of(u);

	return !h->write_lost && (buf_len(&h->out) > 0 || body_to_send(h).n > 0);
}

/* The origin takes no more of the request. It may still answer (413, 401): that is read first. */
static void write_failed(struct h1_origin *h)
{
	h->write_lost = true;
	if (!h->u->stream->keep) /* else it may be sent once more */
		request_body_drop(h->u->stream);
}

/* Move waiting bytes of the body into `out` if they have to be framed, or go with the head. */
static int frame(struct h1_origin *h)
{
	struct stream *s = h->u->stream;
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
	struct stream *s = h->u->stream;
	bool framed = buf_len(&h->out) > 0;
	struct str bytes = framed ? buf_str(&h->out) : body_to_send(h);
	size_t n = 0;
	enum tls_io io = upstream_write(h->u, bytes, &n);

	if (io != TLS_IO_OK)
		return io;
	if (!framed) {
		request_body_taken(s, n);
		return io;
	}
	if (s->secret)
		explicit_bzero(buf_data(&h->out), n);
	buf_consume(&h->out, n);
	s->active = loop_now(h->u->broker->loop);
	return io;
}

static void h1_send(struct upstream *u, struct stream *s)
{
	struct h1_origin *h = upstream_h1_of(u);

	while (!h->write_lost) {
		enum tls_io io;

		if (frame(h) < 0) {
			refuse_upstream(
				s, 503, "out_of_memory", "no memory for the request's body");
			return;
		}
		if (!h1_has_output(u))
			break;
		io = write_out(h);
		if (io == TLS_IO_WRITE || io == TLS_IO_READ)
			break;
		if (io != TLS_IO_OK)
			write_failed(h);
	}
	upstream_single_watch(u);
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

static void h1_begin(struct upstream *u, struct stream *s)
{
	struct h1_origin *h = upstream_h1_of(u);
	struct cloche_err err = CLOCHE_ERR_INIT;
	bool upgrade = s->kind == NET_KIND_WEBSOCKET;
	unsigned flags = (s->te_trailers ? H1_W_TRAILERS : 0) | (upgrade ? H1_W_UPGRADE : 0);

	h->last = is_body_doubtful(&s->head);
	flags |= h->last ? H1_W_CLOSE : s->keep_alive && !upgrade ? H1_W_KEEP_ALIVE : 0;
	flags |= s->expect.passed_on ? H1_W_EXPECT : 0;
	h->request_ended = h->started = h->in_body = u->paused = h->write_lost = false;
	http_body_done(&h->body);
	h1_parser_response(&h->parser, &h->head,
		(s->is_head ? H1_TO_HEAD : 0) | (upgrade ? H1_UPGRADE_ASKED : 0));
	if (h1_write_request(&h->out, &s->head, flags, &err) < 0) {
		refuse_upstream(s, 502, "request_not_sent", err.message);
		return;
	}
	h1_send(u, s);
}

/* --- the response --- */

/* Return for how long the origin keeps an idle connection, less a second for what is on its way
 * ("Keep-Alive: timeout=SECONDS", RFC 2068 19.7.1.1). */
static uint64_t idle_usec(const struct http_fields *f)
{
	struct str list = http_fields_get(f, STR("keep-alive")), value;
	uint64_t sec;

	while (http_list_next(&list, &value)) {
		struct str name = str_trim(str_next(&value, '='));

		if (str_ieq(name, STR("timeout")) &&
			parse_u64(str_trim(value), UINT32_MAX, &sec) == 0)
			return sec > 0 ? (sec - 1) * USEC_PER_SEC : 0;
	}
	return POOL_IDLE_USEC;
}

/* Put the connection into the pool, or close it. */
static void let_go(struct h1_origin *h, bool reusable)
{
	struct upstream *u = h->u;

	if (!reusable) {
		upstream_close(u);
		return;
	}
	u->stream->up = NULL;
	u->stream = NULL;
	u->paused = u->want_out = false;
	upstream_single_watch(u);
	/* Bytes that TLS has read beyond the response would become the beginning of the next
	 * one. */
	if (!u->dead && u->tls && tls_client_has_pending(u->tls))
		u->ops->event(u, EPOLLIN);
	if (!u->dead)
		pool_put(u, h->idle_usec);
}

static void upstream_h1_complete(struct h1_origin *h, size_t left_over)
{
	struct stream *s = h->u->stream;
	bool reusable = (h->head.flags & HTTP_KEEP_ALIVE) && h->body.framing != HTTP_BODY_CLOSE &&
			left_over == 0 && h->request_ended && !h->write_lost && !h->last &&
			!h1_has_output(h->u) && h->idle_usec > 0;

	if (!response_end(s, &h->trailers))
		return;
	request_body_answered(s, buf_len(&h->out) == 0);
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
			response_malformed(h->u->stream, h1_error_text(h->parser.error));
			return 0;
		}
		if (h->head.status >= 200 || h->head.status == 101)
			return 1;
		if (!response_interim(h->u->stream, &h->head))
			return 0;
		h1_parser_next(&h->parser);
	}
}

static void feed_body(struct h1_origin *h, struct str *bytes)
{
	for (;;) {
		struct str data;
		enum http_body_result r = http_body_read_all(&h->body, bytes, &data);

		if (data.n > 0 && !response_data(h->u->stream, data))
			return;
		switch (r) {
		case HTTP_BODY_MORE:
			return;
		case HTTP_BODY_DATA:
			break;
		case HTTP_BODY_DONE:
			upstream_h1_complete(h, bytes->n);
			return;
		case HTTP_BODY_BAD:
			response_malformed(h->u->stream, http_body_error(&h->body));
			return;
		}
	}
}

/* u->protocol may be gone afterwards. */
static void h1_take(struct upstream *u, struct str bytes)
{
	struct h1_origin *h = upstream_h1_of(u);
	struct stream *s = u->stream;

	s->active = loop_now(u->broker->loop);
	if (!h->started) {
		h->started = true;
		request_body_commit(s);
	}
	if (!h->in_body) {
		if (feed_head(h, &bytes) == 0)
			return;
		if (h->head.status == 101) {
			upstream_to_websocket(u, s, &h->head, bytes);
			return;
		}
		/* Both are read from the head as it was parsed, before it is changed. */
		http_body_init(&h->body, &h->head, &h->trailers);
		h->idle_usec = idle_usec(&h->head.fields);
		h->in_body = true;
		if (!response_head(s, &h->head))
			return;
	}
	feed_body(h, &bytes);
}

static void h1_eof(struct upstream *u, bool clean)
{
	struct h1_origin *h = upstream_h1_of(u);
	struct stream *s = u->stream;

	if (!h->started && u->used && s->keep) {
		s->retries++;
		upstream_close(u);
		request_body_rewind(s);
		request_go(s, true);
		return;
	}
	if (h->in_body && http_body_eof(&h->body) == 0 &&
		(clean || h->body.framing != HTTP_BODY_CLOSE))
		upstream_h1_complete(h, 0);
	else
		response_lost(s, upstream_error(u));
}

static const struct upstream_ops upstream_h1 = {
	.begin = h1_begin,
	.send = h1_send,
	.resume = upstream_single_resume,
	.event = upstream_single_event,
	.work = upstream_single_work,
	.end = h1_end,
	.has_output = h1_has_output,
	.take = h1_take,
	.eof = h1_eof,
};
