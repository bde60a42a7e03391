/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One stream of bytes to the other end of a far room, made of frames. It carries messages and
 * channels of bytes, and survives its carrier (an ssh, a kubectl exec): frames are kept until the
 * other end has acknowledged them, and a new carrier goes on where the other end stopped reading.
 *
 * A frame is an 8-byte header (u32 payload length, u8 type, 3 zero bytes) and the payload; integers
 * are little-endian. HELLO, ACK, PING, PONG and GONE belong to the carrier. All others count: what
 * was received is the number of bytes of such frames, and a HELLO and each ACK say it.
 *
 * There are two windows, so that nobody waits for a reader who stalls, and nothing is unbounded.
 * A channel's window holds what was sent and not yet consumed by the reader at the other end. One
 * window over all channels holds data that was sent and not yet received, so that a message waits
 * only for little data before it. Both windows grow with bandwidth times delay.
 *
 * Pure: the caller moves the bytes, and says what time it is (monotonic, in microseconds). The
 * other end is hostile. Functions return 0 or -errno; -EPROTO means that the other end broke the
 * rules, -ENOENT that the far end is gone; the link is of no use any more. Not thread-safe. */

#include "base/buf.h"
#include "base/hash.h"

enum {
	LINK_VERSION = 1,
	LINK_HEADER = 8,
	LINK_MAX_PAYLOAD = 3 * 1024 * 1024, /* of a message */
	LINK_MAX_DATA = 32 * 1024,          /* of one DATA frame */
	LINK_MAX_CHANNELS = 1024,
	LINK_WINDOW = 64 * 1024, /* of a channel, at first */
	LINK_WINDOW_MAX = 8 * 1024 * 1024,
	LINK_GROWN_MAX = 48 * 1024 * 1024, /* by what the windows of all channels grow */
	LINK_FLIGHT = 256 * 1024,          /* data on its way, at first */
	LINK_FLIGHT_MAX = 16 * 1024 * 1024,
	LINK_MAX_KEPT = LINK_FLIGHT_MAX + 4 * LINK_MAX_PAYLOAD,
	LINK_SESSION = 16,
};

enum link_frame {
	LINK_HELLO = 1, /* u32 version, LINK_SESSION bytes, u64 received: first on each carrier */
	LINK_ACK,       /* u64 received */
	LINK_PING,      /* nothing */
	LINK_PONG,      /* nothing */
	LINK_GONE, /* nothing: in place of the far end's HELLO, if there is no far end any more */
	LINK_MESSAGE = 16, /* u16 type, then the message */
	LINK_DATA,         /* u32 channel, then 1 to LINK_MAX_DATA bytes */
	LINK_END,          /* u32 channel: the sender sends no more data on it */
	LINK_STOP,         /* u32 channel: the sender wants no more data on it */
	LINK_CREDIT,       /* u32 channel, u32 n: it may be sent so much more */
};

/* A stream of bytes in one direction or both. Embedded in its owner; it has to be closed before it
 * is freed. */
struct link_channel {
	UT_hash_handle hh;
	uint32_t number;
	bool sends, receives; /* these directions have not ended */
	bool waits;           /* link_may_send() was 0: ops->more will be called */
	uint64_t credit;      /* what may be sent */
	uint64_t allowed;     /* what may still be received */
	uint64_t window;      /* what is received and not consumed, at most */
	uint64_t consumed;    /* not granted again yet */
	uint64_t since_grown; /* consumed since the window was enlarged */
	uint64_t held;        /* received and not consumed */
};

struct link;

