/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: one of the room's streams on an HTTP/2 connection to an origin. Request
 * bodies are pulled out of the streams' own memory as the origin's windows allow. Answer bytes are
 * passed on at once as far as the gateway takes them, and only then may the origin send as much
 * again. What the gateway does not take yet is held, at most one window per stream. While the total
 * of held bytes is small, they do not count against the connection's window, so that stalled
 * streams do not stop the others.
 *
 * An origin sends at most a window in a round trip, so a fixed one makes distance slow. The window
 * of a stream is doubled if the room has taken more than half of it in a round trip, and has all
 * that came. Credit that was given cannot be taken back, so what all windows have grown by is
 * limited, and may be held in addition: a wide stream that stalls takes nothing from the others.
 *
 * A stream that the origin has not processed (RFC 9113 8.7: GOAWAY, REFUSED_STREAM) is sent again
 * on another connection. This may happen a few times, as a busy origin may refuse that one, too. */
#include "broker/broker_internal.h"
#include "broker/decide.h"
#include "broker/dial.h"
#include "broker/pool.h"
#include "broker/refuse.h"
#include "broker/request_body.h"
#include "broker/response.h"
#include "broker/stream.h"
#include "broker/upstream.h"
#include "broker/upstream_h2.h"
#include "ipc/chan.h"
#include "ipc/netchan.h"
#include "loop/loop.h"

#include <errno.h>
#include <stdio.h>
#include <utlist.h>

enum {
	HELD_MAX = 32 * 1024 * 1024, /* of all connections, beside what windows have grown by */
	AHEAD_MAX = 64 * 1024 * 1024,
	WINDOW_MAX = 32 * 1024 * 1024,
	REFUSED_MAX = 5, /* how often a request is sent again */
};

/* Whoever is slower to acknowledge our settings is not far away, but busy. */
#define ROUND_TRIP_MAX (2 * USEC_PER_SEC)

size_t legs_held_max(const struct broker *b)
{
	return HELD_MAX + b->bounds.ahead;
}

bool leg_has_sent(const struct leg *l)
{
	return l->request_ended && request_body(l->s).n == 0;
}

/* Fewer bytes are held: connections that were held up go on, even if nothing happens on them. */
static void held_less(struct broker *b, size_t n)
{
	b->bounds.held -= n;
	if (!b->bounds.held_up || b->bounds.held > legs_held_max(b) - H2_ORIGIN_STREAM_WINDOW)
		return;
	b->bounds.held_up = false;
	b->bounds.full = true; /* flush() then resumes all streams */
	broker_flush_later(b);
}

static void unhold(struct leg *l, size_t n)
{
	buf_consume(&l->held, n);
	l->o->held -= n;
	held_less(l->o->u->broker, n);
}

void leg_free(struct leg *l)
{
	struct h2_origin *o = l->o;

	unhold(l, buf_len(&l->held));
	o->u->broker->bounds.ahead -= l->window - H2_ORIGIN_STREAM_WINDOW;
	l->s->up = NULL;
	l->s->leg = NULL;
	DL_DELETE(o->legs, l);
	if (l->s->secret)
		buf_done_wiped(&l->held);
	else
		buf_done(&l->held);
	http_fields_done(&l->trailers);
	free(l);
	o->u->used = true;
	upstream_work_later(o->u);
}

bool leg_take_back(struct leg *l, unsigned most)
{
	struct stream *s = l->s;

	if (l->started || !s->keep || s->retries >= most)
		return false;
	s->retries++;
	leg_free(l);
	request_body_rewind(s);
	return true;
}

/* --- the answer --- */

static void upstream_h2_leg_finish(struct leg *l, struct http_fields *trailers)
{
	struct stream *s = l->s;
	bool sent = leg_has_sent(l);

	if (!response_end(s, trailers))
		return;
	request_body_answered(s, true);
	if (l->st && sent)
		h2_stream_set_user(l->st, NULL);
	else if (l->st)
		h2_reset(l->st, H2_NO_ERROR);
	leg_free(l);
	stream_finish(s);
}

