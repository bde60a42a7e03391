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
	uint64_t left;  /* HTTP_BODY_LENGTH: bytes to come */
	uint64_t taken; /* bytes of data given out so far */
	bool ended;
	bool truncated;
	struct chunked_decoder chunked;
};

/* Reads framing and length of head (not kept). trailers: see chunked_init(); chunk extensions are
 * tolerated in responses, refused in requests. */
void http_body_init(
	struct http_body *b, const struct http_head *head, struct http_fields *trailers);
/* Frees; may be called on a zeroed struct, and twice. */
void http_body_done(struct http_body *b);
/* Takes bytes off the front of *in. A body that has ended takes none and says so again. */
enum http_body_result http_body_read(struct http_body *b, struct str *in, struct str *ret_data);
/* As http_body_read(), but for all that stands in *in, up to a bound: chunks that came together are
 * moved together, so the memory of *in is changed. *ret_data may be "", and may be something
 * whatever is returned: the result tells what comes after it. */
enum http_body_result http_body_read_all(struct http_body *b, struct str *in, struct str *ret_data);
/* The connection has ended. Returns 0 if that is (or had already come) the end of the body,
 * -EPROTO if it was cut off. */
_warn_unused_ int http_body_eof(struct http_body *b);
/* Whether the body has ended, known without reading more (true at once for one that is not
 * there). */
bool http_body_is_done(const struct http_body *b);
/* Fixed English text for the log. */
const char *http_body_error(const struct http_body *b);

/* Whether Content-Type is that of a gRPC call, in which either side may speak when it likes. Not
 * gRPC-Web: that is a request and an answer as any other. */
bool http_is_grpc(const struct http_fields *f);

/* Where a body is that is made of messages, each behind a byte of flags and four of its length:
 * gRPC, and streams of Connect. */
struct http_messages {
	bool there;
	uint8_t have;  /* bytes of the head */
	uint32_t left; /* of the message behind it */
};

/* By its Content-Type. */
struct http_messages http_messages(const struct http_fields *f);
/* Takes the next bytes of the body. Whether they end a message. If flags show that it has none
 * there are none from there on. */
bool http_messages_end(struct http_messages *m, struct str bytes);
