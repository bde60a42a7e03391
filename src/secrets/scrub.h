/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Turns real values back into surrogates in what comes back, as a stream: lengths stay the same,
 * time is linear in the input whatever it holds, nothing is copied, and only bytes that may be the
 * beginning of a secret wait for the next chunk. All secrets of the set are looked for, whatever
 * their scope, in these forms:
 *
 * - as they are;
 * - within base64, standard or URL-safe, of a text that holds them anywhere (RFC 4648);
 * - percent-encoded, whichever bytes, in either case, '+' for all spaces: encodeURIComponent(),
 *   Python's quote() and quote_plus(), curl --data-urlencode, Java's URLEncoder;
 * - as JSON strings, any ASCII as \u00XX or as it is, slashes also as \/;
 * - base64 in the last two.
 *
 * What is written has the form of what was there, and means the surrogate; but a '%' that stands
 * for itself, and a backslash with what stands behind it, stay where they are. */

#include "secrets/secret_set.h"

/* The compiled forms of a set; immutable, shared by all streams. */
struct scrubber;

/* Compiles a set; keeps no pointer to it. Of a live member also the last value counts. Returns 0
 * or negative. An empty set gives a scrubber that changes nothing and holds nothing back. */
_warn_unused_ int scrubber_new(
	const struct secret_set *set, struct scrubber **ret, struct cloche_err *err);
/* Of values that nothing stands in for: stars are written over them. Those of fewer bytes than a
 * secret may have (secrets/surrogate.h) are left out. */
_warn_unused_ int scrubber_new_of_values(
	char *const *values, struct scrubber **ret, struct cloche_err *err);
/* One more owner; returns s. */
struct scrubber *scrubber_ref(struct scrubber *s);
/* One owner less; the last one wipes and frees. NULL is fine; returns NULL. */
struct scrubber *scrubber_free(struct scrubber *s);
DEFINE_CLEANUP(struct scrubber, scrubber_free)

/* Number of bytes that a stream may hold back at most. */
size_t scrubber_max_held(const struct scrubber *s);

/* One stream. */
struct scrub;
/* Owns the scrubber together with others. NULL on lack of memory. */
struct scrub *scrub_new(struct scrubber *s);
struct scrub *scrub_free(struct scrub *s);
DEFINE_CLEANUP(struct scrub, scrub_free)

/* Takes the next n bytes, which it may change in place. What may be sent on now is `*ret_first`
 * (bytes held back earlier, owned by the stream) followed by `*ret_second` (a front part of data);
 * both are valid until the next call. */
void scrub_feed(
	struct scrub *s, char *data, size_t n, struct str *ret_first, struct str *ret_second);
/* End of stream: what was still held back. */
struct str scrub_end(struct scrub *s);
/* How many secrets were found so far. */
uint64_t scrub_hits(const struct scrub *s);

/* A whole text at once (a header value), in place. Returns how many secrets were found. */
size_t scrub_whole(const struct scrubber *s, char *data, size_t n);
