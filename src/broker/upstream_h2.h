/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* HTTP/2 on a connection to an origin: what upstream_h2.c (the connection) and upstream_h2_leg.c
 * (one of the room's streams on it) share. */

#include "base/buf.h"
#include "http/h2.h"
#include "http/msg.h"

enum {
	H2_ORIGIN_STREAM_WINDOW = 1024 * 1024, /* of a stream at first */
};

struct broker;

struct leg {
	struct leg *prev, *next;
	struct h2_origin *o;
	struct stream *s;
	struct h2_stream *st;
	struct buf held;     /* bytes of the answer that the gateway has not taken */
	uint32_t window;     /* bytes that the origin may send before the room has read any */
	uint64_t taken;      /* bytes that the room has taken since `since` */
	uint64_t since;      /* monotonic */
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
	uint64_t began;        /* monotonic: our settings were sent */
	uint64_t round_trip;   /* microseconds, 0: not known yet */
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
/* Return how many bytes may be held in all before connections that hold some are not read. */
size_t legs_held_max(const struct broker *b);
/* Return whether all of the request is with the origin. */
bool leg_has_sent(const struct leg *l);
/* Pass on held bytes, as far as the gateway takes them. */
void leg_drain(struct leg *l);
/* Take the request off this connection so that it can be sent again, if that was done fewer than
 * `most` times. Return false if it cannot be. */
_warn_unused_ bool leg_take_back(struct leg *l, unsigned most);
/* Free the leg and detach its stream. The caller decides what becomes of the stream. */
void leg_free(struct leg *l);
