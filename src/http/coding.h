/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Takes content codings off a body (RFC 9110 8.4): gzip and deflate (RFC 1950, 1951, 1952), br (RFC
 * 7932), zstd (RFC 8878), as a stream: bytes in, bytes out into memory of the caller's.
 *
 * Strict: a body ends where its coding ends. Members of gzip and frames of zstd may follow one
 * another; anything else behind the end, or no end, is an error. Memory is bounded by the codings
 * themselves: 48 KiB of gzip and deflate, 17 MiB of br (its large window is refused), 9 MiB of
 * zstd (RFC 9659: a window of 8 MiB); and by a budget over many decoders. Work is bounded by what
 * comes out: input that gives nothing is taken up to CODING_IDLE_MAX bytes, then it is an error. */

#include "http/msg.h"

#define CODING_STACK_MAX 3
#define CODING_IDLE_MAX (1024 * 1024)
#define CODING_ACCEPT_MAX 96 /* bytes of a value that coding_accept makes */

enum coding { CODING_GZIP, CODING_DEFLATE, CODING_BR, CODING_ZSTD, CODING_N };

/* The codings of one body, in the order in which they were applied; identity is left out. */
struct coding_list {
	unsigned n;
	enum coding v[CODING_STACK_MAX];
};

/* Reads all Content-Encoding fields. Returns 0, -ENOTSUP if one is not known here, -E2BIG if
 * there are more than CODING_STACK_MAX. *ret is empty on failure. */
_warn_unused_ int coding_list_read(const struct http_fields *f, struct coding_list *ret);

/* What a client that sent these fields accepts, of what can be decoded here: fills ret with the
 * value of an Accept-Encoding field ("identity" if nothing is left). Weights stay. */
void coding_accept(const struct http_fields *f, char ret[CODING_ACCEPT_MAX]);

/* Shared by decoders that must not take more than `max` bytes together. */
struct coding_budget {
	size_t used, max;
};

struct coding_decoder;
/* list has at least one coding (copied). budget is borrowed, or NULL. Returns 0 or -ENOMEM. */
_warn_unused_ int coding_decoder_new(
	const struct coding_list *list, struct coding_budget *budget, struct coding_decoder **ret);
/* NULL is fine; returns NULL. */
struct coding_decoder *coding_decoder_free(struct coding_decoder *d);
DEFINE_CLEANUP(struct coding_decoder, coding_decoder_free)

enum coding_result {
	CODING_MORE, /* the input is used up, and all that it gives was given */
	CODING_DATA, /* *ret_n bytes (not 0) are in out; call again, also with empty input */
	CODING_DONE, /* with `last` only: everything is used up, and complete */
	CODING_BAD,  /* coding_error() says why; it stays so */
};

/* Takes bytes off the front of *in and puts at most `size` (not 0) bytes into out. last: no input
 * follows *in. What comes out does not depend on how input and output are cut, and nothing that is
 * decodable waits. A body of no bytes at all is complete. One call takes at most CODING_IDLE_MAX +
 * 64 * size bytes through each coding. */
enum coding_result coding_read(
	struct coding_decoder *d, struct str *in, bool last, char *out, size_t size, size_t *ret_n);
/* Fixed English text for the log. */
const char *coding_error(const struct coding_decoder *d);
