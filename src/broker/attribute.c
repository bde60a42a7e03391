/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the log says which process made a request that is refused. This is done for
 * refusals only, because it takes a search through the room's processes. The supervisor does the
 * search. A refused request, or an event of the gateway, waits a short time for its answer. Only so
 * many a second are looked up; the others, and those for which no process is found, are logged
 * without one. If whoever captured the connection has said whose it is (ipc/capture.h), nobody is
 * asked. */
#include "broker/attribute.h"
#include "base/clock.h"
#include "broker/broker_internal.h"
#include "broker/decide.h"
#include "broker/log.h"
#include "broker/refuse.h"
#include "broker/stream.h"
#include "broker/watch.h"
#include "ipc/helper.h"
#include "ipc/netchan.h"
#include "loop/loop.h"

#include <utlist.h>

enum { ASKED_A_SECOND = 20, WAITING_MAX = 32, EVENT_MAX = 64 * 1024 };
#define PATIENCE_USEC (100 * USEC_PER_MSEC)

struct question {
	struct question *prev, *next;
	struct broker *broker;
	uint32_t number;
	uint32_t stream; /* number of the one that waits; 0: the event waits */
	struct loop_timer late;
	size_t event_n;
	char event[]; /* payload of a NET_EVENT */
};

static void question_free(struct question *q)
{
	loop_timer_clear(&q->late);
	DL_DELETE(q->broker->attribution.waiting, q);
	q->broker->attribution.n--;
	free(q);
}

void attribute_free(struct broker *b)
{
	while (b->attribution.waiting)
		question_free(b->attribution.waiting);
}

/* --- going on --- */

static void go_on_stream(struct question *q, const struct net_owner *owner)
{
	struct broker *b = q->broker;
	struct policy_request req;
	struct stream *s;

	HASH_FIND(hh, b->streams.open, &q->stream, sizeof(q->stream), s);
	question_free(q);
	if (!s || s->state != STREAM_ASKING)
		return;
	b->lines.owner = owner;
	req = decide_what(s);
	if (!watch_hold(s))
		refuse_policy(s, &req);
	b->lines.owner = NULL;
}

static void log_event_of(struct broker *b, const struct net_event *e, const struct net_owner *owner)
{
	b->lines.owner = owner;
	log_gateway_event(b, e);
	b->lines.owner = NULL;
}

static void go_on_event(struct question *q, const struct net_owner *owner)
{
	struct net_event e;

	if (net_get_event(str_make(q->event, q->event_n), &e))
		log_event_of(q->broker, &e, owner);
	question_free(q);
}

static void attribute_go_on(struct question *q, const struct net_owner *owner)
{
	broker_flush_later(q->broker);
	if (q->stream)
		go_on_stream(q, owner);
	else
		go_on_event(q, owner);
}

static void attribute_on_late(struct loop_timer *t)
{
	attribute_go_on(container_of(t, struct question, late), NULL);
}

bool attribute_answer(struct broker *b, struct str payload)
{
	struct helper_owner m;
	struct question *q;

	if (!helper_get_owner(payload, &m))
		return false;
	DL_FOREACH (b->attribution.waiting, q)
		if (q->number == m.number)
			break;
	if (!q) /* the answer came too late */
		return true;
	attribute_go_on(q, m.owner.pid ? &m.owner : NULL);
	return true;
}

/* --- asking --- */

static bool may_ask(struct broker *b)
{
	uint64_t second = loop_now(b->loop) / USEC_PER_SEC;

	if (second != b->attribution.second)
		b->attribution.asked = 0;
	b->attribution.second = second;
	return b->attribution.n < WAITING_MAX && b->attribution.asked < ASKED_A_SECOND;
}

static bool attribute_ask(
	struct broker *b, const struct net_client *client, uint32_t stream, struct str event)
{
	struct question *q;

	if (client->family == 0 || event.n > EVENT_MAX || !may_ask(b))
		return false;
	q = calloc(1, sizeof(*q) + event.n);
	if (!q)
		return false;
	q->broker = b;
	q->stream = stream;
	q->number = b->attribution.next++;
	q->event_n = event.n;
	memcpy(q->event, event.n ? event.p : "", event.n);
	DL_APPEND(b->attribution.waiting, q);
	b->attribution.n++;
	b->attribution.asked++;
	if (loop_timer_set(
		    b->loop, &q->late, clock_mono_usec() + PATIENCE_USEC, attribute_on_late) == 0 &&
		helper_send_who(&b->supervisor,
			&(struct helper_who){.number = q->number, .client = *client}) == 0 &&
		broker_flush_supervisor(b) == 0)
		return true;
	question_free(q);
	return false;
}

bool attribute_request(struct stream *s)
{
	return !s->broker->lines.owner && attribute_ask(s->broker, &s->client, s->id, STR_NULL);
}

static bool is_a_refusal(enum net_event_kind kind)
{
	return kind != NET_EVENT_DNS && kind != NET_EVENT_LIMIT;
}

bool attribute_event(struct broker *b, const struct net_event *e, struct str payload)
{
	if (!is_a_refusal(e->kind))
		return false;
	if (e->owner.pid == 0)
		return attribute_ask(b, &e->client, 0, payload);
	log_event_of(b, e, &e->owner);
	return true;
}
