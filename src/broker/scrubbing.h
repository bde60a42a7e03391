/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The filter that turns values of secrets back into their surrogates in what the room gets. */

#include "broker/chain.h"

extern const struct filter filter_scrub;

/* Whether what comes for s is looked into. */
bool scrubbing_applies(const struct stream *s);
/* For what is not one text from its head to its end (a WebSocket's frames); nothing changes if s is
 * not looked into. A whole text, in place: */
void scrubbing_whole(struct stream *s, char *text, size_t n);
/* A piece, as scrub_feed() takes it, and what was held back at the end of what belongs together. */
void scrubbing_feed(
	struct stream *s, struct str piece, struct str *ret_first, struct str *ret_second);
struct str scrubbing_end(struct stream *s);
