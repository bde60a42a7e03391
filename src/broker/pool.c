/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: connections whose last answer was complete and clean wait here for the next
 * request to the same scheme, host and port, newest first. An idle origin has nothing to send, so a
 * connection on which it sends something or closes is dropped (upstream_h1.c). A connection that
 * can serve several streams at once (HTTP/2) stays here while it has streams, too, and further
 * streams join it.
 *
 * While such a connection is made, requests to the same place wait for it instead of making one
 * each. The stream that makes it is the bucket's leader. If the connection turns out to be of
 * another kind, each of them goes its own way. */
#include "broker/pool.h"
#include "broker/broker_internal.h"
#include "broker/decide.h"
#include "broker/dial.h"
#include "broker/origin.h"
#include "broker/stream.h"
#include "broker/upstream.h"
#include "ipc/netchan.h"
#include "loop/loop.h"

#include <stddef.h>
#include <utlist.h>

/* A busy client has about this many to one origin at once. If fewer were kept, it would make
 * handshakes again and again. */
enum { IDLE_EACH = 32, IDLE_ALL = 64 };

struct pool_bucket {
	UT_hash_handle hh; /* in the order in which they were made */
	struct pool_key key;
	struct upstream *idle; /* newest first */
	unsigned n;
	struct upstream *shared;
	struct stream *leader, *waiters; /* the latter by ahead, behind */
	unsigned waiting, held;          /* held: a caller still uses it */
};

/* A connection to an address that only one rule allows must not serve requests under other
 * rules. */
struct pool_key pool_key(const struct stream *s)
{
	const struct allow_rule *rule = s->verdict.rule;
	bool special = rule && allow_rule_opens_addresses(rule);
	struct pool_key key;

	key.rule = special ? rule->number : 0;
	key.policy = special ? s->policy_number : 0;
	key.special = special;
	key.port = s->port;
	key.https = s->scheme == NET_HTTPS;
	key.host_n = (uint8_t)s->host.n;
	memcpy(key.host, s->host.text, s->host.n);
	return key;
}

/* There is no padding between the members (pool.h), so their bytes can be compared. */
static size_t key_bytes(const struct pool_key *key)
{
	_Static_assert(offsetof(struct pool_key, host) == 2 * sizeof(unsigned) + 5, "no padding");
	return offsetof(struct pool_key, host) + key->host_n;
}

static struct pool_bucket *bucket_find(const struct broker *b, const struct pool_key *key)
{
	struct pool_bucket *p;

	HASH_FIND(hh, b->pool.buckets, key, key_bytes(key), p);
	return p;
}

static void bucket_look(struct broker *b, struct pool_bucket *p)
{
	if (p->idle || p->shared || p->leader || p->waiters || p->held > 0)
		return;
	HASH_DEL(b->pool.buckets, p);
	free(p);
}

void pool_remove(struct upstream *u)
{
	struct pool_bucket *p = u->bucket;

	if (!p)
		return;
	u->bucket = NULL;
	if (u->shared) {
		DL_DELETE(p->shared, u);
		u->shared = false;
	} else {
		DL_DELETE(p->idle, u);
		u->broker->pool.n--;
		p->n--;
	}
	bucket_look(u->broker, p);
}

static struct pool_bucket *bucket_of(const struct stream *s)
{
	struct pool_key key = pool_key(s);

	return bucket_find(s->broker, &key);
}

/* Return whether u, which is in the pool, can serve s. */
static bool has_room(const struct upstream *u, const struct stream *s)
{
	if (u->ops->room)
		return !s->http1 && u->ops->room(u) > 0;
	return !u->shared && (s->http1 || !u->http1) && loop_now(u->broker->loop) < u->until;
}

struct upstream *pool_take(const struct stream *s)
{
	struct pool_bucket *p = bucket_of(s);
	struct upstream *u;

	if (!p)
		return NULL;
	DL_FOREACH (p->shared, u)
		if (has_room(u, s))
			return u;
	DL_FOREACH (p->idle, u)
		if (has_room(u, s)) {
			pool_remove(u);
			return u;
		}
	return NULL;
}

const struct upstream *pool_find_alike(const struct upstream *u)
{
	const struct pool_bucket *p = bucket_find(u->broker, &u->key);

	return !p ? NULL : p->shared ? p->shared : p->idle;
}

