/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/leaf.h"
#include "base/clock.h"
#include "gateway/conn.h"
#include "gateway/entry.h"
#include "gateway/state.h"

#include <errno.h>
#include <utlist.h>

/* Leaves live for days; one is asked for again long before its end. */
#define LEAF_AGE_MAX (24 * 3600 * USEC_PER_SEC)

struct leaf {
	UT_hash_handle hh;
	struct leaf *prev, *next;             /* recent */
	struct leaf *asked_prev, *asked_next; /* asked */
	struct conn *waiting;
	struct tls_leaf *cert; /* NULL: asked for */
	uint32_t request;
	uint64_t since;
	size_t host_n;
	char host[];
};

static void leaf_free(struct gateway *g, struct leaf *l)
{
	HASH_DEL(g->leaves.by_host, l);
	DL_DELETE(g->leaves.recent, l);
	g->leaves.n--;
	tls_leaf_free(l->cert);
	free(l);
}

/* The oldest that nobody waits for goes. */
static void make_room(struct gateway *g)
{
	struct leaf *l, *next;

	DL_FOREACH_SAFE (g->leaves.recent, l, next) {
		if (g->leaves.n < g->limits->leaves)
			return;
		if (l->cert)
			leaf_free(g, l);
	}
}

static struct leaf *leaf_new(struct gateway *g, struct str host)
{
	struct leaf *l = calloc(1, sizeof(*l) + host.n);

	if (!l)
		return NULL;
	memcpy(l->host, host.p, host.n);
	l->host_n = host.n;
	HASH_ADD_KEYPTR(hh, g->leaves.by_host, l->host, l->host_n, l);
	if (!l->hh.tbl) {
		free(l);
		return NULL;
	}
	DL_APPEND(g->leaves.recent, l);
	g->leaves.n++;
	return l;
}

static int ask(struct gateway *g, struct leaf *l)
{
	struct net_mint m = {.request = g->leaves.next_request++};

	m.host = str_make(l->host, l->host_n);
	l->request = m.request;
	DL_APPEND2(g->leaves.asked, l, asked_prev, asked_next);
	gateway_touch(g);
	return net_send_mint(&g->broker, &m);
}

int leaf_get(struct gateway *g, struct str host, struct conn *c, const struct tls_leaf **ret_cert)
{
	uint64_t now = loop_now(g->loop);
	struct leaf *l = NULL;
	int r;

	HASH_FIND(hh, g->leaves.by_host, host.p, host.n, l);
	if (l && l->cert && now - l->since > LEAF_AGE_MAX) {
		leaf_free(g, l);
		l = NULL;
	}
	if (l && l->cert) {
		DL_DELETE(g->leaves.recent, l);
		DL_APPEND(g->leaves.recent, l);
		*ret_cert = l->cert;
		return 1;
	}
	if (!l) {
		make_room(g);
		l = leaf_new(g, host);
		if (!l)
			return -ENOMEM;
		r = ask(g, l);
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
	if (m->ok && tls_leaf_new(g->tls, m->leaf, &l->cert, NULL) < 0)
		l->cert = NULL;
	while (l->waiting) {
		struct conn *c = l->waiting;

		leaf_wait_cancel(c);
		entry_leaf_ready(c, l->cert);
	}
	if (!l->cert) /* refused for now: the next connection asks again */
		leaf_free(g, l);
	return true;
}

void leaf_cache_done(struct gateway *g)
{
	struct leaf *l, *next;

	DL_FOREACH_SAFE (g->leaves.recent, l, next)
		leaf_free(g, l);
	g->leaves.asked = NULL;
}
