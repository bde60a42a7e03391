/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: when a TLS connection shows which protocol an origin speaks, this is
 * remembered, for a limited number of origins, as is whether an origin says 100 (expect.c). It has
 * to be known before the room's side of a connection can agree on HTTP/2 (a call that needs
 * trailers gets nowhere over HTTP/1.1), so callers may ask for it. Then a connection is made
 * (INV-JUDGED-FIRST: only if a rule lists the host for https on that port; its addresses are judged
 * by that rule). It goes to the pool, where the next request finds it. The stream that makes it has
 * no request and is in no table. */
#include "broker/origin.h"
#include "base/clock.h"
#include "broker/broker_internal.h"
#include "broker/decide.h"
#include "broker/pool.h"
#include "broker/stream.h"
#include "broker/upstream.h"
#include "loop/loop.h"
#include "policy/allowlist.h"
#include "policy/decide.h"

#include <stdio.h>
#include <utlist.h>

enum { ORIGINS_MAX = 256, KEY_MAX = 8 + HOST_MAX };
#define PROBE_USEC (5 * USEC_PER_SEC)

struct origin {
	UT_hash_handle hh; /* in the order in which they were met */
	bool known, h2;    /* known: which protocol it speaks */
	bool mute;         /* says no 100 */
	char key[KEY_MAX];
};

struct origin_probe {
	struct origin_probe *next, *prev;
	struct broker *broker;
	struct stream *stream; /* NULL: it has ended, and origin_on_job() is about to run */
	struct origin_query *queries;
	struct loop_timer late;
	struct loop_job job;
	struct host host;
	uint16_t port;
};

static void set_key(const struct host *host, uint16_t port, char ret[KEY_MAX])
{
	snprintf(ret, KEY_MAX, "%u:%s", port, host->text);
}

static struct origin *find(struct broker *b, const struct host *host, uint16_t port)
{
	char key[KEY_MAX];
	struct origin *o;

	set_key(host, port, key);
	HASH_FIND_STR(b->origins, key, o);
	return o;
}

static void forget(struct broker *b, struct origin *o)
{
	HASH_DEL(b->origins, o);
	free(o);
}

bool origin_speaks_h2(struct broker *b, const struct host *host, uint16_t port)
{
	const struct origin *o = find(b, host, port);

	return o && o->h2;
}

/* Return NULL without memory: it will be found out again. */
static struct origin *find_or_add(struct broker *b, const struct host *host, uint16_t port)
{
	struct origin *o = find(b, host, port);

	if (o)
		return o;
	if (HASH_COUNT(b->origins) >= ORIGINS_MAX)
		forget(b, b->origins);
	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	set_key(host, port, o->key);
	HASH_ADD_STR(b->origins, key, o);
	if (o->hh.tbl)
		return o;
	free(o);
	return NULL;
}

void origin_learn(struct broker *b, const struct host *host, uint16_t port, bool h2)
{
	struct origin *o = find_or_add(b, host, port);

	if (!o)
		return;
	o->known = true;
	o->h2 = h2;
}

bool origin_is_mute(struct broker *b, const struct host *host, uint16_t port)
{
	const struct origin *o = find(b, host, port);

	return o && o->mute;
}

void origin_learn_mute(struct broker *b, const struct host *host, uint16_t port)
{
	struct origin *o = find_or_add(b, host, port);

	if (o)
		o->mute = true;
}

/* Return the rule that lists the host for https on this port, whatever its paths and methods, or
 * NULL. */
static const struct allow_rule *listed(struct broker *b, const struct host *host, uint16_t port)
{
	struct verdict v;
	struct policy_request req = {.scheme = POLICY_HTTPS,
		.host = host_str(host),
		.port = port,
		.method = STR("GET"),
		.target = STR("/")};

	if (policy_decide(b->policy, &req, &v) < 0)
		return NULL;
	return v.allow || v.reason >= POLICY_PATH ? v.rule : NULL;
}

static struct origin_probe *find_probe(struct broker *b, const struct host *host, uint16_t port)
{
	struct origin_probe *p;

	DL_FOREACH (b->probes, p)
		if (p->port == port && str_eq(host_str(&p->host), host_str(host)))
			return p;
	return NULL;
}

static void probe_free(struct origin_probe *p)
{
	DL_DELETE(p->broker->probes, p);
	loop_timer_clear(&p->late);
	free(p);
}

static void origin_on_job(struct loop_job *job)
{
	struct origin_probe *p = container_of(job, struct origin_probe, job);
	bool h2 = origin_speaks_h2(p->broker, &p->host, p->port);

	while (p->queries) {
		struct origin_query *q = p->queries;

		DL_DELETE(p->queries, q);
		q->probe = NULL;
		q->done(q, h2);
	}
	probe_free(p);
}

void origin_probe_closed(struct stream *s)
{
	struct origin_probe *p = s->probe;

	s->probe = NULL;
	p->stream = NULL;
	loop_timer_clear(&p->late);
	loop_defer(s->broker->loop, &p->job, origin_on_job);
}

void origin_probed(struct stream *s, struct upstream *u)
{
	s->up = NULL;
	if (!u->bucket)
		pool_put(u, POOL_IDLE_USEC);
	pool_made(s, u);
	stream_close(s);
}

static void origin_on_late(struct loop_timer *t)
{
	stream_close(container_of(t, struct origin_probe, late)->stream);
}

static struct origin_probe *probe_new(
	struct broker *b, const struct host *host, uint16_t port, const struct allow_rule *rule)
{
	struct origin_probe *p = calloc(1, sizeof(*p));
	struct stream *s = p ? stream_internal(b, host, port) : NULL;

	if (s)
		s->logged = true; /* no request is sent */
	if (!s || loop_timer_set(
			  b->loop, &p->late, clock_mono_usec() + PROBE_USEC, origin_on_late) < 0) {
		if (s)
			stream_close(s);
		free(p);
		return NULL;
	}
	p->broker = b;
	p->host = *host;
	p->port = port;
	p->stream = s;
	s->probe = p;
	stream_go(s, STREAM_READY);
	s->verdict.rule = rule;
	s->policy = allowlist_ref(b->policy);
	s->policy_number = b->policy_number;
	DL_APPEND(b->probes, p);
	return p;
}

void origin_close_probes(struct broker *b)
{
	struct origin_probe *p;

	DL_FOREACH (b->probes, p)
		if (p->stream) /* p is freed later */
			stream_close(p->stream);
}

int origin_protocol(struct broker *b, const struct host *host, uint16_t port,
	struct origin_query *q, bool *ret_h2)
{
	const struct origin *o = find(b, host, port);
	bool known = o && o->known;
	const struct allow_rule *rule = known ? NULL : listed(b, host, port);
	struct origin_probe *p = rule ? find_probe(b, host, port) : NULL;
	bool fresh = rule && !p;

	if (fresh)
		p = probe_new(b, host, port, rule);
	if (!p) {
		*ret_h2 = known && o->h2;
		return 1;
	}
	q->probe = p;
	DL_APPEND(p->queries, q);
	if (fresh)
		request_go(p->stream, false);
	return 0;
}

void origin_forget(struct origin_query *q)
{
	if (q->probe)
		DL_DELETE(q->probe->queries, q);
	q->probe = NULL;
}

void origins_free(struct broker *b)
{
	while (b->probes) {
		struct origin_probe *p = b->probes;

		if (p->stream) {
			p->stream->probe = NULL;
			stream_close(p->stream);
		}
		probe_free(p);
	}
	while (b->origins)
		forget(b, b->origins);
}
