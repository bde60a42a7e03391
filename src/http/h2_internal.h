/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the files of HTTP/2. */

#include "http/h2.h"
#include "http/rate.h"

#include <nghttp2/nghttp2.h>

struct h2_stream {
	struct h2 *h;
	struct h2_stream *prev, *next;
	void *user;
	int32_t id;
	bool told;       /* the caller knows the stream */
	bool detached;   /* the caller has reset it */
	bool answered;   /* client: the final head has come; server: the head has */
	bool remote_end; /* the peer's message is complete */
	bool local_end;  /* our message is, except for what handlers.body returns */
	bool overrun;    /* more came than the window allowed: it is being reset */
	bool to_head;    /* client: the request was HEAD */
	bool expected;   /* a reset that we send does not count as a glitch of the peer */
	uint8_t interim; /* interim heads seen */
	uint32_t window; /* bytes that the peer may have under way */
	size_t held;     /* bytes of data not given back */
	size_t ahead;    /* of these, given back to the connection */
	struct http_fields trailers; /* trailers to send */
};

struct h2 {
	nghttp2_session *session;
	struct h2_config c;
	struct h2_stream *streams;
	unsigned open;
	int32_t newest, newest_reset; /* stream that the peer opened last, that we reset last */
	bool going;                   /* no new streams, by either side */
	bool calm;                    /* ended with ENHANCE_YOUR_CALM */
	bool within_head;
	const char *error; /* "" while nothing is wrong */
	struct http_rate resets, glitches, control, pieces;
	uint8_t frame_head[9]; /* as much of the next header as has come */
	unsigned frame_have;
	size_t frame_left; /* bytes left of the current frame's payload */
	struct buf *out;   /* while h2_output() runs */
	size_t enough;
	struct buf text; /* field names of a head that is sent */

	/* What is being received; heads never interleave (RFC 9113 4.3). */
	struct http_head head;
	struct http_fields trailers;
	struct buf cookie;
	struct http_span authority;
	size_t head_bytes;
	unsigned crumbs, continuations;
	bool refused;    /* this head was refused, and reported */
	const char *why; /* what is wrong with it */
};

/* h2.c */
/* End the connection with ENHANCE_YOUR_CALM; return what a callback of the library returns. */
int h2_calm(struct h2 *h, const char *why);
/* The peer has broken a rule. Return 0, or as h2_calm() if that was once too often. */
int h2_glitch(struct h2 *h);
struct h2_stream *h2_stream_new(struct h2 *h);
/* The stream that the library has under this number; NULL if there is none. */
static inline struct h2_stream *h2_stream_of(const struct h2 *h, int32_t id)
{
	return id > 0 ? nghttp2_session_get_stream_user_data(h->session, id) : NULL;
}
/* The same, also if the library does not have it yet. */
struct h2_stream *h2_stream_find(const struct h2 *h, int32_t id);
/* Free st. Tell the caller, unless it does not know the stream or has reset it. */
void h2_stream_closed(struct h2_stream *st, enum h2_error error);

/* h2_head.c: from the wire to the model. 0, or -EPROTO (h->why), -ENOMEM. */
void h2_head_begin(struct h2 *h);
int h2_head_add(struct h2 *h, bool request, struct str name, struct str value);
int h2_head_finish(struct h2 *h, struct h2_stream *st, bool end);
int h2_trailer_add(struct h2 *h, struct str name, struct str value);

/* h2_recv.c, h2_send.c */
/* Return how many of bytes (not empty) belong to the frame that is coming. A new frame is charged
 * to its limit. Return a negative value if the connection has to end. */
ssize_t h2_frame_next(struct h2 *h, struct str bytes);
void h2_recv_callbacks(nghttp2_session_callbacks *cb);
void h2_send_callbacks(nghttp2_session_callbacks *cb);
