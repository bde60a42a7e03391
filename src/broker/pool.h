/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Connections to origins that can serve a request now, and streams that wait for one. */

#include "base/clock.h"
#include "policy/host.h"

#include <stdbool.h>
#include <stdint.h>

struct broker;
struct pool_bucket;
struct stream;
struct upstream;

/* Requests with the same key may share connections. A key is looked up by its bytes, up to host_n
 * bytes of host. */
struct pool_key {
	unsigned rule, policy; /* if special: of the only rule that may allow the address */
	uint16_t port;
	bool https, special;
	uint8_t host_n;
	char host[HOST_MAX];
};

struct pool {
	struct pool_bucket *buckets;
	unsigned n; /* idle connections */
};

#define POOL_IDLE_USEC (60 * USEC_PER_SEC) /* if the origin does not say */

struct pool_key pool_key(const struct stream *s);
/* Return an idle or shared connection for the stream, or NULL. */
struct upstream *pool_take(const struct stream *s);
/* Return true if s waits for a connection that another stream makes; upstream_attach(),
 * dial_start() or request_go() follows. Otherwise s has to make one itself, and other streams may
 * wait for that. */
bool pool_wait(struct stream *s);
/* s has made its connection u, or has failed (NULL). The streams that wait for it go on. */
void pool_made(struct stream *s, struct upstream *u);
/* Stop s from waiting, and let the streams that wait for s go on without it. */
void pool_leave(struct stream *s);
/* Keep u, which is idle, and use it for at most so long. It is closed if the policy has been
 * replaced since it was made; if there are too many, an older one is closed. */
void pool_put(struct upstream *u, uint64_t max_usec);
/* Return another connection with the same key as u, or NULL. */
const struct upstream *pool_find_alike(const struct upstream *u);
/* Keep u, which serves some streams and can serve more. */
void pool_share(struct upstream *u);
void pool_remove(struct upstream *u);
void pool_sweep(struct broker *b);
/* Close all idle connections. */
void pool_drop_idle(struct broker *b);
void pool_free(struct broker *b);
