/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The filter that replaces the values of secrets by their surrogates in what the room receives. */

#include "base/macro.h"
#include "base/str.h"

struct broker;
struct http_fields;
struct scrubber;
struct stream;

/* Return whether the answer to s is scrubbed. */
bool scrubbing_applies(const struct stream *s);
/* Let the answer to s, if it is under way and scrubbed, go on with another scrubber. Return 0 or
 * -ENOMEM. */
_warn_unused_ int scrubbing_follow(struct stream *s, struct scrubber *to);
/* Scrub fields in their own memory. Return how many values were found. */
size_t scrubbing_fields(const struct broker *b, struct http_fields *f);
/* The functions below are for bytes that are not one continuous text (a WebSocket's frames). They
 * change nothing if s is not scrubbed. This one scrubs a whole text in place. */
void scrubbing_whole(struct stream *s, char *text, size_t n);
/* Scrub a piece, as scrub_feed() does; return what was held back, at the end of a text. */
void scrubbing_feed(
	struct stream *s, struct str piece, struct str *ret_first, struct str *ret_second);
struct str scrubbing_end(struct stream *s);
