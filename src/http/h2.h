/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* HTTP/2 (RFC 9113) for either end of a connection, in terms of the message model. It does no I/O
 * itself: input goes into h2_feed(), output comes from h2_output(), and everything else is reported
 * by the handlers.
 *
 *	h = h2_new({.role = H2_SERVER, .on = &handlers, .arg = conn, windows})
 *	read from the peer:	r = h2_feed(h, bytes)
 *	after any call:		h2_output(h, &out, high) and write `out`
 *	when h2_is_done(h) and `out` is written: close
 *
 * The events of a stream are: head (for a client also each interim one), data..., end, and at last
 * closed; closed may also come at any time. Heads were checked by http/valid.h and by RFC 9113 8.
 * If a head is bad, its stream is reset (PROTOCOL_ERROR), and `malformed` is called.
 *
 * Flow control is passed through: the peer may send config.*_window bytes that were not given back
 * by h2_consume(); nothing is kept here. Output stays with the caller until it may be sent
 * (handlers.body), and is copied once, into `out`.
 *
 * A handler may call every function here except h2_free(), h2_feed() and h2_output(). */

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
	H2_STREAMS_MAX = 100, /* open at once, for either role */
	/* What a peer may do before the connection is ended with ENHANCE_YOUR_CALM: BURST at once,
	 * and RATE more each second. */
	H2_RESETS_BURST = 200, /* streams that the peer resets */
	H2_RESETS_RATE = 33,
	H2_GLITCHES_BURST = 100, /* frames that break a rule, resets that we had to send */
	H2_GLITCHES_RATE = 10,
	/* Frames that carry nothing (PING, SETTINGS, empty DATA, unknown types ...). Each head and
	 * each DATA of HTTP_PIECE_MIN bytes, from either side, allows two more. */
	H2_CONTROL_BURST = 2000,
	H2_CONTROL_RATE = 500,
	H2_CONTINUATIONS_MAX = 8, /* of one head */
	H2_OUT_MIN = 20 * 1024,   /* least room that h2_output() needs in out above `enough` */
};

struct h2_handlers {
	/* A request (server), or a response, including interim ones (status below 200). The head
	 * belongs to the connection: it may be changed, and is invalid after the return. version is
	 * HTTP_2; cookies are one field; `te` is HTTP_TE_TRAILERS. body: NONE if no data can come
	 * (`end` comes all the same, perhaps later), LENGTH, or CHUNKED. CONNECT and TRACE requests
	 * are marked as in HTTP/1, and the caller must refuse them. A server sets the stream's user
	 * here (h2_stream_set_user). */
	void (*head)(void *arg, struct h2_stream *st, struct http_head *head);
	/* Bytes of the body, borrowed. They count against the windows until h2_consume(). If the
	 * body does not have the announced length, the stream is closed. */
	void (*data)(void *arg, struct h2_stream *st, struct str bytes);
	/* The peer's message is complete. The trailers (often none) belong to the connection. */
	void (*end)(void *arg, struct h2_stream *st, struct http_fields *trailers);
	/* The stream is gone: st is invalid after the return. H2_NO_ERROR if both messages were
	 * complete. Not called after h2_reset(). */
	void (*closed)(void *arg, struct h2_stream *st, enum h2_error error);
	/* Return the bytes that wait to be sent on st, borrowed until the next change, or "" if
	 * there are none (then call h2_wake() when there are). Called only when they may be
	 * sent. */
	struct str (*body)(void *arg, struct h2_stream *st);
	/* The first n bytes of what `body` returned have been copied. */
	void (*sent)(void *arg, struct h2_stream *st, size_t n);
	/* Optional. A message was refused here. head is what was understood (escape it), why is
	 * fixed English text. The stream is closed next, or was never reported. */
	void (*malformed)(void *arg, const struct http_head *head, const char *why);
	/* Optional. The peer accepts no new streams; those that it did not see are closed with
	 * H2_REFUSED_STREAM. */
	void (*goaway)(void *arg, enum h2_error error);
	/* Optional, for a client: the peer's settings have arrived or changed (h2_streams_free). */
	void (*settings)(void *arg);
	/* Optional: the peer has our settings. It answers them at once (RFC 9113 6.5.3), so this
	 * comes a round trip after they were sent. */
	void (*acknowledged)(void *arg);
};

enum h2_role { H2_SERVER, H2_CLIENT };

