/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How TLS connections go on: a certificate and a mode, which the broker gives on demand by host,
 * port and what the client's ALPN offers; the least recently used go first. A connection whose
 * answer is on its way waits here. */

#include "base/hash.h"
#include "ipc/netchan.h"
#include "tls/server.h"
#include <stdbool.h>

struct gateway;
struct conn;

struct leaf {
	UT_hash_handle hh;
	struct leaf *prev, *next;             /* recent */
	struct leaf *asked_prev, *asked_next; /* asked */
	struct conn *waiting;
	struct tls_leaf *cert; /* NULL for a tunnel, and while it is asked for */
	enum net_mode mode;
	bool known; /* the broker has answered */
	uint32_t request;
	uint64_t since;
	size_t key_n;
	char key[];
};

struct leaf_cache {
	struct leaf *by_key; /* hash */
	struct leaf *recent; /* list, the most recently used last */
	struct leaf *asked;  /* list: those that the broker owes us */
	unsigned n;
	uint32_t next_request;
};

/* For c->host and c->port. 1: *ret (borrowed, gone with the next call) is known. 0:
 * entry_leaf_ready() will be called for c. Negative: it cannot be had. */
_warn_unused_ int leaf_get(struct conn *c, unsigned offer, const struct leaf **ret);
/* c does not wait any more; fine if it does not. */
void leaf_wait_cancel(struct conn *c);
/* The broker's answer. False if it answers nothing that was asked. */
bool leaf_on_cert(struct gateway *g, const struct net_cert *m);
/* Whoever comes next asks again. */
void leaf_cache_forget(struct gateway *g);
void leaf_cache_done(struct gateway *g);
