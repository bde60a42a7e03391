/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One request (or tunnel) of the room, from its OPEN to the end of both directions.
 *
 * Streams and upstreams die in two steps: they are marked and taken out of everything at once, and
 * freed at the end of the loop's iteration, so a caller further up may still look at them. */

#include "base/hash.h"
#include "broker/chain.h"
#include "broker/constants.h"
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

/* How far a stream has come; stream_state.c has the table of how it may go on. */
enum stream_state {
	STREAM_JUDGED,     /* its head is being judged */
	STREAM_ASKING,     /* refused; it is being found out whose it is */
	STREAM_COLLECTING, /* its body has to be known first */
	STREAM_WAITING,    /* for a token */
	STREAM_READY,      /* goes when its line is written */
	STREAM_GOING,      /* to an origin; nothing of an answer was sent to the room */
	STREAM_ANSWERING,  /* the head of the answer was sent */
	STREAM_SWITCHED,   /* it has become a WebSocket, and that is on record */
	STREAM_ANSWERED,   /* END was sent: only the rest of the request is of interest */
	STREAM_CLOSED,     /* out of the table; freed soon */
	STREAM_STATES
};

/* What the gateway may still send on a stream. */
enum stream_request {
	REQUEST_OPEN,
	REQUEST_DROPPED, /* the rest of the body goes nowhere */
	REQUEST_ENDED,
	REQUEST_STATES
};

struct stream {
	UT_hash_handle hh;
	struct stream *next, *next_ready;
	struct broker *broker;
	uint32_t id, connection;
	struct net_client client;
	enum stream_state state;
	enum stream_request request;

	/* The request. A tunnel has none: its method is CONNECT. */
	enum net_kind kind;
	enum net_scheme scheme;
	struct host host;
	uint16_t port;
	struct http_head head;
	char *shown; /* the target as the room wrote it, if the head has another */
	enum net_body framing;
	uint64_t length; /* NET_BODY_LENGTH: still to come */
	bool is_head, idempotent, expects;
	struct verdict verdict;
	struct allowlist *policy; /* that the verdict's rule is of: a share in it */
	unsigned policy_number;

	/* Towards the origin. */
	struct buf body;  /* what it has not taken, or may have to be sent once more */
	size_t body_done; /* of that, taken */
	struct http_fields trailers;
	bool te_trailers;      /* the room reads the answer's */
	bool keep;             /* what was taken stays, for another try */
	unsigned char retries; /* how often it was sent once more */
	bool secret;           /* memory of the request is wiped */
	struct dial *dial;
	struct upstream *up;
	void *leg;                     /* of what is spoken there */
	bool http1;                    /* it needs HTTP/1.1 */
	struct pool_bucket *leads;     /* others wait for the connection that it makes */
	struct pool_bucket *waits;     /* for such a one */
	struct stream *ahead, *behind; /* in that line */

	/* If a filter or a signature needs the whole body first: it is collected in `body` up
	 * to whole_max, and the request goes on when it is complete. */
	bool whole;
	size_t whole_max, collected;
	void *filter[CHAIN_FILTERS]; /* states of the filters that have something to do with it */
	struct origin_probe *probe;  /* it asks nothing, and only makes a connection */
	struct fetch *fetch; /* it is the broker's own: the answer goes there, not to the gateway */

	/* Flow. */
	uint32_t window_in;  /* what the gateway may still send */
	uint32_t uncredited; /* what it has sent and not got back */
	uint32_t window_out; /* what it still takes */
	uint64_t discarded;
	size_t under_way, waiting; /* as counted in the broker's: bounds.c */

	struct tape_track track;

	/* For the log. */
	bool logged;
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
	uint32_t last;                      /* number that was given */
	struct stream *ready, **ready_tail; /* by `next_ready`: go when their intents are written */
};

/* 0, or -EPROTO if the gateway has broken the protocol. */
_warn_unused_ int stream_frame(struct broker *b, const struct chan_frame *f);
/* The answer is complete (or was refused): logs, and closes or discards what still comes. */
void stream_finish(struct stream *s);
/* One that is in no table: a request of our own to an https origin. NULL on lack of memory. */
struct stream *stream_internal(struct broker *b, const struct host *host, uint16_t port);
/* RESET to the gateway, and closed. */
void stream_reset(struct stream *s, enum net_reset why);
/* Takes it out of everything. */
void stream_close(struct stream *s);
void streams_reap(struct broker *b);
void streams_free(struct broker *b);
/* Body bytes went on their way, or nobody wants them: gives credit. */
void stream_drained(struct stream *s);

/* --- stream_state.c --- */
/* The only way to another state. One that is not in the table ends the network. */
void stream_go(struct stream *s, enum stream_state to);
bool stream_may_go(enum stream_state from, enum stream_state to);
/* Whether nothing more is to be done for the answer. */
static inline bool stream_is_over(const struct stream *s)
{
	return s->state >= STREAM_ANSWERED;
}
/* Whether the gateway has the head of the answer. */
static inline bool stream_has_answer(const struct stream *s)
{
	return s->state >= STREAM_ANSWERING;
}

/* The target as the room wrote it: what goes out may hold credentials. */
struct str stream_target(const struct stream *s);
/* Fills s->note, printable; a later note does not replace an earlier one. */
void stream_note(struct stream *s, const char *fmt, ...) _printf_(2, 3);