static struct pool_bucket *bucket_for(struct broker *b, const struct pool_key *key)
{
	struct pool_bucket *p = bucket_find(b, key);

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	memcpy(&p->key, key, key_bytes(key));
	HASH_ADD(hh, b->pool.buckets, key, key_bytes(key), p);
	if (!p->hh.tbl) {
		free(p);
		return NULL;
	}
	return p;
}

/* The first bucket is the oldest one. */
static void close_oldest(struct broker *b)
{
	struct pool_bucket *p = b->pool.buckets;

	while (p && !p->idle)
		p = p->hh.next;
	if (p)
		upstream_close(p->idle->prev);
}

void pool_put(struct upstream *u, uint64_t max_usec)
{
	struct broker *b = u->broker;
	struct pool_bucket *p;

	pool_remove(u);
	if (b->pool.n >= IDLE_ALL)
		close_oldest(b);
	p = u->policy == b->policy_number ? bucket_for(b, &u->key) : NULL;
	if (!p) {
		upstream_close(u);
		return;
	}
	if (p->n >= IDLE_EACH)
		upstream_close(p->idle->prev);
	u->until = loop_now(b->loop) + MIN(max_usec, POOL_IDLE_USEC);
	u->used = true; /* the origin may close it before the next request */
	u->bucket = p;
	DL_PREPEND(p->idle, u);
	p->n++;
	b->pool.n++;
}

void pool_share(struct upstream *u)
{
	struct pool_bucket *p;

	if (u->shared)
		return;
	pool_remove(u);
	p = bucket_for(u->broker, &u->key);
	if (!p)
		return; /* u serves only the streams that it has */
	u->bucket = p;
	u->shared = true;
	DL_APPEND(p->shared, u);
}

/* --- waiting for a connection --- */

bool pool_wait(struct stream *s)
{
	struct broker *b = s->broker;
	struct pool_bucket *p = bucket_of(s);
	struct pool_key key;

	if (s->scheme != NET_HTTPS || s->http1)
		return false;
	if (p && p->leader) {
		s->waits = p;
		p->waiting++;
		DL_APPEND2(p->waiters, s, ahead, behind);
		return true;
	}
	if (!s->probe && !origin_speaks_h2(b, &s->host, s->port))
		return false;
	key = pool_key(s);
	p = bucket_for(b, &key);
	if (p) {
		p->leader = s;
		s->leads = p;
	}
	return false;
}

static void wait_no_more(struct stream *s)
{
	struct pool_bucket *p = s->waits;

	DL_DELETE2(p->waiters, s, ahead, behind);
	p->waiting--;
	s->waits = NULL;
}

void pool_made(struct stream *s, struct upstream *u)
{
	struct pool_bucket *p = s->leads;
	struct stream *w;

	if (!p)
		return;
	s->leads = NULL;
	p->leader = NULL;
	p->held++;
	/* Streams that u has no room for become the leader, or wait again. */
	for (unsigned n = p->waiting; n > 0 && (w = p->waiters); n--) {
		wait_no_more(w);
		if (!u)
			dial_start(w);
		else if (!u->dead && has_room(u, w) && u->ops->room)
			upstream_attach(u, w);
		else
			request_go(w, false);
	}
	p->held--;
	bucket_look(s->broker, p);
}

void pool_leave(struct stream *s)
{
	if (s->waits)
		wait_no_more(s);
	pool_made(s, NULL);
}

void pool_sweep(struct broker *b)
{
	struct pool_bucket *p, *tmp;
	uint64_t now = loop_now(b->loop);

	HASH_ITER (hh, b->pool.buckets, p, tmp) {
		struct upstream *u = p->idle;

		/* If the last one is closed, the bucket may be freed, too. */
		while (u) {
			struct upstream *next = u->next;

			if (now > u->until)
				upstream_close(u);
			u = next;
		}
	}
}

void pool_drop_idle(struct broker *b)
{
	while (b->pool.n > 0)
		close_oldest(b);
}

void pool_free(struct broker *b)
{
	while (b->pool.buckets)
		upstream_close(
			b->pool.buckets->idle ? b->pool.buckets->idle : b->pool.buckets->shared);
}
