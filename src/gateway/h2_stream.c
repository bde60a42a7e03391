/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: flow control is passed through. The room may have as many bytes of a request
 * under way as the broker's window allows, and gets credit when the broker gives credit, so no part
 * of a request is ever kept here. At most a window's worth of a response is kept. The broker gets
 * credit for what was moved to the connection's output, which stops if the room does not read.
 *
 * The two sides of an exchange end independently: the room's stream may be over (its answer had no
 * body) before the broker has said so. A response that breaks off is never ended properly: what
 * came of it is sent, then the stream is reset. */
#include "base/clock.h"
#include "gateway/event.h"
#include "gateway/h2_exchange.h"
#include "gateway/request.h"
#include "gateway/state.h"
#include "http/body.h"

#include <errno.h>
#include <utlist.h>

static const struct exchange_ops h2_exchange_ops;

/* --- the object --- */

static struct h2_exchange *h2_exchange_new(struct h2_conn *on, struct h2_stream *st)
{
	struct h2_exchange *x =
		on->n < on->c->g->limits->h2_exchanges ? calloc(1, sizeof(*x)) : NULL;

	if (!x)
		return NULL;
	x->common = (struct exchange){.ops = &h2_exchange_ops, .c = on->c};
	x->on = on;
	x->st = st;
	x->out = BUF_INIT(NET_WINDOW);
	x->deadline = USEC_INFINITY;
	h2_stream_set_user(st, x);
	DL_APPEND(on->exchanges, x);
	on->n++;
	return x;
}

/* Drop the rest of the answer's body. */
static void h2_exchange_drop_out(struct h2_exchange *x)
{
	x->common.c->kept -= buf_len(&x->out);
	buf_done(&x->out);
}

void h2_exchange_free(struct h2_exchange *x)
{
	struct h2_conn *on = x->on;

	stream_close(&x->common.stream, NET_RESET_CANCELLED);
	h2_exchange_drop_out(x);
	on->cuts -= x->cut;
	on->n--;
	DL_DELETE(on->exchanges, x);
	free(x);
}

void h2_exchange_reset(struct h2_exchange *x, enum h2_error error)
{
	if (x->st)
		h2_reset(x->st, error);
	h2_exchange_free(x);
}

static void h2_exchange_free_if_over(struct h2_exchange *x)
{
	if (!x->st && !x->common.stream.g)
		h2_exchange_free(x);
}

/* --- deadlines --- */

/* Whether the exchange waits for the client to send more of the body. In a gRPC call the client may
 * be silent for as long as it likes. */
static bool h2_exchange_waits(const struct h2_exchange *x)
{
	return x->st && !x->complete && !x->common.answered && !x->common.wait_continue &&
	       !x->is_grpc && x->common.stream.g && x->common.stream.send_window > 0 &&
	       conn_may_read(x->common.c);
}

static void h2_exchange_arm(struct h2_exchange *x)
{
	const struct gateway_limits *limits = x->common.c->g->limits;

	x->deadline = exchange_deadline(&x->common, h2_exchange_waits(x),
		x->holds ? limits->linger_usec : limits->stream_idle_usec);
	x->on->soonest = MIN(x->on->soonest, x->deadline);
}

/* --- the end of an answer --- */

static int h2_exchange_release_end(struct h2_exchange *x, const struct http_fields *trailers)
{
	x->holds = false;
	x->ended = true;
	conn_mark(x->common.c);
	return h2_end(x->st, trailers);
}

/* Return whether the answer may end now, also if the request does not. A gRPC call is over when its
 * status has come, whatever the client is still sending. A client that waits for 100 sends
 * nothing. */
static bool h2_exchange_may_end(const struct h2_exchange *x)
{
	return x->complete || x->is_grpc || x->common.wait_continue;
}

static int h2_exchange_end_response(struct h2_exchange *x, const struct http_fields *trailers)
{
	if (h2_exchange_may_end(x) || (trailers && trailers->n > 0))
		return h2_exchange_release_end(x, trailers);
	x->holds = true;
	stream_close(&x->common.stream, NET_RESET_CANCELLED);
	/* The broker gives no more credit for the request. */
	h2_consume(x->st, SIZE_MAX);
	return 0;
}

/* Drop n bytes of the request that are not needed any more. */
static void h2_exchange_drop(struct h2_exchange *x, size_t n)
{
	h2_consume(x->st, n);
	if (!x->holds)
		return;
	x->dropped += (uint32_t)n;
	if (x->dropped > x->common.c->g->limits->early_bytes &&
		h2_exchange_release_end(x, NULL) < 0)
		h2_exchange_reset(x, H2_INTERNAL_ERROR);
	else
		h2_exchange_arm(x);
}

/* --- answers of our own --- */