struct h2_config {
	enum h2_role role;
	const struct h2_handlers *on; /* borrowed until h2_free() */
	void *arg;
	uint32_t stream_window; /* bytes that the peer may have under way: per stream */
	uint32_t window;        /* ... and in total (at least 65535) */
	uint32_t peer_streams;  /* client: how many streams the peer is assumed to allow until its
				 * settings have come; 0: 100 (RFC 9113 6.5.2) */
	bool wipe;              /* memory is overwritten before it is freed: it holds secrets */
};

/* NULL on lack of memory. h2_output() has the preface and the settings at once. */
struct h2 *h2_new(const struct h2_config *config);
/* NULL is fine; returns NULL. No handler is called: all stream handles are invalid. */
struct h2 *h2_free(struct h2 *h);
DEFINE_CLEANUP(struct h2, h2_free)

/* Take all bytes. Return 0, -EPROTO if the connection has to end (h2_output() may still have a
 * GOAWAY to send), or -ENOMEM. */
_warn_unused_ int h2_feed(struct h2 *h, struct str bytes);
/* Append output until out holds `enough` bytes or there is no more; out->max must leave H2_OUT_MIN
 * above `enough`. Return as h2_feed(). Call again when out was written. */
_warn_unused_ int h2_output(struct h2 *h, struct buf *out, size_t enough);
/* Whether h2_output() may have something. */
bool h2_wants_output(const struct h2 *h);
/* Whether nothing more is to be read or sent: close the connection when out is written. */
bool h2_is_done(const struct h2 *h);
/* Why the connection ended: fixed English text, "" while nothing is wrong. */
const char *h2_error_text(const struct h2 *h);
/* Whether the connection ended with ENHANCE_YOUR_CALM: the peer has used up one of the limits
 * above. */
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

/* Client: open a stream for a request, written from the model as in http/h1_write.h (framing
 * fields, Host and hop-by-hop fields are not copied). Return 0, -EINVAL for what must not be sent,
 * -EAGAIN if the peer takes no new streams, or -ENOMEM. */
_warn_unused_ int h2_request(struct h2 *h, const struct http_head *head, unsigned flags, void *user,
	struct h2_stream **ret);
/* Server: send the response, or an interim one before it (status below 200, never 101). Return 0,
 * -EINVAL or -ENOMEM. If the response was sent before the request is complete, the stream is reset
 * with H2_NO_ERROR (RFC 9113 8.1). */
_warn_unused_ int h2_respond(struct h2_stream *st, const struct http_head *head, unsigned flags);
/* There are more bytes for handlers.body to return. */
void h2_wake(struct h2_stream *st);
/* Only the trailers (copied; NULL: none) follow what handlers.body returns. Names that may not be
 * in trailers are left out. Not allowed after H2_END. Return 0, -ENOMEM or -E2BIG. */
_warn_unused_ int h2_end(struct h2_stream *st, const struct http_fields *trailers);
/* Reset the stream. st is invalid afterwards, and no handler is called for it again. */
void h2_reset(struct h2_stream *st, enum h2_error error);
/* n bytes of data were passed on: the peer may send as many more. When the stream is closed or
 * reset, the bytes not given back are given back to the connection automatically. */
void h2_consume(struct h2_stream *st, size_t n);
/* The peer may send n bytes more of st at once, even if fewer were not given back: then its window
 * has grown. */
void h2_credit(struct h2_stream *st, size_t n);
/* From now on the peer may have `window` bytes of st under way, which is more than before. The
 * connection's window stays as it is. Return 0, -EINVAL or -ENOMEM. */
_warn_unused_ int h2_widen(struct h2_stream *st, uint32_t window);
/* Count n bytes, which are kept for a time, against the stream's window only, so that other streams
 * can go on. */
void h2_consume_ahead(struct h2_stream *st, size_t n);

/* Allow no new streams. With an error also end the old ones; h2_is_done() is soon true then. */
void h2_goaway(struct h2 *h, enum h2_error error);
/* Client: how many more streams the peer takes now; 0 after goaway. */
unsigned h2_streams_free(const struct h2 *h);
/* Client: how many streams the peer takes at once. */
unsigned h2_streams_max(const struct h2 *h);
/* Number of streams that are not closed yet. */
unsigned h2_streams_open(const struct h2 *h);

void h2_stream_set_user(struct h2_stream *st, void *user);
void *h2_stream_user(const struct h2_stream *st);
uint32_t h2_stream_id(const struct h2_stream *st);
