/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A cache of leaves. A leaf says how TLS connections go on: a certificate and a mode, which the
 * broker provides on demand by host, port and what the client's ALPN offers. The least recently
 * used leaves are dropped first. Connections wait here until the broker has answered. */

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
	struct tls_leaf *cert; /* NULL for a tunnel, and until the broker has answered */
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
	struct leaf *asked;  /* list: leaves that the broker has not answered yet */
	unsigned n;
	uint32_t next_request;
};

/* Get the leaf for c->host and c->port. Return 1 with *ret set (borrowed, valid until the next
 * call), 0 if entry_leaf_ready() will be called for c, or a negative value if there can be none. */
_warn_unused_ int leaf_get(struct conn *c, unsigned offer, const struct leaf **ret);
/* Stop c from waiting for a leaf. Does nothing if c does not wait. */
void leaf_wait_cancel(struct conn *c);
/* Handle the broker's answer. Return false if it does not match a request. */
bool leaf_on_cert(struct gateway *g, const struct net_cert *m);
/* Drop all answers, so that the next connection asks the broker again. */
void leaf_cache_forget(struct gateway *g);
void leaf_cache_done(struct gateway *g);