/* The room has all that came. Let the origin send more ahead if that was what it waited for. */
static void widen(struct leg *l)
{
	struct bounds *b = &l->o->u->broker->bounds;
	uint64_t passed = loop_now(l->o->u->broker->loop) - l->since;
	uint64_t round_trip = l->o->round_trip;

	if (round_trip == 0 || passed < round_trip)
		return;
	if (l->taken * round_trip / passed > l->window / 2 && l->window <= WINDOW_MAX / 2 &&
		b->ahead + l->window <= AHEAD_MAX && h2_widen(l->st, 2 * l->window) == 0) {
		b->ahead += l->window;
		l->window *= 2;
	}
	l->since += passed;
	l->taken = 0;
}

/* Pass on what the gateway takes. Return how much that was, or -1 if the exchange is over. */
static ssize_t pass_on(struct leg *l, struct str bytes)
{
	size_t done = 0, n;

	while ((n = MIN(response_room(l->s), bytes.n - done)) > 0) {
		struct h2_stream *st = l->st;

		if (!response_data(l->s, str_make(bytes.p + done, n)))
			return -1;
		if (st)
			h2_consume(st, n);
		l->taken += n;
		done += n;
	}
	if (done == bytes.n && l->st && !l->response_ended)
		widen(l);
	return (ssize_t)done;
}

static void upstream_h2_leg_on_data(void *arg, struct h2_stream *st, struct str bytes)
{
	struct h2_origin *o = arg;
	struct leg *l = h2_stream_user(st);
	ssize_t n = 0;

	if (!l)
		return;
	l->s->active = loop_now(o->u->broker->loop);
	if (buf_len(&l->held) == 0)
		n = pass_on(l, bytes);
	if (n < 0 || (size_t)n == bytes.n)
		return;
	bytes = str_from_index(bytes, (size_t)n);
	if (buf_add_str(&l->held, bytes) < 0) {
		refuse_upstream(l->s, 503, "out_of_memory", "no memory for an answer");
		return;
	}
	o->held += bytes.n;
	o->u->broker->bounds.held += bytes.n;
	if (o->u->broker->bounds.held <= legs_held_max(o->u->broker))
		h2_consume_ahead(st, bytes.n);
}

void leg_drain(struct leg *l)
{
	ssize_t n = pass_on(l, buf_str(&l->held));

	if (n < 0)
		return;
	unhold(l, (size_t)n);
	if (buf_len(&l->held) > 0)
		return;
	if (l->response_ended)
		upstream_h2_leg_finish(l, &l->trailers);
	else
		buf_done(&l->held);
}

static void on_head(void *arg, struct h2_stream *st, struct http_head *h)
{
	struct h2_origin *o = arg;
	struct leg *l = h2_stream_user(st);

	if (!l)
		return;
	l->s->active = loop_now(o->u->broker->loop);
	if (!l->started) {
		l->started = true;
		l->since = l->s->active;
		request_body_commit(l->s);
	}
	if (h->status < 200)
		(void)!response_interim(l->s, h);
	else
		(void)!response_head(l->s, h);
}

static void upstream_h2_leg_on_end(void *arg, struct h2_stream *st, struct http_fields *trailers)
{
	struct leg *l = h2_stream_user(st);

	if (!l)
		return;
	if (buf_len(&l->held) == 0) {
		upstream_h2_leg_finish(l, trailers);
		return;
	}
	l->response_ended = true;
	if (http_fields_copy(&l->trailers, trailers) < 0)
		refuse_upstream(l->s, 503, "out_of_memory", "no memory for an answer");
}

static unsigned most_retries(enum h2_error error)
{
	return error == H2_REFUSED_STREAM ? REFUSED_MAX : error == H2_HTTP_1_1_REQUIRED ? 1 : 0;
}

/* The stream was reset by the origin, or by us because of what it sent. */
static void on_closed(void *arg, struct h2_stream *st, enum h2_error error)
{
	struct h2_origin *o = arg;
	struct leg *l = h2_stream_user(st);
	struct stream *s;
	char why[NOTE_MAX];

	if (!l)
		return;
	s = l->s;
	if (l->response_ended) { /* held bytes are still passed on */
		l->st = NULL;
		return;
	}
	if (error == H2_HTTP_1_1_REQUIRED && s->retries == 0)
		s->http1 = true;
	if (leg_take_back(l, most_retries(error))) {
		request_go(s, true);
		return;
	}
	leg_free(l);
	if (error == H2_PROTOCOL_ERROR && o->malformed) {
		response_malformed(s, o->malformed);
		o->malformed = NULL;
		return;
	}
	if (error == H2_CANCEL && stream_has_answer(s)) {
		stream_note(s, "%s cancelled its answer", s->host.text);
		stream_reset(s, NET_RESET_CANCELLED);
		return;
	}
	snprintf(why, sizeof(why), "the stream was reset (%s)", h2_error_name(error));
	response_lost(s, why);
}

