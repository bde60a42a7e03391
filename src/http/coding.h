/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Decodes the content codings of a body (RFC 9110 8.4): gzip and deflate (RFC 1950, 1951, 1952), br
 * (RFC 7932), zstd (RFC 8878), as a stream: bytes in, bytes out into the caller's memory.
 *
 * Strict: a body ends where its coding ends. Members of gzip and frames of zstd may follow one
 * another; anything else after the end, or a missing end, is an error. Memory is bounded by the
 * codings themselves: 48 KiB for gzip and deflate, 17 MiB for br (its large window is refused), 9
 * MiB for zstd (RFC 9659: a window of 8 MiB); and by a budget shared by many decoders. Work is
 * bounded by the output: more than CODING_IDLE_MAX bytes of input that give no output are an
 * error. */

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

/* Read all Content-Encoding fields. Return 0, -ENOTSUP if a coding is not known here, -E2BIG if
 * there are more than CODING_STACK_MAX. *ret is empty on failure. */
_warn_unused_ int coding_list_read(const struct http_fields *f, struct coding_list *ret);

/* Set ret to the value of an Accept-Encoding field with the codings that the client that sent these
 * fields accepts and that can be decoded here ("identity" if there are none). Weights are kept. */
void coding_accept(const struct http_fields *f, char ret[CODING_ACCEPT_MAX]);

/* Return whether the client that sent these fields has asked for every coding of the list. Without
 * Accept-Encoding it has asked for none. */
bool coding_list_is_asked(const struct coding_list *list, const struct http_fields *f);

/* Shared by decoders that must not take more than `max` bytes together. */
struct coding_budget {
	size_t used, max;
};

struct coding_decoder;
/* list has at least one coding (copied). budget is borrowed, or NULL. Return 0 or -ENOMEM. */
_warn_unused_ int coding_decoder_new(
	const struct coding_list *list, struct coding_budget *budget, struct coding_decoder **ret);
/* NULL is fine; returns NULL. */
struct coding_decoder *coding_decoder_free(struct coding_decoder *d);
DEFINE_CLEANUP(struct coding_decoder, coding_decoder_free)

enum coding_result {
	CODING_MORE, /* the input is used up, and all its output was returned */
	CODING_DATA, /* *ret_n bytes (not 0) are in out; call again, also with empty input */
	CODING_DONE, /* only with `last`: everything is used up, and complete */
	CODING_BAD,  /* coding_error() says why; all later calls return this too */
};

/* Take bytes off the front of *in and put at most `size` (not 0) bytes into out. last: no input
 * follows *in. The output does not depend on how input and output are cut, and nothing that can be
 * decoded is held back. An empty body is complete. One call passes at most CODING_IDLE_MAX + 64 *
 * size bytes through each coding. */
enum coding_result coding_read(
	struct coding_decoder *d, struct str *in, bool last, char *out, size_t size, size_t *ret_n);
/* Fixed English text for the log. */
const char *coding_error(const struct coding_decoder *d);
