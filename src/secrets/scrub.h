/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Turns real values back into surrogates in a stream of incoming data. Lengths stay the same, the
 * time is linear in the input whatever it holds, nothing is copied, and only bytes that may begin a
 * secret wait for the next chunk. All secrets of the set are looked for, whatever their scope, in
 * these forms:
 *
 * - as they are;
 * - inside base64, standard or URL-safe, of a text that contains them at any place (RFC 4648);
 * - percent-encoded, with any bytes encoded, in either case, '+' for all spaces:
 *   encodeURIComponent(), Python's quote() and quote_plus(), curl --data-urlencode, Java's
 *   URLEncoder;
 * - as JSON strings, any ASCII as \u00XX or as it is, slashes also as \/;
 * - base64 in the last two.
 *
 * The text written has the same form and means the surrogate, except that a '%' that stands for
 * itself, and a backslash with the character after it, stay where they are. */

#include "secrets/secret_set.h"

/* The compiled forms of a set; immutable, shared by all streams. */
struct scrubber;

/* Compile a set and keep no pointer to it. A live member's previous value is looked for as well.
 * Return 0 or negative. An empty set gives a scrubber that changes nothing and holds nothing
 * back. */
_warn_unused_ int scrubber_new(
	const struct secret_set *set, struct scrubber **ret, struct cloche_err *err);
/* The same for values without surrogates; stars are written over them. Values shorter than
 * SURROGATE_MIN (secrets/surrogate.h) are left out. */
_warn_unused_ int scrubber_new_of_values(
	char *const *values, struct scrubber **ret, struct cloche_err *err);
/* Add an owner. Return s. */
struct scrubber *scrubber_ref(struct scrubber *s);
/* Drop an owner; the last one wipes and frees. NULL is fine. Return NULL. */
struct scrubber *scrubber_free(struct scrubber *s);
DEFINE_CLEANUP(struct scrubber, scrubber_free)

/* One stream. */
struct scrub;
/* The stream becomes an owner of the scrubber. NULL on lack of memory. */
struct scrub *scrub_new(struct scrubber *s);
struct scrub *scrub_free(struct scrub *s);
DEFINE_CLEANUP(struct scrub, scrub_free)

/* Go on with another scrubber; what is held back is searched anew. Return 0 or -ENOMEM. */
_warn_unused_ int scrub_follow(struct scrub *s, struct scrubber *to);

/* Take the next n bytes, which it may change in place. What may be sent on now is `*ret_first`
 * (bytes held back earlier, owned by the stream) followed by `*ret_second` (a front part of data);
 * both are valid until the next call. */
void scrub_feed(
	struct scrub *s, char *data, size_t n, struct str *ret_first, struct str *ret_second);
/* End the stream. Return the bytes that were still held back. */
struct str scrub_end(struct scrub *s);
/* How many secrets were found so far. */
uint64_t scrub_hits(const struct scrub *s);

/* A whole text at once (a header value), in place. Return how many secrets were found. */
size_t scrub_whole(const struct scrubber *s, char *data, size_t n);
