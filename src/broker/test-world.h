/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For tests alone: a broker, a plain origin and one behind TLS, as most tests need them.
 * a.site.test and b.site.test lead to them by both schemes; TOKEN is a secret of a.site.test. */

#include "broker/test-origin.h"
#include "broker/testing.h"

#define REAL "sk-real-0123456789abcdef"
#define FAKE "sk-fake-ABCDEFGHIJKLMNOP"

struct world {
	struct rig g;
	struct origin_seen plain_seen, tls_seen;
	struct test_origin *plain, *tls;
};

/* Signs the usual certificate, is trusted; made when it is first needed. */
extern struct test_ca *world_ca;

/* Whether the origin behind TLS speaks HTTP/2 (test-origin-h2.c). */
extern bool world_h2;
/* Whether it has no secret. */
extern bool world_bare;

/* cert: of the origin behind TLS, NULL: *.site.test. More configuration may follow, then
 * rig_serve(). */
void world_start(struct world *w, const struct test_cert *cert);
/* The broker must have ended well. */
void world_stop(struct world *w);
/* Whether the origin has seen this in a head. */
bool world_seen(const struct origin_seen *o, const char *text);
bool world_log_has(const struct world *w, bool json, const char *text);
/* Ask; return whether the answer was 200 with just this body. */
bool world_gets(struct world *w, const struct ask *a, const char *body);

/* For those that need no more configuration, and ask a.site.test by TLS. */
#define HTTPS .scheme = NET_HTTPS, .host = "a.site.test"
void world_serve(struct world *w);
bool world_fetches(struct world *w, const char *target, const char *body);
