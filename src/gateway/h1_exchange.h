/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One request and its response: what h1.c (the request) and h1_response.c share. */

#include "gateway/conn.h"
#include "gateway/exchange.h"
#include "http/body.h"
#include "http/h1.h"

enum h1_request_state {
	H1_REQUEST_HEAD, /* being read */
	H1_REQUEST_BODY, /* being read */
	H1_REQUEST_DONE, /* read completely */
};

struct h1 {
	struct h1 *next; /* in the pool */
	struct exchange x;
	enum h1_request_state request;

	struct h1_parser parser;
	struct http_head head;
	struct http_body body;
	struct http_fields trailers;

	bool keep; /* the connection may be used again after this exchange */
	bool http10;
	bool websocket; /* is asked for */
};

extern const struct exchange_ops h1_exchange_ops;

/* Sets the deadline for what is waited for now. */
void h1_arm(struct h1 *h);
/* The exchange cannot be finished: an answer if none was begun, else the connection is cut. */
void h1_fail(struct h1 *h, const struct answer *a);
/* The response is complete: the next request, or the end. h may be gone after it. */
void h1_response_done(struct h1 *h);
/* The connection has become something else, which has the stream: sets h free. */
void h1_leave(struct h1 *h);
/* What the response of this exchange has left in the output has shrunk. */
void h1_response_drained(struct h1 *h);
