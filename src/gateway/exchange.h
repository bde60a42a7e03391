/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One request of the room and its response: the part that is the same in HTTP/1 and HTTP/2. h1.c
 * and h2_stream.c own it, and provide a struct of operations that write to the room. */

#include "gateway/answer.h"
#include "gateway/request.h"
#include "gateway/stream.h"
#include "http/msg.h"

struct conn;
struct exchange;

/* An operation that ends the exchange may also free it. */
struct exchange_ops {
	/* What the broker sends. Its interim, head and reset are the functions at the end of this
	 * file, which call the operations below. */
	const struct stream_ops *stream;
	/* A response has come to a request that may have asked for another protocol. Return whether
	 * the connection has changed to that protocol. May be NULL. */
	bool (*upgrade)(struct exchange *x, const struct net_response *m, struct wire_in *fields);
	/* Write a head, which is c->g->answer. Return false if it cannot be written. */
	bool (*interim)(struct exchange *x, struct http_head *head);
	bool (*head)(struct exchange *x, const struct net_response *m, struct http_head *head);
	/* The broker has ended the exchange; `a` is the answer if none was begun. */
	void (*broken)(struct exchange *x, const struct answer *a);
	/* Like broken(), but because the broker sent something wrong. */
	void (*fail)(struct exchange *x, const struct answer *a);
	/* Set the deadline for what the exchange waits for now: see exchange_deadline(). */
	void (*arm)(struct exchange *x);
};

struct exchange {
	const struct exchange_ops *ops;
	struct conn *c;
	struct stream stream; /* towards the broker */

	bool to_head;       /* the request is a HEAD */
	bool wait_continue; /* the client may wait for 100, and has sent nothing of its body */
	bool answered;      /* the response's head was sent */
	enum http_framing framing; /* of the response's body; NONE: the body is dropped */
	uint64_t left;             /* HTTP_BODY_LENGTH: bytes still to come */

	uint64_t window_end; /* end of body_window_usec; 0 if we do not wait for the body */
	uint64_t window_bytes;
};

static inline struct exchange *exchange_of(struct stream *s)
{
	return container_of(s, struct exchange, stream);
}

/* Ask the broker for the request. Return 0, or -errno with nothing begun. */
_warn_unused_ int exchange_open(
	struct exchange *x, const struct http_head *head, struct request *r);
/* Log that the request was refused as r says. Return the answer to it. */
struct answer exchange_refusal(
	struct exchange *x, const struct http_head *head, const struct request *r);

/* Return when x ends if nothing moves: `usec` from now or, if x waits for the client to send more
 * of its body (waits), the end of a window in which enough of it has to come. */
uint64_t exchange_deadline(struct exchange *x, bool waits, uint64_t usec);
/* At the end of a window, return whether enough came. If so, another window begins. */
bool exchange_keeps_pace(struct exchange *x);

/* Read n fields of a frame into ret. Return 0 or -EINVAL. */
_warn_unused_ int exchange_fields(struct wire_in *in, unsigned n, struct http_fields *ret);
/* Fill the shared head, c->g->answer, from the frame. Return 0 or -EINVAL. */
_warn_unused_ int exchange_model(
	struct exchange *x, const struct net_response *m, struct wire_in *fields);
/* Count n more bytes of the response's body. Return false if they are more than was announced. */
_warn_unused_ bool exchange_take(struct exchange *x, size_t n);
/* Whether less of the body came than was announced. */
bool exchange_is_short(const struct exchange *x);

/* For struct stream_ops. */
void exchange_on_interim(struct stream *s, const struct net_response *m, struct wire_in *fields);
void exchange_on_head(struct stream *s, const struct net_response *m, struct wire_in *fields);
void exchange_on_reset(struct stream *s, enum net_reset why);
