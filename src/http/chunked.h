/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Strict decoder of the chunked transfer coding (RFC 9112 7.1), resumable at any byte, without
 * copying: data comes out as views into the input. */

#include "http/h1.h"

/* Bytes of extensions or blanks after one chunk size, up to the CR. */
#define CHUNKED_EXTENSION_MAX 256

enum chunked_result {
	CHUNKED_MORE,  /* the input is used up */
	CHUNKED_DATA,  /* *ret_data is a piece of the body, not empty; call again */
	CHUNKED_DONE,  /* body and trailers have ended; what is left of in is not part of them */
	CHUNKED_ERROR, /* d->error says why; nothing after this can be trusted */
};

enum chunked_error {
	CHUNKED_E_OK,
	CHUNKED_E_SIZE, /* not 1 to 8 hexadecimal digits, or an extension that is not tolerated */
	CHUNKED_E_EXTENSION, /* malformed, or longer than CHUNKED_EXTENSION_MAX */
	CHUNKED_E_LINE_END,  /* CR LF missing */
	CHUNKED_E_TRAILER,   /* malformed or too large trailers: d->trailer_error */
	CHUNKED_E_TRUNCATED, /* the connection ended early (set by http_body_eof) */
};

struct chunked_decoder {
	uint8_t state, digits;
	bool extensions; /* are tolerated, and dropped */
	uint16_t extension_bytes;
	enum chunked_error error;
	enum h1_error trailer_error;
	uint64_t left;                /* bytes left of this chunk */
	struct http_fields *trailers; /* borrowed, or NULL: checked and dropped */
	struct buf line;              /* an unfinished trailer line */
	size_t trailer_bytes;
	unsigned trailer_count;
};

/* trailers is borrowed, cleared, and filled with the trailers that may be passed on: names that
 * frame, route, authenticate or change how the body is read are dropped (RFC 9110 6.5.1).
 * extensions: if true, blanks and well-formed chunk extensions after a size are dropped (a
 * recipient must ignore them, RFC 9112 7.1.1). If false, they are an error. That is right for
 * requests: no client of ours needs them, and requests can be smuggled if two parsers read them
 * differently. */
void chunked_init(struct chunked_decoder *d, struct http_fields *trailers, bool extensions);
/* Free what a half-read trailer line holds. */
void chunked_done(struct chunked_decoder *d);
/* Take bytes off the front of *in. */
enum chunked_result chunked_read(struct chunked_decoder *d, struct str *in, struct str *ret_data);
const char *chunked_error_text(const struct chunked_decoder *d);
/* Whether a field of this name may be in a trailer section. */
bool http_is_trailer_name(struct str name);
