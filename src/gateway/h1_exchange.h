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
	bool websocket; /* the request asks for one */
};

extern const struct exchange_ops h1_exchange_ops;

/* Set the deadline for what the exchange waits for now. */
void h1_arm(struct h1 *h);
/* The exchange cannot be finished: send `a` if no answer was begun, else abort the connection. */
void h1_fail(struct h1 *h, const struct answer *a);
/* The response is complete: go on with the next request, or end the connection. May free h. */
void h1_response_done(struct h1 *h);
/* Free h, or keep its memory for another exchange. Tell the broker if its stream is not over. */
void h1_free(struct h1 *h);
/* Some output of this response was taken or dropped: give the broker credit. */
void h1_response_drained(struct h1 *h);
