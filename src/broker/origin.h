/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which protocol origins speak over TLS (ALPN). */

#include "base/macro.h"
#include "policy/host.h"
#include <stdbool.h>
#include <stdint.h>

struct broker;
struct origin_probe;
struct stream;
struct upstream;

/* Zeroed but for `done` at first. */
struct origin_query {
	void (*done)(struct origin_query *q, bool h2); /* it may be freed there */
	struct origin_query *prev, *next;
	struct origin_probe *probe; /* NULL: nothing is under way */
};
/* Whether the origin at host and port speaks HTTP/2. 1: *ret_h2 says so now, as for one that policy
 * does not list for https on this port (false), or that was met before. 0: a connection is made,
 * which goes to the pool for the requests to come, and q->done() is called in a later iteration;
 * q is borrowed until then, or until origin_forget(). After some seconds, and after any failure,
 * the answer is HTTP/1.1. No request is sent, and no line is logged. */
_warn_unused_ int origin_protocol(struct broker *b, const struct host *host, uint16_t port,
	struct origin_query *q, bool *ret_h2);
void origin_forget(struct origin_query *q);
bool origin_speaks_h2(struct broker *b, const struct host *host, uint16_t port);
void origin_learn(struct broker *b, const struct host *host, uint16_t port, bool h2);
/* A probe's stream: u is its connection; or it closes. */
void origin_probed(struct stream *s, struct upstream *u);
void origin_probe_closed(struct stream *s);
void origins_free(struct broker *b);