/* May free x. */
static void h2_exchange_refuse(struct h2_exchange *x, const struct answer *a)
{
	struct http_head *head = &x->common.c->g->answer;
	bool ends = x->common.to_head && h2_exchange_may_end(x);
	int r;

	stream_close(&x->common.stream, NET_RESET_CANCELLED);
	r = answer_make(head, &x->out, a);
	x->common.c->kept += buf_len(&x->out);
	if (x->common.to_head)
		h2_exchange_drop_out(x);
	if (r >= 0)
		r = h2_respond(x->st, head, ends ? H2_END : 0);
	x->common.answered = true;
	x->ended = ends;
	x->common.framing = HTTP_BODY_NONE;
	if (r >= 0 && !ends)
		r = h2_exchange_end_response(x, NULL);
	if (r < 0)
		h2_exchange_reset(x, H2_INTERNAL_ERROR);
	else
		h2_exchange_arm(x);
}

/* The exchange cannot be finished. May free x. */
static void h2_exchange_fail(struct h2_exchange *x, const struct answer *a)
{
	if (!x->st) {
		h2_exchange_free(x);
		return;
	}
	if (!x->common.answered) {
		h2_exchange_refuse(x, a);
		return;
	}
	stream_close(&x->common.stream, NET_RESET_CANCELLED);
	if (buf_len(&x->out) == 0) {
		h2_exchange_reset(x, H2_INTERNAL_ERROR);
		return;
	}
	x->on->cuts += !x->cut;
	x->cut = true;
}

void h2_exchange_expired(struct h2_exchange *x)
{
	struct conn *c = x->common.c;

	if (h2_exchange_waits(x) && exchange_keeps_pace(&x->common)) {
		h2_exchange_arm(x);
		return;
	}
	if (x->holds && h2_exchange_release_end(x, NULL) == 0) {
		h2_exchange_arm(x);
		return;
	}
	if (!x->st || x->common.answered) {
		h2_exchange_reset(x, H2_CANCEL);
		return;
	}
	if (!h2_exchange_waits(x)) {
		h2_exchange_refuse(x, &answer_no_response);
		return;
	}
	event_send_of(c, (struct net_event){
				 .kind = NET_EVENT_MALFORMED,
				 .status = answer_too_slow.status,
				 .a = host_str(&c->host),
				 .b = STR("request body came too slowly"),
			 });
	h2_exchange_refuse(x, &answer_too_slow);
}

/* --- the request --- */

static int h2_exchange_open(struct h2_exchange *x, const struct http_head *head, struct request *r)
{
	const struct gateway *g = x->common.c->g;

	if (chan_pending(&g->broker) > g->limits->broker_full)
		return -EBUSY;
	return exchange_open(&x->common, head, r);
}

void h2_exchange_head(void *arg, struct h2_stream *st, struct http_head *head)
{
	struct h2_conn *on = arg;
	struct request_via via = {.tls = true, .host = on->c->host, .port = on->c->port};
	struct h2_exchange *x = h2_exchange_new(on, st);
	struct request r;
	struct answer a;

	if (!x) {
		h2_reset(st, H2_REFUSED_STREAM);
		return;
	}
	x->common.to_head = str_eq(http_head_method(head), STR("HEAD"));
	x->is_grpc = http_is_grpc(&head->fields);
	request_judge(head, &via, &r);
	x->body = r.open.body;
	if (r.refusal.status) {
		a = exchange_refusal(&x->common, head, &r);
		h2_exchange_refuse(x, &a);
		return;
	}
	x->common.wait_continue = r.open.expect_continue;
	if (h2_exchange_open(x, head, &r) < 0)
		h2_exchange_refuse(x, &answer_full);
	else
		h2_exchange_arm(x);
}

void h2_exchange_data(void *arg, struct h2_stream *st, struct str bytes)
{
	struct h2_exchange *x = h2_stream_user(st);

	if (!x->common.stream.g || x->common.stream.sent_end) {
		h2_exchange_drop(x, bytes.n);
		return;
	}
	if (bytes.n > x->common.stream.send_window) { /* cannot happen: the windows are the same */
		h2_exchange_reset(x, H2_FLOW_CONTROL_ERROR);
		return;
	}
	x->common.wait_continue = false; /* the client does not wait for it */
	x->common.window_bytes += bytes.n;
	while (bytes.n > 0) {
		struct str piece = str_prefix(bytes, NET_MAX_DATA);

		stream_send_data(&x->common.stream, piece);
		bytes = str_from_index(bytes, piece.n);
	}
	h2_exchange_arm(x);
}

void h2_exchange_end(void *arg, struct h2_stream *st, struct http_fields *trailers)
{
	struct h2_exchange *x = h2_stream_user(st);

	x->complete = true;
	x->common.wait_continue = false;
	/* If the body's length is known, drop trailers: the broker was not told that they come. */
	if (x->common.stream.g && !x->common.stream.sent_end)
		stream_send_end(&x->common.stream, x->body == NET_BODY_STREAM ? trailers : NULL);
	if (x->holds && h2_exchange_release_end(x, NULL) < 0)
		h2_exchange_reset(x, H2_INTERNAL_ERROR);
	else
		h2_exchange_arm(x);
}

