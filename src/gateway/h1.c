/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: bytes are read into one area that all connections share and given to the
 * parser at once; only what cannot be used now (the next request of a pipeline, a body beyond the
 * window) is kept with the connection. The state of an exchange exists only from a request's first
 * byte to the end of its response, and is then used again for another, so an idle connection is
 * small and a busy one allocates nothing.
 *
 *	idle --first byte--> HEAD --parsed, judged--> BODY --complete--> DONE
 *
 * Reading stops while the request is DONE (so pipelining is one request deep), while the broker
 * gives no window, and while the broker is behind as a whole. So bytes that follow a request for a
 * WebSocket are not looked at before the answer is known: after a 101 they are frames, otherwise
 * they are the next request. */
#include "gateway/h1.h"
#include "base/clock.h"
#include "gateway/event.h"
#include "gateway/h1_exchange.h"
#include "gateway/request.h"
#include "gateway/state.h"
#include "http/limits.h"

#include <errno.h>

static const struct stage h1_stage;

/* --- the exchange object --- */

static struct h1 *h1_new(struct conn *c)
{
	struct gateway *g = c->g;
	struct h1 *h = g->pool;

	if (h) {
		g->pool = h->next;
		g->pool_n--;
	} else {
		h = calloc(1, sizeof(*h));
		if (!h)
			return NULL;
		h->head = HTTP_HEAD_INIT;
		h->trailers = HTTP_FIELDS_INIT;
	}
	h->x = (struct exchange){.ops = &h1_exchange_ops, .c = c};
	h->request = H1_REQUEST_HEAD;
	h->keep = h->http10 = h->websocket = false;
	h1_parser_request(&h->parser, &h->head);
	c->state = h;
	return h;
}

static void h1_destroy(struct h1 *h)
{
	http_head_done(&h->head);
	http_fields_done(&h->trailers);
	free(h);
}

void h1_free(struct h1 *h)
{
	struct gateway *g = h->x.c->g;

	stream_close(&h->x.stream, NET_RESET_CANCELLED);
	http_body_done(&h->body);
	h->x.c = NULL;
	if (g->pool_n >= GATEWAY_POOL) {
		h1_destroy(h);
		return;
	}
	http_head_clear(&h->head);
	http_fields_clear(&h->trailers);
	h->next = g->pool;
	g->pool = h;
	g->pool_n++;
}

void h1_pool_done(struct gateway *g)
{
	while (g->pool) {
		struct h1 *h = g->pool;

		g->pool = h->next;
		h1_destroy(h);
	}
	g->pool_n = 0;
}

/* --- deadlines --- */

/* Whether the exchange waits for the client to send more of the body. */
static bool waits_for_body(const struct h1 *h)
{
	return h->request == H1_REQUEST_BODY && !h->x.answered && !h->x.wait_continue &&
	       conn_may_read(h->x.c);
}

void h1_arm(struct h1 *h)
{
	struct conn *c = h->x.c;
	uint64_t now = loop_now(c->g->loop), end;

	if (h->request == H1_REQUEST_HEAD)
		return; /* set with the first byte, does not move */
	end = exchange_deadline(&h->x, waits_for_body(h), c->g->limits->stream_idle_usec);
	conn_set_timeout(c, end > now ? end - now : 0);
}

static void h1_expired(struct conn *c)
{
	struct h1 *h = c->state;

	if (!h) { /* idle */
		conn_end(c);
		return;
	}
	if (h->request == H1_REQUEST_HEAD) {
		event_malformed(c, &h->head, answer_too_slow.status, "request head took too long");
		h1_fail(h, &answer_too_slow);
		return;
	}
	if (!waits_for_body(h)) {
		h1_fail(h, &answer_no_response);
		return;
	}
	if (exchange_keeps_pace(&h->x)) {
		h1_arm(h);
		return;
	}
	event_malformed(c, &h->head, answer_too_slow.status, "request body came too slowly");
	h1_fail(h, &answer_too_slow);
}

/* --- the end of an exchange --- */

void h1_response_done(struct h1 *h)
{
	struct conn *c = h->x.c;
	bool complete = h->request == H1_REQUEST_DONE;

	h->x.answered = true;
	if (!complete) { /* answered before it was read: the rest is dropped */
		conn_end_linger(c);
		return;
	}
	if (!h->keep) {
		if (buf_len(&c->in) > 0)
			conn_end_linger(c);
		else
			conn_end(c);
		return;
	}
	h1_free(h);
	c->state = NULL;
	conn_set_timeout(c, c->g->limits->idle_usec);
	conn_want_read(c, true);
}

