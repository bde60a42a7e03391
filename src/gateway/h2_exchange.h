/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One HTTP/2 connection and its requests: what h2.c (the connection) and h2_stream.c (one request
 * and its response) share. */

#include "gateway/conn.h"
#include "gateway/exchange.h"
#include "http/h2.h"

struct h2_conn {
	struct conn *c;
	struct h2 *h2;
	struct h2_exchange *exchanges; /* list */
	unsigned n;                    /* of them */
	unsigned cuts;                 /* of them are to be cut */
	uint64_t soonest;              /* no exchange has an earlier deadline */
	bool busy, in_head; /* when the timer was set: exchanges existed; a head was coming */
};

/* One request and its response. It lives until both sides are done with it. */
struct h2_exchange {
	struct h2_exchange *prev, *next;
	struct h2_conn *on;
	struct h2_stream *st; /* the room's stream; NULL when it is over */
	struct exchange common;

	/* The request. */
	bool complete; /* its end has come */
	bool is_grpc;
	enum net_body body;

	/* The response. */
	bool ended;       /* its end was given to st */
	bool holds;       /* its end waits for the end of the request */
	uint32_t dropped; /* bytes of the request dropped meanwhile */
	bool cut;         /* st is to be reset when `out` is empty */
	struct buf out;   /* bytes of its body */

	uint64_t deadline;
};

/* --- h2_stream.c: the engine's callbacks for a stream (http/h2.h) --- */
void h2_exchange_head(void *arg, struct h2_stream *st, struct http_head *head);
void h2_exchange_data(void *arg, struct h2_stream *st, struct str bytes);
void h2_exchange_end(void *arg, struct h2_stream *st, struct http_fields *trailers);
void h2_exchange_closed(void *arg, struct h2_stream *st, enum h2_error error);
struct str h2_exchange_body(void *arg, struct h2_stream *st);
void h2_exchange_sent(void *arg, struct h2_stream *st, size_t n);
/* The deadline of x has passed: set the next one, or end x. */
void h2_exchange_expired(struct h2_exchange *x);
/* End x at once: reset the room's stream, tell the broker, and free x. */
void h2_exchange_reset(struct h2_exchange *x, enum h2_error error);
/* Free x, and tell the broker if its stream is not over. Leave the room's stream alone. */
void h2_exchange_free(struct h2_exchange *x);
