/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Writes HTTP/1.1 heads from the model, and chunk framing. Nothing is passed through: method,
 * target, Host, the framing fields and Connection are written from the model, each field is checked
 * again, and a field that could split a message makes the whole write fail. Functions append to
 * out; on failure out is as it was.
 *
 * Of the field list, hop-by-hop fields, Host, Content-Length, Transfer-Encoding and Expect:
 * 100-continue are not written, so a parsed head can be handed over as it is. */

#include "base/err.h"
#include "http/msg.h"

enum {
	H1_W_CLOSE = 1 << 0,      /* "Connection: close" */
	H1_W_KEEP_ALIVE = 1 << 1, /* "Connection: keep-alive", as the client says */
	H1_W_UPGRADE = 1 << 2,    /* writes "Connection: upgrade" and the Upgrade field */
	H1_W_EXPECT = 1 << 3,     /* request: "Expect: 100-continue" */
	H1_W_TRAILERS = 1 << 4,   /* request: "TE: trailers" */
};

/* Return 0, or set err (E_PROTOCOL for what must not be written: CONNECT, TRACE, a control
 * character, an empty host; E_LIMIT, E_NO_MEMORY). The target is written in origin form. */
_warn_unused_ int h1_write_request(
	struct buf *out, const struct http_head *h, unsigned flags, struct cloche_err *err);
/* Return as h1_write_request(). The status line says HTTP/1.1. "No body" is written as length 0;
 * with HTTP_TO_HEAD or 304 a length is only written if one was given. HTTP_BODY_CLOSE implies
 * H1_W_CLOSE. For an HTTP/1.0 client set the body to HTTP_BODY_CLOSE first if it is chunked. */
_warn_unused_ int h1_write_response(struct buf *out, const struct http_head *h, unsigned flags);

/* "1f4\r\n" for n > 0 bytes of data, which the caller writes next, then CR LF. */
#define H1_CHUNK_HEAD_MAX 20
size_t h1_chunk_head(char ret[H1_CHUNK_HEAD_MAX], size_t n);
/* One whole chunk, copied; nothing for empty data. Return 0, -E2BIG or -ENOMEM. */
_warn_unused_ int h1_write_chunk(struct buf *out, struct str data);
/* The last chunk, with trailers (NULL: none). Names that may not be in trailers are left out.
 * Return 0, -EINVAL, -E2BIG or -ENOMEM. */
_warn_unused_ int h1_write_last_chunk(struct buf *out, const struct http_fields *trailers);
