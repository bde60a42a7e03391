/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One request (or tunnel) of the room, from its OPEN to the end of both directions.
 *
 * Streams and upstreams end in two steps: they are marked and removed from all lists at once, and
 * freed at the end of the loop's iteration, so that callers further up the stack may still look at
 * them. */

#include "base/hash.h"
#include "broker/chain.h"
#include "broker/constants.h"
#include "broker/expect.h"
#include "broker/tape.h"
#include "http/msg.h"
#include "ipc/netchan.h"
#include "policy/decide.h"

struct broker;
struct chan_frame;
struct dial;
struct fetch;
struct origin_probe;
struct pool_bucket;
struct upstream;

/* The state of a stream; stream_state.c has the table of permitted changes. */
enum stream_state {
	STREAM_JUDGED,     /* its head is being judged */
	STREAM_ASKING,     /* refused; the supervisor is asked which process made it */
	STREAM_HELD,       /* refused; a person is asked (watch.c) */
	STREAM_COLLECTING, /* its body is being collected */
	STREAM_WAITING,    /* for a token */
	STREAM_READY,      /* is sent when its log line is written */
	STREAM_GOING,      /* being sent to an origin; no part of an answer was sent to the room */
	STREAM_ANSWERING,  /* the head of the answer was sent */
	STREAM_SWITCHED,   /* it has become a WebSocket, and that is on record */
	STREAM_ANSWERED,   /* END was sent; the rest of the request may still come */
	STREAM_CLOSED,     /* removed from the table; freed soon */
	STREAM_STATES
};

/* What the gateway may still send on a stream. */
enum stream_request {
	REQUEST_OPEN,
	REQUEST_DROPPED, /* the rest of the body is dropped */
	REQUEST_ENDED,
	REQUEST_STATES
};

struct stream {
	UT_hash_handle hh;
	struct stream *next, *next_ready;
	struct broker *broker;
	uint32_t id;
	struct net_client client;
	enum stream_state state;
	enum stream_request request;

	/* The request. A tunnel has none: its method is CONNECT. */
	enum net_kind kind;
	enum net_scheme scheme;
	struct host host;
	uint16_t port;
	struct http_head head;
	char *shown; /* the target as the room wrote it, if that in the head is different */
	enum net_body framing;
	uint64_t length; /* NET_BODY_LENGTH: still to come */
	bool is_head, idempotent;
	struct expectation expect;
	struct verdict verdict;
	struct allowlist *policy; /* of the verdict's rule; a reference */
	unsigned policy_number;
	bool once; /* a person has let it go on, and not the policy in force */

	/* Towards the origin. */
	struct buf body;  /* bytes that it has not taken, or that may have to be sent again */
	size_t body_done; /* bytes of `body` that were taken */
	struct http_fields trailers;
	bool te_trailers;      /* the room reads the trailers of the answer */
	bool keep;             /* keep the bytes that were taken, for another try */
	unsigned char retries; /* how often it was sent again */
	bool secret;           /* the memory of the request must be wiped */
	struct dial *dial;
	struct upstream *up;
	void *leg;                     /* state of the protocol for this stream */
	bool http1;                    /* it needs HTTP/1.1, or its client speaks that */
	bool keep_alive;               /* the client has asked for "Connection: keep-alive" */
	struct pool_bucket *leads;     /* other streams wait for the connection that it makes */
	struct pool_bucket *waits;     /* it waits for such a connection */
	struct stream *ahead, *behind; /* in that queue */

	/* If a filter or a signature needs the whole body first: it is collected in `body` up
	 * to whole_max, and the request goes on when it is complete. */
	bool whole;
	size_t whole_max, collected;
	void *filter[CHAIN_FILTERS]; /* states of the filters that are active for it */
	const void *token;           /* STREAM_WAITING: what it waits for */
	struct origin_probe *probe;  /* it sends no request, it only makes a connection */
	struct fetch *fetch;         /* the broker's own request, which takes the answer */

	/* Flow control. */
	uint32_t window;     /* bytes of the request that may be under way at once */
	uint32_t taken;      /* ... that the origin has taken since it was as many */
	uint32_t window_in;  /* ... that the gateway may still send */
	uint32_t uncredited; /* bytes that it has sent and got no credit for */
	uint32_t window_out; /* bytes that it still takes */
	uint64_t discarded;
	size_t under_way, waiting; /* its part of the counts in struct bounds */

	struct tape_track track;

	/* For the log. */
	bool logged;
	bool went_out; /* its head was given to a connection, and with it the values of secrets */
	uint64_t started, active; /* monotonic */
	uint64_t bytes_in, bytes_out;
	uint16_t status;
	unsigned masked, dropped, collapsed, scrubbed;
	char note[NOTE_MAX];
};

struct streams {
	struct stream *open;         /* by number, in the order of their opening */
	struct stream *dead, *spare; /* lists by `next` */
	unsigned spare_n;
	uint32_t last;                      /* last number that was used */
	struct stream *ready, **ready_tail; /* by `next_ready`, until their intents are written */
};

/* Handle a frame. Return 0, or -EPROTO if the gateway has broken the protocol. */
_warn_unused_ int stream_frame(struct broker *b, const struct chan_frame *f);
/* The answer is complete (or was refused): log it, then close s or discard the rest of its
 * request. */
void stream_finish(struct stream *s);
/* Return a stream for a request of the broker itself to an https origin. It is not in the table.
 * NULL on lack of memory. */
struct stream *stream_internal(struct broker *b, const struct host *host, uint16_t port);
/* Send RESET to the gateway and close s. */
void stream_reset(struct stream *s, enum net_reset why);
/* Log the result and remove s from everything. streams_reap() frees it. */
void stream_close(struct stream *s);
void streams_reap(struct broker *b);
void streams_free(struct broker *b);
/* Give credit to the gateway after body bytes were passed on or dropped. */
void stream_drained(struct stream *s);

/* --- stream_state.c --- */
/* Change the state; nothing else may do so. A change that is not in the table ends the network. */
void stream_go(struct stream *s, enum stream_state to);
bool stream_may_go(enum stream_state from, enum stream_state to);
/* Return whether nothing more has to be done for the answer. */
static inline bool stream_is_over(const struct stream *s)
{
	return s->state >= STREAM_ANSWERED;
}
/* Return whether the gateway has the head of the answer. */
static inline bool stream_has_answer(const struct stream *s)
{
	return s->state >= STREAM_ANSWERING;
}

/* Return the target as the room wrote it. The target that is sent may hold credentials. */
struct str stream_target(const struct stream *s);
/* Set s->note, which must be printable. A later note does not replace an earlier one. */
void stream_note(struct stream *s, const char *fmt, ...) _printf_(2, 3);