static void h1_refuse(struct h1 *h, const struct answer *a)
{
	struct conn *c = h->x.c;
	struct answer full = *a;

	/* An answer to a request whose body is still to come ends the connection: the body is not
	 * read, so the start of the next request is not known. */
	full.close = a->close || !h->keep || h->request != H1_REQUEST_DONE;
	full.http10 = h->http10;
	full.to_head = h->x.to_head;
	h->keep = !full.close;
	stream_close(&h->x.stream, NET_RESET_CANCELLED);
	answer_write(c, &full);
	if (!c->dead)
		h1_response_done(h);
}

void h1_fail(struct h1 *h, const struct answer *a)
{
	if (!h->x.answered)
		h1_refuse(h, a);
	else
		conn_abort(h->x.c);
}

/* --- the head --- */

static void malformed(struct h1 *h)
{
	unsigned status = h1_error_status(h->parser.error);
	const char *why = h1_error_text(h->parser.error);

	event_malformed(h->x.c, &h->head, status, why);
	h->keep = false;
	h1_refuse(h, &(struct answer){
			     .status = (uint16_t)status,
			     .code = "malformed_request",
			     .message = why,
			     .close = true,
		     });
}

static void refuse_judged(struct h1 *h, const struct request *r)
{
	struct answer a = exchange_refusal(&h->x, &h->head, r);

	a.close = r->refusal.event == NET_EVENT_CONNECT; /* what follows it is not HTTP */
	h1_refuse(h, &a);
}

static void head_done(struct h1 *h)
{
	struct conn *c = h->x.c;
	struct request_via via = {.tls = c->tls_done, .host = c->host, .port = c->port};
	struct request r;

	h->http10 = h->head.version == HTTP_10;
	h->keep = h->head.flags & HTTP_KEEP_ALIVE;
	h->x.to_head = str_eq(http_head_method(&h->head), STR("HEAD"));
	http_body_init(&h->body, &h->head, &h->trailers);
	h->request = http_body_is_done(&h->body) ? H1_REQUEST_DONE : H1_REQUEST_BODY;
	if (!via.tls && http_head_host(&h->head).n == 0)
		conn_dest_name(c, &via.dest);
	request_judge(&h->head, &via, &r);
	if (r.refusal.status) {
		refuse_judged(h, &r);
		return;
	}
	h->x.wait_continue = r.open.expect_continue && h->request == H1_REQUEST_BODY;
	h->websocket = r.open.kind == NET_KIND_WEBSOCKET;
	if (exchange_open(&h->x, &h->head, &r) < 0) {
		h1_refuse(h, &answer_full);
		return;
	}
	if (h->request == H1_REQUEST_DONE)
		conn_want_read(c, false);
	h1_arm(h);
}

static void feed_head(struct h1 *h, struct str *in)
{
	size_t used = 0;
	enum h1_result r = h1_parse(&h->parser, *in, &used);

	*in = str_from_index(*in, used);
	if (r == H1_ERROR)
		malformed(h);
	else if (r == H1_DONE)
		head_done(h);
}

/* --- the body --- */

static void body_broken(struct h1 *h, uint16_t status, const char *code, const char *why)
{
	event_malformed(h->x.c, &h->head, status, why);
	stream_close(&h->x.stream, NET_RESET_MALFORMED);
	h1_fail(h, &(struct answer){
			   .status = status,
			   .code = code,
			   .message = why,
			   .close = true,
		   });
}

/* Whether the client may send n bytes as one piece of a body that is not complete yet. */
static bool piece_take(struct conn *c, size_t n)
{
	if (n >= HTTP_PIECE_MIN)
		return true;
	if (c->pieces.burst == 0)
		c->pieces = http_rate_make(HTTP_PIECES_BURST, HTTP_PIECES_RATE);
	return http_rate_take(&c->pieces);
}

static void body_done(struct h1 *h)
{
	h->request = H1_REQUEST_DONE;
	conn_want_read(h->x.c, false);
	stream_send_end(&h->x.stream, &h->trailers);
	h1_arm(h);
}

