/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Write the lines of a cassette (cassette.h). Each function appends one line with its newline to
 * out, and returns 0 or buf_add's negative errno; out may then hold a part of the line. */

#include "base/buf.h"

/* The headers of a head, or trailers, in any form. */
struct cassette_headers {
	unsigned n;
	void (*get)(const void *of, unsigned i, struct str *ret_name, struct str *ret_value);
	const void *of;
};

_warn_unused_ int cassette_write_request(struct buf *out, uint64_t usec, uint64_t number,
	struct str method, struct str url, const struct cassette_headers *headers);
_warn_unused_ int cassette_write_refused(
	struct buf *out, uint64_t usec, uint64_t number, unsigned status, struct str reason);
_warn_unused_ int cassette_write_response(struct buf *out, uint64_t usec, uint64_t number,
	unsigned status, const struct cassette_headers *headers);
/* key: "sent" or "data"; at most CASSETTE_PIECE_MAX bytes. */
_warn_unused_ int cassette_write_piece(
	struct buf *out, uint64_t usec, uint64_t number, const char *key, struct str bytes);
/* key: "sent_end" or "end". trailers, error: NULL for none. */
_warn_unused_ int cassette_write_end(struct buf *out, uint64_t usec, uint64_t number,
	const char *key, const struct cassette_headers *trailers, const char *error);
/* key: "upgraded" or "cut"; number 0: nothing more is kept in this file. */
_warn_unused_ int cassette_write_word(
	struct buf *out, uint64_t usec, uint64_t number, const char *key);
