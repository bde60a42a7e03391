/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The order in which a request is judged, and how it is sent. */

#include "ipc/netchan.h"
#include "policy/decide.h"

struct broker;
struct stream;

enum policy_scheme decide_scheme(enum net_scheme scheme);
/* Return the question to policy for the request of s. It borrows from s. */
struct policy_request decide_what(const struct stream *s);
/* Judge the request: refuse it, make it ready, or let it wait. */
void decide_request(struct stream *s);
/* Go on with a request that was held (watch.h), and is allowed now. */
void decide_held(struct stream *s);
/* Add credentials to a request that is allowed, and whose body is known if a filter needs it. The
 * request becomes ready, waits, or is refused. */
void request_prepare(struct stream *s);
/* Let s wait for what token stands for. requests_wake() prepares all that wait for it or, if refuse
 * is given, has that refuse each. */
void request_wait(struct stream *s, const void *token);
void requests_wake(
	struct broker *b, const void *token, void (*refuse)(struct stream *s, const void *token));
/* Sign s, which is otherwise complete, write its intent to the log, and queue it for requests_go()
 * at the end of this iteration. */
void request_ready(struct stream *s);
/* Put the intents of all ready requests on record and send them (before streams_reap()), or refuse
 * them if the log cannot be written. requests_drop() forgets them instead. */
void requests_go(struct broker *b);
void requests_drop(struct broker *b);
/* Go on with s after its collected body is complete. */
void request_whole(struct stream *s);
/* Get a connection for the request in s->head and send it. fresh: do not use one that exists
 * already. */
void request_go(struct stream *s, bool fresh);
