/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* HTTP/2 (RFC 9113) for either end of a connection, in terms of the message model. It moves no
 * bytes itself: what arrives goes into h2_feed(), what is to be sent comes out of h2_output();
 * everything else is told by the handlers.
 *
 *	h = h2_new({.role = H2_SERVER, .on = &handlers, .arg = conn, windows}, &h)
 *	read from the peer:	r = h2_feed(h, bytes)
 *	after any call:		h2_output(h, &out, high) and write `out`
 *	when h2_is_done(h) and `out` is written: close
 *
 * A stream's events are: head (a client: each interim one, too), data..., end, and at last closed;
 * or closed at any time. Heads were judged by http/valid.h and by RFC 9113 8; what is wrong with
 * one costs the peer its stream (PROTOCOL_ERROR), and is told by `malformed`.
 *
 * Flow control runs through: the peer may send config.*_window bytes that were not given back by
 * h2_consume(); nothing is kept here. What is to be sent stays with the caller until it may go
 * (handlers.body), and is copied once, into `out`.
 *
 * A handler may call every function here but h2_free(), h2_feed() and h2_output(). */

#include "base/err.h"
#include "http/msg.h"

struct h2;
struct h2_stream;

/* RFC 9113 7. */
enum h2_error {
	H2_NO_ERROR,
	H2_PROTOCOL_ERROR,
	H2_INTERNAL_ERROR,
	H2_FLOW_CONTROL_ERROR,
	H2_SETTINGS_TIMEOUT,
	H2_STREAM_CLOSED,
	H2_FRAME_SIZE_ERROR,
	H2_REFUSED_STREAM, /* nothing was done: may be sent again */
	H2_CANCEL,
	H2_COMPRESSION_ERROR,
	H2_CONNECT_ERROR,
	H2_ENHANCE_YOUR_CALM,
	H2_INADEQUATE_SECURITY,
	H2_HTTP_1_1_REQUIRED,
};

enum {
	H2_STREAMS_MAX = 100, /* open at once: what a server allows, and what a client asks for */
	/* What a peer may do before the connection is ended with ENHANCE_YOUR_CALM; so much at
	 * once, and so much again each second. */
	H2_RESETS_BURST = 200, /* streams that the peer resets */
	H2_RESETS_RATE = 33,
	H2_GLITCHES_BURST = 100, /* frames that break a rule, streams that we had to reset for it */
	H2_GLITCHES_RATE = 10,
	/* Frames that carry nothing (PING, SETTINGS, empty DATA, unknown types ...); each head and
	 * each DATA of HTTP_PIECE_MIN bytes, of either side, allows two more. */
	H2_CONTROL_BURST = 2000,
	H2_CONTROL_RATE = 500,
	H2_CONTINUATIONS_MAX = 8, /* of one head */
	H2_OUT_MIN = 20 * 1024,   /* least `max - len` of h2_output()'s buffer */
};

struct h2_handlers {
	/* A request (server), or a response, interim ones (status below 200) included. The head is
	 * the connection's own: it may be changed, and is gone after the return. version is HTTP_2;
	 * cookies are one field; `te` is HTTP_TE_TRAILERS. body: NONE if no data can come (then
	 * `end` comes all the same, though perhaps later), LENGTH, or CHUNKED. Requests for CONNECT
	 * and TRACE are marked as in HTTP/1, and must be refused by the caller. A server gives the
	 * stream its user here (h2_stream_set_user). */
	void (*head)(void *arg, struct h2_stream *st, struct http_head *head);
	/* Bytes of the body, borrowed. They count against the windows until h2_consume(). A length
	 * that was announced is kept to, or the stream is closed. */
	void (*data)(void *arg, struct h2_stream *st, struct str bytes);
	/* The peer's message is complete. Trailers (often none) are the connection's own. */
	void (*end)(void *arg, struct h2_stream *st, struct http_fields *trailers);
	/* The stream is gone: st is invalid after the return. H2_NO_ERROR if both messages were
	 * complete. Not called for streams that h2_reset() was called for. */
	void (*closed)(void *arg, struct h2_stream *st, enum h2_error error);
	/* Bytes that wait to be sent on st, borrowed until the next change; "" if none do (then
	 * call h2_wake() when there are). Asked only when they may go. */
	struct str (*body)(void *arg, struct h2_stream *st);
	/* The first n bytes of what `body` returned have been copied. */
	void (*sent)(void *arg, struct h2_stream *st, size_t n);
	/* Optional. A message was refused here. head is what was understood (escape it), why is
	 * fixed English text. The stream is closed next, or was never told of. */
	void (*malformed)(void *arg, const struct http_head *head, const char *why);
	/* Optional. The peer takes no more new streams; those that it did not see are closed with
	 * H2_REFUSED_STREAM. */
	void (*goaway)(void *arg, enum h2_error error);
	/* Optional; a client's: the peer's settings have arrived or changed (h2_streams_free). */
	void (*settings)(void *arg);
};

