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
	uint64_t soonest;              /* no deadline of theirs is before */
	bool busy, in_head;            /* when the timer was set: there were some; a head came */
};

/* One request and its response. It lives until both sides are done with it. */
struct h2_exchange {
	struct h2_exchange *prev, *next;
	struct h2_conn *on;
	struct h2_stream *st; /* towards the room; NULL: over */
	struct exchange common;

	/* The request. */
	bool complete; /* its end has come */
	bool is_grpc;
	enum net_body body;
	uint32_t held; /* bytes that the broker has not given credit for */

	/* The response. */
	bool ended;       /* its end was given to st */
	bool holds;       /* its end waits for that of the request */
	uint32_t dropped; /* bytes of the request meanwhile */
	bool cut;         /* st is reset when what is in `out` has gone */
	struct buf out;   /* of its body */

	uint64_t deadline;
};

/* --- h2_stream.c: what the connection is told of a stream (http/h2.h) --- */
void h2_exchange_head(void *arg, struct h2_stream *st, struct http_head *head);
void h2_exchange_data(void *arg, struct h2_stream *st, struct str bytes);
void h2_exchange_end(void *arg, struct h2_stream *st, struct http_fields *trailers);
void h2_exchange_closed(void *arg, struct h2_stream *st, enum h2_error error);
struct str h2_exchange_body(void *arg, struct h2_stream *st);
void h2_exchange_sent(void *arg, struct h2_stream *st, size_t n);
/* Its deadline has passed: sets the next, or ends it. */
void h2_exchange_expired(struct h2_exchange *x);
/* Ends it at once: the room's stream is reset, the broker is told. Frees x. */
void h2_exchange_reset(struct h2_exchange *x, enum h2_error error);
/* Frees x; the room's stream is not mentioned again. */
void h2_exchange_free(struct h2_exchange *x);
