/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One request of the room and its response: what is the same in HTTP/1 and HTTP/2. h1.c and
 * h2_stream.c own it, and say by a struct of operations how it is written to the room. */

#include "gateway/answer.h"
#include "gateway/request.h"
#include "gateway/stream.h"
#include "http/msg.h"

struct conn;
struct exchange;

/* The exchange may be gone after any of those that end it. */
struct exchange_ops {
	/* The answer to a request that asks for another protocol: returns whether it has changed
	 * to that. May be NULL. */
	bool (*upgrade)(struct exchange *x, const struct net_response *m, struct wire_in *fields);
	/* Write a head, which is the connection's (c->g->answer). False: it cannot be written. */
	bool (*interim)(struct exchange *x, struct http_head *head);
	bool (*head)(struct exchange *x, const struct net_response *m, struct http_head *head);
	/* As in struct stream_ops. */
	void (*data)(struct exchange *x, struct str bytes);
	void (*end)(struct exchange *x, uint16_t fields_n, struct wire_in *fields);
	void (*credit)(struct exchange *x);
	/* The broker has ended it; `a` is the answer if none was begun. */
	void (*broken)(struct exchange *x, const struct answer *a);
	/* It cannot be finished: the same, for what is wrong with what the broker sent. */
	void (*fail)(struct exchange *x, const struct answer *a);
	/* Sets the deadline for what is waited for now, see exchange_deadline(). */
	void (*arm)(struct exchange *x);
};

struct exchange {
	const struct exchange_ops *ops;
	struct conn *c;
	struct stream stream; /* towards the broker */

	bool to_head;              /* the request is a HEAD */
	bool wait_continue;        /* the client may wait for 100 before it sends its body */
	bool answered;             /* the response's head was sent */
	enum http_framing framing; /* of its body; NONE: bytes of it are dropped */
	uint64_t left;             /* HTTP_BODY_LENGTH */

	uint64_t window_end; /* of body_window_usec, while we wait for the body; 0: we do not */
	uint64_t window_bytes;
};

/* Asks the broker for the request. Returns 0 or -errno; nothing was begun then. */
_warn_unused_ int exchange_open(
	struct exchange *x, const struct http_head *head, struct request *r);
/* Tells of a request that was refused as r says; the answer to it. */
struct answer exchange_refusal(
	struct exchange *x, const struct http_head *head, const struct request *r);

/* When x ends if nothing moves: `usec` from now, or, if the client has to send something of its
 * body before anything goes on (waits), the end of a window in which enough of it has to come. */
uint64_t exchange_deadline(struct exchange *x, bool waits, uint64_t usec);
/* At that end: whether enough came, so that another window begins. */
bool exchange_keeps_pace(struct exchange *x);

/* Reads n fields of a frame. 0 or -EINVAL. */
_warn_unused_ int exchange_fields(struct wire_in *in, unsigned n, struct http_fields *ret);
/* Fills the head that all share (c->g->answer) with what the frame says. 0 or -EINVAL. */
_warn_unused_ int exchange_model(
	struct exchange *x, const struct net_response *m, struct wire_in *fields);
/* Whether n bytes more of the response's body are not more than was announced. */
_warn_unused_ bool exchange_take(struct exchange *x, size_t n);
/* Whether less came than was announced. */
bool exchange_is_short(const struct exchange *x);