static void on_malformed(void *arg, const struct http_head *head, const char *why)
{
	struct h2_origin *o = arg;

	o->malformed = why;
}

static void on_acknowledged(void *arg)
{
	struct h2_origin *o = arg;

	o->round_trip = MIN(loop_now(o->u->broker->loop) - o->began, ROUND_TRIP_MAX);
}

static void on_goaway(void *arg, enum h2_error error)
{
	struct h2_origin *o = arg;

	o->going = true;
}

/* --- the request --- */

static struct str on_body(void *arg, struct h2_stream *st)
{
	const struct leg *l = h2_stream_user(st);

	return l ? request_body(l->s) : STR_NULL;
}

static void on_sent(void *arg, struct h2_stream *st, size_t n)
{
	struct leg *l = h2_stream_user(st);

	request_body_taken(l->s, n);
}

void leg_send(struct upstream *u, struct stream *s)
{
	struct leg *l = s->leg;

	if (l->request_ended || !l->st)
		return;
	if (request_body_complete(s)) {
		l->request_ended = true;
		if (h2_end(l->st, &s->trailers) < 0) {
			refuse_upstream(
				s, 503, "out_of_memory", "no memory for the request's body");
			return;
		}
	} else {
		h2_wake(l->st);
	}
	upstream_work_later(u);
}

static int upstream_h2_leg_send_head(struct h2_origin *o, struct leg *l)
{
	struct stream *s = l->s;
	bool ends = request_body_complete(s) && request_body(s).n == 0 && s->trailers.n == 0;
	unsigned flags = (ends ? H2_END : 0) | (s->te_trailers ? H2_TE_TRAILERS : 0) |
			 (s->secret ? H2_SECRET : 0) | (s->expect.passed_on ? H2_EXPECT : 0);
	int r = h2_request(o->h2, &s->head, flags, l, &l->st);

	if (r == 0) {
		l->request_ended = ends;
		o->secret |= s->secret;
	}
	return r;
}

void leg_begin(struct upstream *u, struct stream *s)
{
	struct h2_origin *o = u->protocol;
	struct leg *l = calloc(1, sizeof(*l));
	int r = -ENOMEM;

	if (l) {
		l->o = o;
		l->s = s;
		l->window = H2_ORIGIN_STREAM_WINDOW;
		l->held = BUF_INIT(WINDOW_MAX + SCRATCH);
		l->trailers = HTTP_FIELDS_INIT;
		r = upstream_h2_leg_send_head(o, l);
	}
	if (r < 0) {
		free(l);
		s->up = NULL;
		if (r == -EAGAIN) /* the connection is about to close */
			dial_start(s);
		else if (r == -EINVAL)
			refuse_upstream(s, 502, "request_not_sent",
				"the request has a field that cannot be sent");
		else
			refuse_upstream(s, 503, "out_of_memory", "no memory for a request");
		upstream_work_later(u);
		return;
	}
	DL_APPEND(o->legs, l);
	if (o->asked == 0)
		o->asked = loop_now(u->broker->loop);
	s->leg = l;
	s->keep = s->retries < REFUSED_MAX; /* until the origin has looked at it */
	pool_share(u);
	leg_send(u, s);
	upstream_work_later(u);
}

void leg_detach(struct upstream *u, struct stream *s)
{
	struct leg *l = s->leg;

	if (l->st)
		h2_reset(l->st, H2_CANCEL);
	leg_free(l);
}

const struct h2_handlers leg_handlers = {.head = on_head,
	.data = upstream_h2_leg_on_data,
	.end = upstream_h2_leg_on_end,
	.closed = on_closed,
	.body = on_body,
	.sent = on_sent,
	.malformed = on_malformed,
	.goaway = on_goaway,
	.acknowledged = on_acknowledged};