void h2_exchange_closed(void *arg, struct h2_stream *st, enum h2_error error)
{
	struct h2_exchange *x = h2_stream_user(st);

	x->st = NULL;
	h2_exchange_drop_out(x);
	if (error != H2_NO_ERROR || !x->ended || !x->complete)
		stream_close(&x->common.stream, NET_RESET_CANCELLED);
	h2_exchange_free_if_over(x);
}

/* --- the response, towards the room --- */

struct str h2_exchange_body(void *arg, struct h2_stream *st)
{
	const struct h2_exchange *x = h2_stream_user(st);

	return buf_str(&x->out);
}

void h2_exchange_sent(void *arg, struct h2_stream *st, size_t n)
{
	struct h2_exchange *x = h2_stream_user(st);

	buf_consume(&x->out, n);
	x->common.c->kept -= n;
	stream_passed_on(&x->common.stream, buf_len(&x->out));
	if (buf_len(&x->out) == 0)
		buf_done(&x->out);
	h2_exchange_arm(x);
}

/* --- the response, from the broker --- */

static struct h2_exchange *h2_exchange_of(struct exchange *shared)
{
	return container_of(shared, struct h2_exchange, common);
}

static bool h2_exchange_interim(struct exchange *shared, struct http_head *head)
{
	return h2_respond(h2_exchange_of(shared)->st, head, 0) >= 0;
}

static bool h2_exchange_answer(
	struct exchange *shared, const struct net_response *m, struct http_head *head)
{
	struct h2_exchange *x = h2_exchange_of(shared);

	x->ended = shared->framing == HTTP_BODY_NONE && h2_exchange_may_end(x);
	if (h2_respond(x->st, head, x->ended ? H2_END : 0) >= 0)
		return true;
	x->ended = false;
	return false;
}

static void h2_exchange_answer_data(struct stream *s, struct str bytes)
{
	struct exchange *shared = exchange_of(s);
	struct h2_exchange *x = h2_exchange_of(shared);

	if (!x->st || x->common.framing == HTTP_BODY_NONE) { /* the body is dropped */
		stream_passed_on(&shared->stream, 0);
		return;
	}
	conn_mark(x->common.c);
	if (!exchange_take(shared, bytes.n) || buf_add_str(&x->out, bytes) < 0) {
		h2_exchange_fail(x, NULL);
		return;
	}
	x->common.c->kept += bytes.n;
	h2_wake(x->st);
	h2_exchange_arm(x);
}

static void h2_exchange_answer_end(struct stream *s, uint16_t fields_n, struct wire_in *fields)
{
	struct exchange *shared = exchange_of(s);
	struct h2_exchange *x = h2_exchange_of(shared);
	struct http_fields *trailers = &x->common.c->g->answer.fields;

	if (stream_is_over(&shared->stream))
		stream_close(&shared->stream, NET_RESET_CANCELLED);
	if (!x->st || x->ended) {
		h2_exchange_free_if_over(x);
		return;
	}
	conn_mark(x->common.c);
	http_fields_clear(trailers);
	if (exchange_is_short(shared) || exchange_fields(fields, fields_n, trailers) < 0 ||
		h2_exchange_end_response(x, trailers) < 0) {
		h2_exchange_fail(x, NULL);
		return;
	}
	h2_exchange_arm(x);
}

static void h2_exchange_on_fail(struct exchange *shared, const struct answer *a)
{
	conn_mark(shared->c);
	h2_exchange_fail(h2_exchange_of(shared), a);
}

static void h2_exchange_credit(struct stream *s, uint32_t n)
{
	struct exchange *shared = exchange_of(s);
	struct h2_exchange *x = h2_exchange_of(shared);

	if (x->st)
		h2_credit(x->st, n);
	h2_exchange_arm(x);
	conn_mark(shared->c);
}

static void h2_exchange_on_arm(struct exchange *shared)
{
	h2_exchange_arm(h2_exchange_of(shared));
}

static const struct stream_ops h2_stream_ops = {
	.interim = exchange_on_interim,
	.head = exchange_on_head,
	.data = h2_exchange_answer_data,
	.end = h2_exchange_answer_end,
	.reset = exchange_on_reset,
	.credit = h2_exchange_credit,
};

static const struct exchange_ops h2_exchange_ops = {
	.stream = &h2_stream_ops,
	.interim = h2_exchange_interim,
	.head = h2_exchange_answer,
	.broken = h2_exchange_on_fail,
	.fail = h2_exchange_on_fail,
	.arm = h2_exchange_on_arm,
};
