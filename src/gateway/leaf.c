/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/leaf.h"
#include "base/clock.h"
#include "gateway/conn.h"
#include "gateway/entry.h"
#include "gateway/state.h"

#include <errno.h>
#include <utlist.h>

/* Certificates are valid for days, but what an origin speaks may change. If it did not speak
 * HTTP/2, or could not be asked, ask again sooner. */
#define AGE_MAX (10 * 60 * USEC_PER_SEC)
#define AGE_MAX_LESS (60 * USEC_PER_SEC)

/* Port, offer, host. */
struct key {
	char text[3 + HOST_MAX];
	size_t n;
};

static struct key key_of(const struct conn *c, unsigned offer)
{
	struct str host = host_str(&c->host);
	struct key k = {.n = 3 + host.n};

	k.text[0] = (char)(c->port >> 8);
	k.text[1] = (char)(c->port & 0xff);
	k.text[2] = (char)offer;
	memcpy(k.text + 3, host.p, host.n);
	return k;
}

static void leaf_free(struct gateway *g, struct leaf *l)
{
	HASH_DEL(g->leaves.by_key, l);
	DL_DELETE(g->leaves.recent, l);
	g->leaves.n--;
	tls_leaf_free(l->cert);
	free(l);
}

/* Drop the least recently used leaf that the broker has answered. Return false if the cache is
 * still full, because the broker has answered none. */
static bool make_room(struct gateway *g)
{
	struct leaf *l, *next;

	DL_FOREACH_SAFE (g->leaves.recent, l, next) {
		if (g->leaves.n < g->limits->leaves)
			break;
		if (l->known)
			leaf_free(g, l);
	}
	return g->leaves.n < g->limits->leaves;
}

static struct leaf *leaf_new(struct gateway *g, const struct key *k)
{
	struct leaf *l = calloc(1, sizeof(*l) + k->n);

	if (!l)
		return NULL;
	memcpy(l->key, k->text, k->n);
	l->key_n = k->n;
	HASH_ADD_KEYPTR(hh, g->leaves.by_key, l->key, l->key_n, l);
	if (!l->hh.tbl) {
		free(l);
		return NULL;
	}
	DL_APPEND(g->leaves.recent, l);
	g->leaves.n++;
	return l;
}

static int ask(const struct conn *c, unsigned offer, struct leaf *l)
{
	struct gateway *g = c->g;
	struct net_mint m = {
		.request = g->leaves.next_request++,
		.host = host_str(&c->host),
		.port = c->port,
		.h2 = offer & TLS_OFFER_H2,
		.http1 = offer & TLS_OFFER_HTTP1,
	};

	l->request = m.request;
	DL_APPEND2(g->leaves.asked, l, asked_prev, asked_next);
	gateway_touch(g);
	return net_send_mint(&g->broker, &m);
}

static bool is_old(const struct gateway *g, const struct leaf *l)
{
	bool less = l->mode == NET_MODE_HTTP1 && (l->key[2] & TLS_OFFER_H2);

	return loop_now(g->loop) - l->since > (less ? AGE_MAX_LESS : AGE_MAX);
}

int leaf_get(struct conn *c, unsigned offer, const struct leaf **ret)
{
	struct key k = key_of(c, offer);
	struct gateway *g = c->g;
	struct leaf *l = NULL;
	int r;

	HASH_FIND(hh, g->leaves.by_key, k.text, k.n, l);
	if (l && l->known && is_old(g, l)) {
		leaf_free(g, l);
		l = NULL;
	}
	if (l && l->known) {
		DL_DELETE(g->leaves.recent, l);
		DL_APPEND(g->leaves.recent, l);
		*ret = l;
		return 1;
	}
	if (!l) {
		if (!make_room(g))
			return -EBUSY;
		l = leaf_new(g, &k);
		if (!l)
			return -ENOMEM;
		r = ask(c, offer, l);
		if (r < 0) {
			gateway_sent(g, r);
			return r;
		}
	}
	c->leaf = l;
	DL_APPEND2(l->waiting, c, wait_prev, wait_next);
	return 0;
}

void leaf_wait_cancel(struct conn *c)
{
	if (c->leaf)
		DL_DELETE2(c->leaf->waiting, c, wait_prev, wait_next);
	c->leaf = NULL;
}

bool leaf_on_cert(struct gateway *g, const struct net_cert *m)
{
	struct leaf *l;

	DL_FOREACH2(g->leaves.asked, l, asked_next)
	{
		if (l->request == m->request)
			break;
	}
	if (!l)
		return false;
	DL_DELETE2(g->leaves.asked, l, asked_prev, asked_next);
	l->since = loop_now(g->loop);
	l->mode = m->mode;
	if (m->ok && m->mode != NET_MODE_TUNNEL)
		l->cert = tls_leaf_new(g->tls, m->leaf);
	l->known = m->ok && (m->mode == NET_MODE_TUNNEL || l->cert);
	while (l->waiting) {
		struct conn *c = l->waiting;

		leaf_wait_cancel(c);
		entry_leaf_ready(c, l->known ? l : NULL);
	}
	if (!l->known) /* refused for now: the next connection asks again */
		leaf_free(g, l);
	return true;
}

void leaf_cache_forget(struct gateway *g)
{
	struct leaf *l, *next;

	DL_FOREACH_SAFE (g->leaves.recent, l, next)
		if (l->known)
			leaf_free(g, l);
}

void leaf_cache_done(struct gateway *g)
{
	struct leaf *l, *next;

	DL_FOREACH_SAFE (g->leaves.recent, l, next)
		leaf_free(g, l);
	g->leaves.asked = NULL;
}