static void feed_body(struct h1 *h, struct str *in)
{
	size_t most = MIN((size_t)h->x.stream.send_window, (size_t)NET_MAX_DATA);
	struct str piece = str_prefix(*in, most), data;
	size_t before = piece.n;
	enum http_body_result r;

	if (most == 0) { /* h1_on_credit() resumes reading */
		conn_want_read(h->x.c, false);
		h1_arm(h);
		return;
	}
	r = http_body_read_all(&h->body, &piece, &data);
	*in = str_from_index(*in, before - piece.n);
	h->x.window_bytes += before - piece.n;
	if (r == HTTP_BODY_BAD) {
		body_broken(h, 400, "malformed_body", http_body_error(&h->body));
		return;
	}
	if (data.n > 0 && !http_body_is_done(&h->body) && !piece_take(h->x.c, data.n)) {
		body_broken(h, 429, "too_many_small_pieces",
			"The body comes in too many pieces of a few bytes each. Send larger ones.");
		return;
	}
	if (data.n > 0) {
		h->x.wait_continue = false; /* the client does not wait for it */
		stream_send_data(&h->x.stream, data);
	}
	if (http_body_is_done(&h->body))
		body_done(h);
	else
		h1_arm(h);
}

/* --- reading --- */

/* Uses as much of *in as can be used now. */
static void feed(struct conn *c, struct str *in)
{
	while (in->n > 0 && conn_may_read(c) && c->stage == &h1_stage) {
		struct h1 *h = c->state;

		/* The client of a pipeline has to take earlier answers first. */
		if (!h && conn_pending_out(c) > c->g->limits->unsent_high) {
			conn_want_read(c, false);
			return;
		}
		if (!h) {
			h = h1_new(c);
			if (!h) {
				conn_close(c);
				return;
			}
			conn_set_timeout(c, c->g->limits->head_usec);
		}
		if (h->request == H1_REQUEST_HEAD)
			feed_head(h, in);
		else if (h->request == H1_REQUEST_BODY)
			feed_body(h, in);
		else
			conn_want_read(c, false);
	}
}

/* The client will send no more. */
static void h1_on_eof(struct conn *c)
{
	struct h1 *h = c->state;

	if (!h)
		conn_end(c);
	else if (h->x.answered)
		conn_abort(c);
	else
		conn_close(c);
}

/* Read and use one portion of input. Return whether there may be more. */
static bool h1_read_once(struct conn *c)
{
	struct gateway *g = c->g;
	struct str in = buf_str(&c->in);
	ssize_t n;

	if (in.n > 0) {
		size_t before = in.n;

		feed(c, &in);
		if (c->dead || c->stage != &h1_stage)
			return false;
		buf_consume(&c->in, before - in.n);
		if (buf_len(&c->in) == 0)
			buf_done(&c->in);
		return conn_has_buffered(c);
	}
	n = conn_read(c, g->scratch, sizeof(g->scratch));
	if (n <= 0) {
		if (n != -EAGAIN)
			h1_on_eof(c);
		return false;
	}
	in = str_make(g->scratch, (size_t)n);
	feed(c, &in);
	if (c->dead || c->stage != &h1_stage)
		return false;
	if (in.n > 0 && buf_add_str(&c->in, in) < 0) {
		conn_close(c);
		return false;
	}
	return (size_t)n == sizeof(g->scratch) || conn_has_buffered(c);
}

static void h1_readable(struct conn *c)
{
	conn_read_turn(c, h1_read_once);
}

static void h1_drained(struct conn *c)
{
	struct h1 *h = c->state;

	if (h)
		h1_response_drained(h);
	else if (conn_pending_out(c) <= c->g->limits->unsent_low)
		conn_want_read(c, true);
}

static void h1_end(struct conn *c)
{
	if (c->state)
		h1_free(c->state);
	c->state = NULL;
}

static const struct stage h1_stage = {
	.readable = h1_readable,
	.drained = h1_drained,
	.expired = h1_expired,
	.end = h1_end,
};

void h1_start(struct conn *c)
{
	conn_set_stage(c, &h1_stage);
	conn_set_timeout(c, c->g->limits->idle_usec);
	if (!c->dead && (!c->tls || conn_has_buffered(c)))
		h1_readable(c);
}
