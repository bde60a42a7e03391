/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reads a body however it is framed: bytes in, views of data out. */

#include "http/chunked.h"

enum http_body_result {
	HTTP_BODY_MORE, /* the input is used up, the body goes on */
	HTTP_BODY_DATA, /* *ret_data is a piece of the body, not empty; call again */
	HTTP_BODY_DONE, /* complete; what is left of in belongs to the next message */
	HTTP_BODY_BAD,  /* framing is broken: http_body_error() */
};

struct http_body {
	enum http_framing framing;
	uint64_t left; /* HTTP_BODY_LENGTH: bytes to come */
	bool ended;
	bool truncated;
	struct chunked_decoder chunked;
};

/* Take framing and length from head (not kept). trailers: see chunked_init(). Chunk extensions are
 * tolerated in responses, refused in requests. */
void http_body_init(
	struct http_body *b, const struct http_head *head, struct http_fields *trailers);
/* Free; may be called on a zeroed struct, and twice. */
void http_body_done(struct http_body *b);
/* Take bytes off the front of *in. After the end of the body, take none and return HTTP_BODY_DONE
 * again. */
enum http_body_result http_body_read(struct http_body *b, struct str *in, struct str *ret_data);
/* Like http_body_read(), but for all of *in, up to a bound. Chunks that came together are joined in
 * place, so the memory of *in is changed. With every result *ret_data may be "" or a piece of the
 * body; the result says what comes after it. */
enum http_body_result http_body_read_all(struct http_body *b, struct str *in, struct str *ret_data);
/* The connection has ended. Return 0 if the body ends with that or had already ended, -EPROTO if it
 * was cut off. */
_warn_unused_ int http_body_eof(struct http_body *b);
/* Whether the body has ended, as far as is known without reading more. True at once if there is no
 * body. */
bool http_body_is_done(const struct http_body *b);
/* Fixed English text for the log. */
const char *http_body_error(const struct http_body *b);

/* Whether Content-Type is that of a gRPC call, in which either side may send at any time. False for
 * gRPC-Web, which is an ordinary request and response. */
bool http_is_grpc(const struct http_fields *f);

/* The position in a body that is made of messages, each with a byte of flags and four bytes of
 * length in front: gRPC, and streams of Connect. */
struct http_messages {
	bool there;
	uint8_t have;  /* bytes read of the message's head */
	uint32_t left; /* bytes left of the message after it */
};

/* Tell by Content-Type whether a body is made of messages. */
struct http_messages http_messages(const struct http_fields *f);
/* Take the next bytes of the body. Return whether they end a message. If flags show that the body
 * is not made of messages, return false from then on. */
bool http_messages_end(struct http_messages *m, struct str bytes);
