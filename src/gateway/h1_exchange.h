/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One request and its response: what h1.c (the request) and h1_response.c share. */

#include "gateway/answer.h"
#include "gateway/conn.h"
#include "gateway/stream.h"
#include "http/body.h"
#include "http/h1.h"

enum h1_request_state {
	H1_REQUEST_HEAD, /* being read */
	H1_REQUEST_BODY, /* being read */
	H1_REQUEST_DONE, /* read completely */
};

enum h1_response_state {
	H1_RESPONSE_NONE, /* nothing but interim responses was sent */
	H1_RESPONSE_BODY, /* the head was sent */
	H1_RESPONSE_DONE,
};

struct h1 {
	struct h1 *next; /* in the pool */
	struct conn *c;
	enum h1_request_state request;
	enum h1_response_state response;

	struct h1_parser parser;
	struct http_head head;
	struct http_body body;
	struct http_fields trailers;
	struct stream stream;

	bool keep; /* the connection may be used again after this exchange */
	bool http10, to_head;
	bool websocket;      /* is asked for */
	bool wait_continue;  /* the client may wait for 100 before it sends its body */
	uint64_t window_end; /* of body_window_usec, while we wait for the body; 0: we do not */
	uint64_t window_bytes;

	enum http_framing framing; /* of the response body; NONE: bytes of it are dropped */
	uint64_t left;             /* HTTP_BODY_LENGTH */
};

extern const struct stream_ops h1_stream_ops;

/* Sets the deadline for what is waited for now. */
void h1_arm(struct h1 *h);
/* Refuses the request with an answer of our own and ends the exchange. */
void h1_refuse(struct h1 *h, const struct answer *a);
/* The exchange cannot be finished: an answer where none was begun, else the connection is cut. */
void h1_fail(struct h1 *h, const struct answer *a);
/* The response is complete: the next request, or the end. h may be gone after it. */
void h1_response_done(struct h1 *h);
/* The connection has become something else, which has the stream: sets h free. */
void h1_leave(struct h1 *h);
/* What the response of this exchange has left in the output has shrunk. */
void h1_response_drained(struct h1 *h);
