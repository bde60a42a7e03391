/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The order in which a request is judged, and how it gets going. */

#include "policy/decide.h"

struct broker;
struct stream;

/* The question to policy that the request is; borrows from the stream. */
struct policy_request decide_what(const struct stream *s);
/* Refuses the request, or makes it ready to go. */
void decide_request(struct stream *s);
/* The request is allowed, and its body known if it has to be: gives it its credentials and makes
 * it ready, or lets it wait, or refuses it. */
void request_prepare(struct stream *s);
/* Goes with the next requests_go(), at the end of this iteration: s is complete, and what it does
 * is to be put on record. */
void request_ready(struct stream *s);
/* Records the intents of all that are ready and lets them go (before streams_reap), or not. */
void requests_go(struct broker *b);
void requests_drop(struct broker *b);
/* The body that was waited for is complete. */
void request_whole(struct stream *s);
/* The request stands in s->head: goes for a connection (fresh: one that is not made yet). */
void request_go(struct stream *s, bool fresh);