enum h2_role { H2_SERVER, H2_CLIENT };

struct h2_config {
	enum h2_role role;
	const struct h2_handlers *on; /* borrowed for good */
	void *arg;
	uint32_t stream_window; /* bytes that the peer may have under way: of one stream */
	uint32_t window;        /* ... and of all (at least 65535) */
	uint32_t peer_streams;  /* a client's: how many streams the peer is taken to allow until its
				 * settings have come; 0: 100 (RFC 9113 6.5.2) */
	bool wipe;              /* memory is overwritten before it is freed: it holds secrets */
};

/* Returns 0, or negative (E_NO_MEMORY). The preface and settings wait in h2_output() at once. */
_warn_unused_ int h2_new(const struct h2_config *config, struct h2 **ret, struct cloche_err *err);
/* NULL is fine; returns NULL. No handler is called: all stream handles are invalid. */
struct h2 *h2_free(struct h2 *h);
DEFINE_CLEANUP(struct h2, h2_free)

/* Takes all of the bytes. Returns 0, -EPROTO when the connection has to end (h2_output() may still
 * have a GOAWAY to say), -ENOMEM. */
_warn_unused_ int h2_feed(struct h2 *h, struct str bytes);
/* Appends what is to be sent until out holds `enough` bytes or there is no more; out->max must
 * leave H2_OUT_MIN above `enough`. Returns as h2_feed(). Call again when out was written. */
_warn_unused_ int h2_output(struct h2 *h, struct buf *out, size_t enough);
/* Whether h2_output() may have something. */
bool h2_wants_output(const struct h2 *h);
/* Neither reads nor has anything to send: close the connection when out is written. */
bool h2_is_done(const struct h2 *h);
/* Why it ended: fixed English text, "" while nothing is wrong. */
const char *h2_error_text(const struct h2 *h);
/* Whether it ended with ENHANCE_YOUR_CALM: the peer has used up one of the limits above. */
bool h2_is_calmed(const struct h2 *h);
/* A head has begun to arrive and is not complete. */
bool h2_is_within_head(const struct h2 *h);
const char *h2_error_name(enum h2_error error);

/* Flags of h2_request() and h2_respond(). */
enum {
	H2_END = 1 << 0,         /* no body and no trailers follow */
	H2_TE_TRAILERS = 1 << 1, /* request: "te: trailers" */
	H2_SECRET = 1 << 2,      /* no field may enter a compression table, here or elsewhere */
	H2_EXPECT = 1 << 3,      /* request: "expect: 100-continue" */
};

/* Client: opens a stream for a request, written from the model as by http/h1_write.h (fields that
 * frame, Host and hop-by-hop ones are not copied). Returns 0, -EINVAL for what must not be sent,
 * -EAGAIN if the peer takes no new streams, -ENOMEM. */
_warn_unused_ int h2_request(struct h2 *h, const struct http_head *head, unsigned flags, void *user,
	struct h2_stream **ret);
/* Server: the response, or before it interim ones (status below 200, never 101). Returns 0,
 * -EINVAL, -ENOMEM. When the response has gone before the request is complete, the stream is
 * reset with H2_NO_ERROR (RFC 9113 8.1). */
_warn_unused_ int h2_respond(struct h2_stream *st, const struct http_head *head, unsigned flags);
/* There are more bytes for handlers.body to return. */
void h2_wake(struct h2_stream *st);
/* Nothing follows what handlers.body returns, but the trailers (copied; NULL: none), without names
 * that may not be there. Not after H2_END. Returns 0, -ENOMEM, -E2BIG. */
_warn_unused_ int h2_end(struct h2_stream *st, const struct http_fields *trailers);
/* Resets: st is invalid after it, no handler mentions it again. */
void h2_reset(struct h2_stream *st, enum h2_error error);
/* n bytes of data were passed on: the peer may send as many more. What was not given back when the
 * stream is closed or reset is given back (to the connection) by itself. */
void h2_consume(struct h2_stream *st, size_t n);
/* n bytes, which are kept for a time, count against the stream's window alone: others may go on. */
void h2_consume_ahead(struct h2_stream *st, size_t n);

/* No new streams; with an error also no old ones, and then h2_is_done() is soon true. */
void h2_goaway(struct h2 *h, enum h2_error error);
/* Client: how many more streams the peer takes now; 0 after goaway. */
unsigned h2_streams_free(const struct h2 *h);
/* Client: how many the peer takes at once. */
unsigned h2_streams_max(const struct h2 *h);
/* Streams that were not closed yet. */
unsigned h2_streams_open(const struct h2 *h);

void h2_stream_set_user(struct h2_stream *st, void *user);
void *h2_stream_user(const struct h2_stream *st);
uint32_t h2_stream_id(const struct h2_stream *st);
