/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: connections that have answered completely and cleanly wait here for the next
 * request to the same scheme, host and port, newest first. An idle origin has nothing to say: one
 * that speaks or closes is dropped (upstream.c). */
#include "broker/state.h"

#include <stdio.h>
#include <utlist.h>

/* As many to one origin as a busy client has at once: each one less is a handshake again and again.
 */
enum { IDLE_EACH = 32, IDLE_ALL = 64 };
#define IDLE_USEC (60 * USEC_PER_SEC)

struct pool_bucket {
	UT_hash_handle hh; /* in the order in which they were made */
	char key[POOL_KEY_MAX];
	struct upstream *idle; /* newest first */
	unsigned n;
};

/* A connection to an address that only one rule opens up is not for requests by other rules. */
void pool_key(const struct stream *s, char ret[POOL_KEY_MAX])
{
	const struct allow_rule *rule = s->verdict.rule;
	bool special = rule && (rule->allow_private || rule->n_private_ranges > 0);

	snprintf(ret, POOL_KEY_MAX, "%c%u:%s/", s->scheme == NET_HTTPS ? 's' : 'p', s->port,
		s->host.text);
	if (special)
		snprintf(ret + strlen(ret), POOL_KEY_MAX - strlen(ret), "%s%u.%u",
			rule->is_domain ? "d" : "u", rule->index, s->policy_number);
}

static void bucket_free(struct broker *b, struct pool_bucket *p)
{
	HASH_DEL(b->pool, p);
	free(p);
}

void pool_remove(struct upstream *u)
{
	struct pool_bucket *p = u->bucket;

	if (!p)
		return;
	DL_DELETE(p->idle, u);
	u->bucket = NULL;
	u->broker->pool_n--;
	if (--p->n == 0)
		bucket_free(u->broker, p);
}

struct upstream *pool_take(const struct stream *s)
{
	char key[POOL_KEY_MAX];
	struct pool_bucket *p;
	struct upstream *u;

	pool_key(s, key);
	HASH_FIND_STR(s->broker->pool, key, p);
	if (!p)
		return NULL;
	u = p->idle;
	pool_remove(u);
	return u;
}

static struct pool_bucket *bucket_for(struct broker *b, const char *key)
{
	struct pool_bucket *p;

	HASH_FIND_STR(b->pool, key, p);
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	memcpy(p->key, key, sizeof(p->key));
	HASH_ADD_STR(b->pool, key, p);
	if (!p->hh.tbl) {
		free(p);
		return NULL;
	}
	return p;
}

void pool_put(struct upstream *u)
{
	struct broker *b = u->broker;
	struct pool_bucket *p;

	/* The first bucket is the one that was made longest ago. */
	if (b->pool_n >= IDLE_ALL)
		upstream_close(b->pool->idle->prev);
	p = bucket_for(b, u->key);
	if (!p) {
		upstream_close(u);
		return;
	}
	if (p->n >= IDLE_EACH)
		upstream_close(p->idle->prev);
	u->idle_at = loop_now(b->loop);
	u->bucket = p;
	DL_PREPEND(p->idle, u);
	p->n++;
	b->pool_n++;
}

void pool_sweep(struct broker *b)
{
	struct pool_bucket *p, *tmp;
	uint64_t now = loop_now(b->loop);

	HASH_ITER (hh, b->pool, p, tmp) {
		unsigned n = p->n;

		/* The oldest are at the end; with the last one the bucket goes, too. */
		while (n-- > 0 && now - p->idle->prev->idle_at > IDLE_USEC)
			upstream_close(p->idle->prev);
	}
}

void pool_drop_idle(struct broker *b)
{
	while (b->pool)
		upstream_close(b->pool->idle);
}

void pool_free(struct broker *b)
{
	while (b->pool)
		upstream_close(b->pool->idle);
}
