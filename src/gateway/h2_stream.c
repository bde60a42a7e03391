/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: windows run through. The room may have as many bytes of a request under way
 * as the broker takes of it, and gets what the broker gives back; so nothing of a request is ever
 * kept here. Of a response a window's worth is kept at most, and the broker gets back what has been
 * given to the connection's output, which stops where the room does not read.
 *
 * The two sides of an exchange end on their own: the room's stream may be over (its answer had no
 * body) before the broker has said so. A response that breaks off is never ended properly: what
 * came of it goes out, then the stream is reset. */
#include "base/clock.h"
#include "gateway/event.h"
#include "gateway/h2_exchange.h"
#include "gateway/request.h"
#include "gateway/state.h"
#include "http/body.h"

#include <errno.h>
#include <utlist.h>

enum {
	/* Heads are small on the wire and large for the broker: a room that sends many at once
	 * does not fill the channel with them. */
	BROKER_FULL = 1024 * 1024,
	/* Those included that only the broker has to end. */
	EXCHANGES_MAX = 2 * H2_STREAMS_MAX,
	/* Of a request that was answered before its end, see end_response(). */
	DROPPED_MAX = 16 * 1024 * 1024,
};

static const struct stream_ops stream_ops;

/* --- the object --- */

static struct h2_exchange *exchange_new(struct h2_conn *on, struct h2_stream *st)
{
	struct h2_exchange *x = on->n < EXCHANGES_MAX ? calloc(1, sizeof(*x)) : NULL;

	if (!x)
		return NULL;
	x->on = on;
	x->st = st;
	x->out = BUF_INIT(NET_WINDOW);
	x->deadline = USEC_INFINITY;
	h2_stream_set_user(st, x);
	DL_APPEND(on->exchanges, x);
	on->n++;
	return x;
}

/* Nothing more of the answer's body goes out. */
static void drop_out(struct h2_exchange *x)
{
	x->on->c->kept -= buf_len(&x->out);
	buf_done(&x->out);
}

