/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* HTTP/2 on a connection to an origin: what upstream_h2.c (the connection) and upstream_h2_leg.c
 * (one of the room's streams on it) share. */

#include "base/buf.h"
#include "http/h2.h"
#include "http/msg.h"

enum {
	H2_ORIGIN_STREAM_WINDOW = 1024 * 1024,
	H2_ORIGIN_HELD_MAX = 32 * 1024 * 1024, /* of all connections */
};

struct leg {
	struct leg *prev, *next;
	struct h2_origin *o;
	struct stream *s;
	struct h2_stream *st;
	struct buf held;     /* bytes of the answer that the gateway has not taken */
	bool started;        /* something of the answer has come */
	bool request_ended;  /* the origin was told so */
	bool response_ended; /* the answer is complete, but for what is held */
	struct http_fields trailers;
};

struct h2_origin {
	struct upstream *u;
	struct h2 *h2;
	struct buf out;
	struct leg *legs;
	size_t held;
	uint64_t asked;        /* monotonic: the first request since something was read; 0: none */
	bool secret;           /* has sent a secret: memory is wiped */
	bool going;            /* no new streams */
	bool paused;           /* not reading */
	const char *malformed; /* why the last answer was refused */
};

/* --- upstream_h2_leg.c --- */
extern const struct h2_handlers leg_handlers;
/* Operations of struct upstream_ops. */
void leg_begin(struct upstream *u, struct stream *s);
void leg_send(struct upstream *u, struct stream *s);
void leg_detach(struct upstream *u, struct stream *s);
/* Pass on held bytes, as far as the gateway takes them. */
void leg_drain(struct leg *l);
/* Take the request off this connection so that it can be sent again, if that was done fewer than
 * `most` times. Return false if it cannot be. */
_warn_unused_ bool leg_take_back(struct leg *l, unsigned most);
/* Free the leg and detach its stream. The caller decides what becomes of the stream. */
void leg_free(struct leg *l);
