/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Certificates by host, minted by the broker on demand; the least recently used go first. A
 * connection whose certificate is on its way waits here. */

#include "ipc/netchan.h"
#include "tls/server.h"
#include <stdbool.h>

struct gateway;
struct conn;
struct leaf;

struct leaf_cache {
	struct leaf *by_host; /* hash */
	struct leaf *recent;  /* list, the most recently used last */
	struct leaf *asked;   /* list: those that the broker owes us */
	unsigned n;
	uint32_t next_request;
};

/* 1: *ret_cert (borrowed) is there. 0: entry_leaf_ready() will be called for c. Negative: it cannot
 * be had. */
_warn_unused_ int leaf_get(
	struct gateway *g, struct str host, struct conn *c, const struct tls_leaf **ret_cert);
/* c does not wait any more; fine where it does not. */
void leaf_wait_cancel(struct conn *c);
/* The broker's answer. False where it answers nothing that was asked. */
bool leaf_on_cert(struct gateway *g, const struct net_cert *m);
void leaf_cache_done(struct gateway *g);
