/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Connections to origins that can serve a request now, and waiting for one. */

#include "policy/host.h"

#include <stdbool.h>
#include <stdint.h>

struct broker;
struct pool_bucket;
struct stream;
struct upstream;

/* Requests with one key may share connections. Looked up by its bytes, as many as host_n says. */
struct pool_key {
	unsigned rule, policy; /* of the rule that alone opens up the address; 0: none is needed */
	uint16_t port;
	bool https;
	uint8_t host_n;
	char host[HOST_MAX];
};

struct pool {
	struct pool_bucket *buckets;
	unsigned n; /* of connections that serve nobody */
};

struct pool_key pool_key(const struct stream *s);
/* A connection for the stream, idle or one that several share, or NULL. */
struct upstream *pool_take(const struct stream *s);
/* s may wait for a connection that another stream makes (true): upstream_attach() or dial_start()
 * follows. Else it makes one itself, and others may wait for that. */
bool pool_wait(struct stream *s);
/* s has made it (u), or has not (NULL): whoever waits goes on. */
void pool_made(struct stream *s, struct upstream *u);
/* s waits no more, and nobody waits for it. */
void pool_leave(struct stream *s);
/* Keeps u, which serves nobody, or closes it if there are enough. */
void pool_put(struct upstream *u);
/* Another connection to where u leads, or NULL. */
const struct upstream *pool_find_alike(const struct upstream *u);
/* Keeps u, which serves some streams and can serve more. */
void pool_share(struct upstream *u);
/* u leaves the pool. */
void pool_remove(struct upstream *u);
void pool_sweep(struct broker *b);
/* Closes those that serve nobody. */
void pool_drop_idle(struct broker *b);
void pool_free(struct broker *b);
