/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What is known of origins: which protocol they speak over TLS (ALPN), and whether they say 100. */

#include "base/macro.h"
#include "policy/host.h"
#include <stdbool.h>
#include <stdint.h>

struct broker;
struct origin_probe;
struct stream;
struct upstream;

/* Zero it first, except for `done`. */
struct origin_query {
	void (*done)(struct origin_query *q, bool h2); /* it may be freed there */
	struct origin_query *prev, *next;
	struct origin_probe *probe; /* NULL: nothing is under way */
};
/* Find out whether the origin at host and port speaks HTTP/2. Return 1 if *ret_h2 is set at once:
 * the origin is known, or policy does not list it for https on this port (false). Return 0 if a
 * connection is made to find out. It goes to the pool for later requests, and q->done() is called
 * in a later iteration; q is borrowed until then, or until origin_forget(). After some seconds, and
 * after any failure, the answer is HTTP/1.1. No request is sent, and no line is logged. */
_warn_unused_ int origin_protocol(struct broker *b, const struct host *host, uint16_t port,
	struct origin_query *q, bool *ret_h2);
void origin_forget(struct origin_query *q);
bool origin_speaks_h2(struct broker *b, const struct host *host, uint16_t port);
void origin_learn(struct broker *b, const struct host *host, uint16_t port, bool h2);
/* Whether it is known to send no 100 (expect.c). */
bool origin_is_mute(struct broker *b, const struct host *host, uint16_t port);
void origin_learn_mute(struct broker *b, const struct host *host, uint16_t port);
/* Called for the stream of a probe: u is its connection; or the stream closes. */
void origin_probed(struct stream *s, struct upstream *u);
void origin_probe_closed(struct stream *s);
/* Close connections that are being made to find out; nobody asks for them any more. */
void origin_close_probes(struct broker *b);
void origins_free(struct broker *b);
