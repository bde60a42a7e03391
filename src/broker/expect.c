/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (RFC 9110 10.1.1): a client may ask whether its body will be taken before it
 * sends the body. The question goes on to the origin, and its 100, or its final answer, comes back.
 * Many origins never say 100. So the broker says it itself after a while, and at once to an origin
 * that is known not to: one that speaks HTTP/1.0, or that has taken a whole body without a 100. A
 * body that the broker has to know as a whole is asked for by the broker, and the origin gets it
 * without a question. */
#include "broker/expect.h"
#include "broker/broker_internal.h"
#include "broker/constants.h"
#include "broker/origin.h"
#include "broker/request_body.h"
#include "broker/stream.h"
#include "http/msg.h"
#include "ipc/netchan.h"

void expect_continue(struct stream *s)
{
	struct net_response m = {.stream = s->id, .status = 100};
	struct net_fields_out f;

	if (!s->expect.asked || s->expect.settled)
		return;
	s->expect.settled = true;
	loop_timer_clear(&s->expect.patience);
	f = net_begin_response(&s->broker->net, NET_INTERIM, &m);
	if (net_end_fields(&f) < 0)
		broker_fail(s->broker);
	broker_flush_later(s->broker);
}

static void on_patience(struct loop_timer *t)
{
	struct stream *s = container_of(t, struct stream, expect.patience);

	if (stream_has_answer(s))
		return;
	s->expect.said_here = true;
	expect_continue(s);
}

void expect_begin(struct stream *s)
{
	struct broker *b = s->broker;
	struct expectation *e = &s->expect;

	e->passed_on = e->asked && !e->settled && !origin_is_mute(b, &s->host, s->port);
	if (!e->passed_on || loop_timer_in(b->loop, &e->patience, EXPECT_USEC, on_patience) < 0)
		expect_continue(s);
}

void expect_body(struct stream *s)
{
	if (s->expect.settled)
		return;
	s->expect.settled = true;
	loop_timer_clear(&s->expect.patience);
}

void expect_interim(struct stream *s)
{
	s->expect.heard = true;
	if (s->expect.passed_on)
		expect_continue(s);
}

void expect_answered(struct stream *s, const struct http_head *h)
{
	struct expectation *e = &s->expect;
	bool whole = request_body_complete(s) && request_body(s).n == 0;

	loop_timer_clear(&e->patience);
	if (e->passed_on && (h->version == HTTP_10 || (e->said_here && !e->heard && whole)))
		origin_learn_mute(s->broker, &s->host, s->port);
}

void expect_done(struct stream *s)
{
	loop_timer_clear(&s->expect.patience);
}