void h2_exchange_free(struct h2_exchange *x)
{
	struct h2_conn *on = x->on;

	stream_close(&x->stream, NET_RESET_CANCELLED);
	drop_out(x);
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

/* Nobody has anything to say on it any more. */
static void free_if_over(struct h2_exchange *x)
{
	if (!x->st && !x->stream.g)
		h2_exchange_free(x);
}

/* --- deadlines --- */

/* Whether the client has to send something before anything goes on. Who makes a gRPC call may have
 * nothing to say for as long as it likes. */
static bool waits_for_body(const struct h2_exchange *x)
{
	return x->st && !x->complete && !x->answered && !x->wait_continue && !x->is_grpc &&
	       x->stream.g && x->stream.send_window > 0 && conn_may_read(x->on->c);
}

static void arm(struct h2_exchange *x)
{
	const struct gateway *g = x->on->c->g;
	uint64_t now = loop_now(g->loop);

	if (!waits_for_body(x)) {
		x->window_end = 0;
		x->deadline =
			now + (x->holds ? g->limits->linger_usec : g->limits->stream_idle_usec);
	} else {
		if (x->window_end == 0) {
			x->window_end = now + g->limits->body_window_usec;
			x->window_bytes = 0;
		}
		x->deadline = x->window_end;
	}
	x->on->soonest = MIN(x->on->soonest, x->deadline);
}

/* --- the end of an answer --- */

static int release_end(struct h2_exchange *x, const struct http_fields *trailers)
{
	x->holds = false;
	x->ended = true;
	conn_mark(x->on->c);
	return h2_end(x->st, trailers);
}

/* A gRPC call is over when its status has come, whatever the client still says. */
static int end_response(struct h2_exchange *x, const struct http_fields *trailers)
{
	if (x->complete || x->is_grpc || (trailers && trailers->n > 0))
		return release_end(x, trailers);
	x->holds = true;
	stream_close(&x->stream, NET_RESET_CANCELLED);
	/* The broker gives nothing back of it any more. */
	h2_consume(x->st, x->held);
	x->held = 0;
	return 0;
}

/* What nobody wants. */
static void drop(struct h2_exchange *x, size_t n)
{
	h2_consume(x->st, n);
	if (!x->holds)
		return;
	x->dropped += (uint32_t)n;
	if (x->dropped > DROPPED_MAX && release_end(x, NULL) < 0)
		h2_exchange_reset(x, H2_INTERNAL_ERROR);
	else
		arm(x);
}

/* --- answers of our own --- */

/* x may be gone after it. */
static void refuse(struct h2_exchange *x, const struct answer *a)
{
	struct http_head *head = &x->on->c->g->answer;
	int r;

	stream_close(&x->stream, NET_RESET_CANCELLED);
	r = answer_make(head, &x->out, a);
	x->on->c->kept += buf_len(&x->out);
	if (x->to_head)
		drop_out(x);
	if (r >= 0)
		r = h2_respond(x->st, head, x->to_head ? H2_END : 0);
	x->answered = true;
	x->ended = x->to_head;
	x->framing = HTTP_BODY_NONE;
	if (r >= 0 && !x->to_head)
		r = end_response(x, NULL);
	if (r < 0)
		h2_exchange_reset(x, H2_INTERNAL_ERROR);
	else
		arm(x);
}

/* The exchange cannot be finished. x may be gone after it. */
static void fail(struct h2_exchange *x, const struct answer *a)
{
	if (!x->st) {
		h2_exchange_free(x);
		return;
	}
	if (!x->answered) {
		refuse(x, a);
		return;
	}
	stream_close(&x->stream, NET_RESET_CANCELLED);
	if (buf_len(&x->out) == 0) {
		h2_exchange_reset(x, H2_INTERNAL_ERROR);
		return;
	}
	x->on->cuts += !x->cut;
	x->cut = true;
}

void h2_exchange_expired(struct h2_exchange *x)
{
	struct conn *c = x->on->c;

	if (waits_for_body(x) && x->window_bytes >= c->g->limits->body_min_bytes) {
		x->window_end = 0;
		arm(x);
		return;
	}
	if (x->holds && release_end(x, NULL) == 0) {
		arm(x);
		return;
	}
	if (!x->st || x->answered) {
		h2_exchange_reset(x, H2_CANCEL);
		return;
	}
	if (!waits_for_body(x)) {
		refuse(x, &answer_no_response);
		return;
	}
	event_send(c->g, &(struct net_event){
				 .kind = NET_EVENT_MALFORMED,
				 .connection = c->number,
				 .client = c->client,
				 .status = answer_too_slow.status,
				 .port = c->port,
				 .a = host_str(&c->host),
				 .b = STR("request body came too slowly"),
			 });
	refuse(x, &answer_too_slow);
}

/* --- the request --- */

static void refuse_judged(
	struct h2_exchange *x, const struct http_head *head, const struct request *r)
{
	event_refused(x->on->c, head, r);
	refuse(x, &(struct answer){
			  .status = r->refusal.status,
			  .code = r->refusal.code,
			  .message = r->refusal.message,
			  .detail = http_head_host(head),
		  });
}

static int open_stream(struct h2_exchange *x, const struct http_head *head, struct request *r)
{
	struct gateway *g = x->on->c->g;
	struct net_fields_out fields;
	int e;

	if (chan_pending(&g->broker) > BROKER_FULL)
		return -EBUSY;
	r->open.connection = x->on->c->number;
	r->open.client = x->on->c->client;
	e = stream_open(g, &x->stream, &stream_ops, &r->open, &fields);
	if (e < 0)
		return e;
	request_add_fields(head, &fields);
	return stream_open_end(&x->stream, &fields, r->open.body != NET_BODY_NONE);
}

void h2_exchange_head(void *arg, struct h2_stream *st, struct http_head *head)
{
	struct h2_conn *on = arg;
	struct request_via via = {.tls = true, .host = on->c->host, .port = on->c->port};
	struct h2_exchange *x = exchange_new(on, st);
	struct request r;

	if (!x) {
		h2_reset(st, H2_REFUSED_STREAM);
		return;
	}
	x->to_head = str_eq(http_head_method(head), STR("HEAD"));
	x->is_grpc = http_is_grpc(&head->fields);
	request_judge(head, &via, &r);
	x->body = r.open.body;
	if (r.refusal.status) {
		refuse_judged(x, head, &r);
		return;
	}
	x->wait_continue = r.open.expect_continue;
	if (open_stream(x, head, &r) < 0)
		refuse(x, &answer_full);
	else
		arm(x);
}

void h2_exchange_data(void *arg, struct h2_stream *st, struct str bytes)
{
	struct h2_exchange *x = h2_stream_user(st);

	(void)arg;
	if (!x->stream.g || x->stream.sent_end) { /* nobody wants it */
		drop(x, bytes.n);
		return;
	}
	if (bytes.n > x->stream.send_window) { /* the windows are the same: it cannot be */
		h2_exchange_reset(x, H2_FLOW_CONTROL_ERROR);
		return;
	}
	x->wait_continue = false; /* it does not wait */
	x->window_bytes += bytes.n;
	x->held += (uint32_t)bytes.n;
	while (bytes.n > 0) {
		struct str piece = str_prefix(bytes, NET_MAX_DATA);

		stream_send_data(&x->stream, piece);
		bytes = str_from_index(bytes, piece.n);
	}
	arm(x);
}

void h2_exchange_end(void *arg, struct h2_stream *st, struct http_fields *trailers)
{
	struct h2_exchange *x = h2_stream_user(st);

	(void)arg;
	x->complete = true;
	x->wait_continue = false;
	/* A body of known length goes on without: nobody was told that they come. */
	if (x->stream.g && !x->stream.sent_end)
		stream_send_end(&x->stream, x->body == NET_BODY_STREAM ? trailers : NULL);
	if (x->holds && release_end(x, NULL) < 0)
		h2_exchange_reset(x, H2_INTERNAL_ERROR);
	else
		arm(x);
}

void h2_exchange_closed(void *arg, struct h2_stream *st, enum h2_error error)
{
	struct h2_exchange *x = h2_stream_user(st);

	(void)arg;
	x->st = NULL;
	drop_out(x);
	if (error != H2_NO_ERROR || !x->ended || !x->complete)
		stream_close(&x->stream, NET_RESET_CANCELLED);
	free_if_over(x);
}

/* --- the response, towards the room --- */

struct str h2_exchange_body(void *arg, struct h2_stream *st)
{
	const struct h2_exchange *x = h2_stream_user(st);

	(void)arg;
	return buf_str(&x->out);
}

void h2_exchange_sent(void *arg, struct h2_stream *st, size_t n)
{
	struct h2_exchange *x = h2_stream_user(st);

	(void)arg;
	buf_consume(&x->out, n);
	x->on->c->kept -= n;
	stream_passed_on(&x->stream, buf_len(&x->out));
	if (buf_len(&x->out) == 0)
		buf_done(&x->out);
	arm(x);
}

/* --- the response, from the broker --- */

static struct h2_exchange *owner(struct stream *s)
{
	return container_of(s, struct h2_exchange, stream);
}

static int read_fields(struct wire_in *in, unsigned n, struct http_fields *ret)
{
	struct str name, value;
	int r = 0;

	for (unsigned i = 0; i < n && r >= 0; i++) {
		if (!net_next_field(in, &name, &value))
			return -EINVAL;
		r = http_fields_add(ret, name, value);
	}
	return r < 0 || !wire_ok(in) ? -EINVAL : 0;
}

/* The head of the frame, in the area that all share; NULL where it is no good. */
static struct http_head *model(
	struct h2_exchange *x, const struct net_response *m, struct wire_in *fields)
{
	struct http_head *head = &x->on->c->g->answer;

	if (http_head_set_response(head, m->status, STR_NULL) < 0 ||
		read_fields(fields, m->fields_n, &head->fields) < 0)
		return NULL;
	return head;
}

static void on_interim(struct stream *s, const struct net_response *m, struct wire_in *fields)
{
	struct h2_exchange *x = owner(s);
	const struct http_head *head;

	if (m->status < 100 || m->status > 199 || m->status == 101 || x->answered)
		return;
	if (m->status == 100 && !x->wait_continue)
		return;
	head = model(x, m, fields);
	if (!head || h2_respond(x->st, head, 0) < 0)
		return;
	if (m->status == 100)
		x->wait_continue = false;
	arm(x);
	conn_mark(x->on->c);
}

/* What of the body goes to the room; the length is told to a HEAD, too. */
static void frame_body(struct h2_exchange *x, const struct net_response *m, struct http_head *head)
{
	bool bodiless = x->to_head || m->status == 204 || m->status == 304;

	x->left = m->length;
	if (m->body == NET_BODY_LENGTH)
		http_head_set_body(head, HTTP_BODY_LENGTH, m->length);
	else
		http_head_set_body(
			head, m->body == NET_BODY_STREAM ? HTTP_BODY_CHUNKED : HTTP_BODY_NONE, 0);
	if (bodiless) {
		head->body = HTTP_BODY_NONE;
		head->flags |= HTTP_TO_HEAD;
	}
	x->framing = head->body;
}

static void on_head(struct stream *s, const struct net_response *m, struct wire_in *fields)
{
	struct h2_exchange *x = owner(s);
	struct conn *c = x->on->c;
	struct http_head *head = m->status >= 200 ? model(x, m, fields) : NULL;

	conn_mark(c);
	if (!head) {
		fail(x, &answer_bad_response);
		return;
	}
	frame_body(x, m, head);
	x->ended = x->framing == HTTP_BODY_NONE;
	if (h2_respond(x->st, head, x->ended ? H2_END : 0) < 0) {
		x->ended = false;
		fail(x, &answer_bad_response);
		return;
	}
	x->answered = true;
	x->wait_continue = false;
	arm(x);
}

static void on_data(struct stream *s, struct str bytes)
{
	struct h2_exchange *x = owner(s);

	if (!x->st || x->framing == HTTP_BODY_NONE) { /* nothing of it goes out */
		stream_passed_on(s, 0);
		return;
	}
	conn_mark(x->on->c);
	if ((x->framing == HTTP_BODY_LENGTH && bytes.n > x->left) ||
		buf_add_str(&x->out, bytes) < 0) {
		fail(x, NULL);
		return;
	}
	x->on->c->kept += bytes.n;
	x->left -= x->framing == HTTP_BODY_LENGTH ? bytes.n : 0;
	h2_wake(x->st);
	arm(x);
}

static void on_end(struct stream *s, uint16_t fields_n, struct wire_in *fields)
{
	struct h2_exchange *x = owner(s);
	struct http_fields *trailers = &x->on->c->g->answer.fields;
	bool short_of = x->framing == HTTP_BODY_LENGTH && x->left > 0;

	if (stream_is_over(s))
		stream_close(s, NET_RESET_CANCELLED);
	if (!x->st || x->ended) {
		free_if_over(x);
		return;
	}
	conn_mark(x->on->c);
	http_fields_clear(trailers);
	if (short_of || read_fields(fields, fields_n, trailers) < 0 ||
		end_response(x, trailers) < 0) {
		fail(x, NULL);
		return;
	}
	arm(x);
}

static void on_reset(struct stream *s, enum net_reset why)
{
	struct h2_exchange *x = owner(s);

	conn_mark(x->on->c);
	fail(x, why == NET_RESET_LIMIT ? &answer_limit : &answer_failed);
}

static void on_credit(struct stream *s)
{
	struct h2_exchange *x = owner(s);
	uint32_t under_way = NET_WINDOW - s->send_window;

	if (x->st && x->held > under_way)
		h2_consume(x->st, x->held - under_way);
	x->held = under_way;
	arm(x);
	conn_mark(x->on->c);
}

static const struct stream_ops stream_ops = {
	.interim = on_interim,
	.head = on_head,
	.data = on_data,
	.end = on_end,
	.reset = on_reset,
	.credit = on_credit,
};
