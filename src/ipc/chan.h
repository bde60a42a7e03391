/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Framed messages over a connected unix stream socket, with descriptors attached.
 *
 * A frame is an 8-byte header (u32 payload length, u16 type, u8 number of descriptors, u8 zero)
 * and the payload. Frames are gathered in one buffer and written together; what is received is
 * parsed in place. The other end is never trusted: a frame that is too long, has descriptors that
 * nobody expects, or a header that does not fit ends the channel.
 *
 * Not thread-safe. The channel owns its descriptor. */

#include "base/buf.h"
#include "base/err.h"
#include <stdint.h>

enum {
	CHAN_HEADER = 8,
	CHAN_MAX_FDS = 16,        /* attached to one frame */
	CHAN_MAX_QUEUED_FDS = 64, /* received and not yet taken, or waiting to be sent */
};

struct chan {
	int fd;
	size_t max_payload; /* received */
	size_t max_send;    /* the same, unless it was set otherwise after chan_init */
	bool eof;           /* the other end has closed and everything was read */
	bool watched;       /* may be set after chan_init: the owner calls chan_recv again when the
			     * socket is readable, so a short read needs no second one to say that
			     * there is no more (nor, at once, that it was the last) */
	bool drained;       /* the last read was short */
	struct buf in, out;
	size_t taken;   /* bytes of `in` that the last frame covers */
	size_t in_high; /* of the memory of `in`, how much was ever written */
	int in_fds[CHAN_MAX_QUEUED_FDS];
	unsigned in_fds_n;
	struct chan_out_fds {
		uint64_t at; /* offset in the stream of the frame that carries them */
		unsigned n;
		int fds[CHAN_MAX_FDS];
	} out_fds[CHAN_MAX_QUEUED_FDS / 4];
	unsigned out_fds_n;
	uint64_t sent; /* bytes written so far */
};

struct chan_frame {
	uint16_t type;
	struct str payload;    /* valid until the next chan_recv */
	int fds[CHAN_MAX_FDS]; /* owned by the receiver: take with TAKE_FD, the rest are closed by
				* chan_frame_done */
	unsigned fds_n;
};

/* Takes fd and makes it non-blocking. max_out bounds what may wait to be written. */
_warn_unused_ int chan_init(struct chan *c, int fd, size_t max_payload, size_t max_out);
void chan_done(struct chan *c);

/* Nobody expects descriptors from the other end: the kernel shall refuse to carry them if it can
 * (Linux 6.16). What comes all the same is closed as every descriptor that nobody takes. */
void chan_refuse_fds(struct chan *c);

/* Starts a frame; write the payload with a wire_out over the returned buffer (&c->out) or
 * buf_reserve/commit, then end it. Returns NULL when `max_out` is reached. */
struct buf *chan_begin(struct chan *c, uint16_t type, size_t *ret_mark);
/* Ends the frame begun at mark. fds are duplicated (borrowed from the caller). Returns 0 or -errno;
 * on failure the frame is withdrawn. */
_warn_unused_ int chan_end(struct chan *c, size_t mark, const int *fds, unsigned fds_n);
/* Withdraws the frame begun at mark. */
void chan_abort(struct chan *c, size_t mark);
/* A whole frame in one call. */
_warn_unused_ int chan_send(
	struct chan *c, uint16_t type, struct str payload, const int *fds, unsigned fds_n);

/* Writes what it can. Returns 0 (check chan_pending), or -errno (-EPIPE: the other end is gone). */
_warn_unused_ int chan_flush(struct chan *c);
static inline size_t chan_pending(const struct chan *c)
{
	return buf_len(&c->out);
}

/* Reads once from the socket if no whole frame is buffered and takes the next frame.
 * 1: a frame is in ret. 0: nothing more now. -EPIPE: the other end closed. -EPROTO: malformed.
 * Other -errno: the socket failed. A frame's payload and untaken descriptors are released by the
 * next call or by chan_frame_done. */
_warn_unused_ int chan_recv(struct chan *c, struct chan_frame *ret);
void chan_frame_done(struct chan_frame *f);

/* For programs without a loop: flushes all and waits until a frame is there or timeout_ms (-1: for
 * ever) has passed: -ETIMEDOUT. Otherwise as chan_recv, but never 0. */
_warn_unused_ int chan_recv_wait(struct chan *c, struct chan_frame *ret, int timeout_ms);
/* Flushes everything, waiting as long as it takes (at most timeout_ms, -1: for ever). */
_warn_unused_ int chan_flush_wait(struct chan *c, int timeout_ms);