/* Calls of a link to its owner, from link_feed(). They may open and close channels. */
struct link_ops {
	/* Return 0 or -errno, which link_feed() returns. */
	int (*message)(struct link *l, uint16_t type, struct str payload);
	/* The bytes have to be taken; link_consumed() says later that they are gone. */
	int (*data)(struct link *l, struct link_channel *c, struct str bytes);
	/* The other end sends no more data on this channel. */
	int (*end)(struct link *l, struct link_channel *c);
	/* The other end wants no more data on this channel. */
	void (*stop)(struct link *l, struct link_channel *c);
	/* link_may_send() was 0 and is not any more. */
	void (*more)(struct link *l, struct link_channel *c);
	/* May be NULL. The other end has greeted over a new carrier. */
	void (*greeted)(struct link *l);
};

struct link {
	const struct link_ops *ops;
	struct link_channel *channels;
	uint8_t session[LINK_SESSION];
	bool is_near; /* it has chosen the session, and its channels have even numbers */
	bool known;   /* so does the far end: it has heard of the session */
	bool greeted; /* HELLO has come over this carrier */
	bool owes_ack, owes_ping, owes_pong;
	uint32_t last[2]; /* the last number of a channel: even, odd */

	struct buf in;     /* an incomplete frame */
	struct buf kept;   /* frames that count, from `acked` on */
	struct buf brief;  /* frames that do not count */
	uint64_t acked;    /* what the other end has received */
	uint64_t written;  /* what was given to this carrier */
	uint64_t sent;     /* what was given to any carrier */
	uint64_t boundary; /* the end of the frame that is being written */
	uint64_t received;

	uint64_t flight;  /* data that may be on its way */
	uint64_t grown;   /* by what windows of channels were enlarged */
	uint64_t rtt_min; /* 0: not known */
	uint64_t sample_at, sample_from, sample_mark; /* a measurement; sample_at 0: none */
	uint64_t heard;                               /* when bytes came last */
};

/* session: LINK_SESSION bytes that the near end has chosen, NULL at the far end, which learns them.
 * ops is borrowed. */
void link_init(struct link *l, const struct link_ops *ops, const uint8_t *session);
void link_done(struct link *l);

/* There is a new carrier: whatever was half read or half written is forgotten. */
_warn_unused_ int link_restart(struct link *l, uint64_t now);
/* Bytes have come. */
_warn_unused_ int link_feed(struct link *l, struct str bytes, uint64_t now);
/* Return bytes to be written next, valid until the next call; an empty view if there are none. */
struct str link_pending(struct link *l);
/* So many of them were written. */
void link_written(struct link *l, size_t n, uint64_t now);
/* Ask the other end whether it is there: it answers at once, so l->heard changes. */
void link_ping(struct link *l);

/* Send a message. -E2BIG: too much waits. */
_warn_unused_ int link_send(struct link *l, uint16_t type, struct str payload);

/* Return a number for a new channel of ours. */
uint32_t link_new_number(struct link *l);
/* Open a channel. Its number is from link_new_number(), or the other end has named it: -EPROTO if
 * such a number may not be new, -E2BIG if there are too many channels. What comes for a channel
 * that could not be opened is ignored. */
_warn_unused_ int link_open(
	struct link *l, struct link_channel *c, uint32_t number, bool sends, bool receives);
/* The other end has named a channel that is not wanted: what comes for it is ignored. */
_warn_unused_ int link_skip(struct link *l, uint32_t number);
/* Forget the channel; what still comes for it is ignored. Does nothing if it is not open. */
void link_close(struct link *l, struct link_channel *c);
/* Return how many bytes may be sent now. If none, ops->more is called later. */
size_t link_may_send(struct link *l, struct link_channel *c);
/* Send data, as much as link_may_send() said at most. */
_warn_unused_ int link_data(struct link *l, struct link_channel *c, struct str bytes);
/* End our direction. */
_warn_unused_ int link_end(struct link *l, struct link_channel *c);
/* Say that no more data is wanted. */
_warn_unused_ int link_stop(struct link *l, struct link_channel *c);
/* n bytes that ops->data has given are gone. */
_warn_unused_ int link_consumed(struct link *l, struct link_channel *c, size_t n);

static inline bool link_is_open(const struct link_channel *c)
{
	return c->number != 0;
}
