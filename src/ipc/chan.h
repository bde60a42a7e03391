/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Framed messages over a connected unix stream socket, with descriptors attached.
 *
 * A frame is an 8-byte header (u32 payload length, u16 type, u8 number of descriptors, u8 zero) and
 * the payload. Frames are gathered in one buffer and written together; received frames are parsed
 * in place. The other end is never trusted: a frame that is too long, has unexpected descriptors or
 * a malformed header ends the channel.
 *
 * Not thread-safe. The channel owns its descriptor. */

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include <stdint.h>

enum {
	CHAN_HEADER = 8,
	CHAN_MAX_FDS = FD_ATTACHED_MAX, /* attached to one frame */
	CHAN_MAX_QUEUED_FDS = 64,       /* received but not taken yet, or waiting to be sent */
};

struct chan {
	int fd;
	size_t max_payload; /* limit for received frames */
	size_t max_send;    /* limit for sent frames; the same, unless changed after chan_init */
	bool eof;           /* the other end has closed and everything was read */
	bool watched;       /* may be set after chan_init: the owner calls chan_recv again when the
			     * socket is readable, so a short read need not be followed by a second
			     * one to find that there is no more, or the end */
	bool drained;       /* the last read was short */
	struct buf in, out;
	size_t taken;   /* bytes of `in` that the last frame covers */
	size_t in_high; /* how much of the memory of `in` was ever written */
	int in_fds[CHAN_MAX_QUEUED_FDS];
	unsigned in_fds_n;
	struct chan_out_fds {
		uint64_t at; /* stream offset of the frame that carries them */
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

/* Take fd and make it non-blocking. max_out limits the bytes that wait to be written. */
_warn_unused_ int chan_init(struct chan *c, int fd, size_t max_payload, size_t max_out);
void chan_done(struct chan *c);

/* Ask the kernel not to carry descriptors from the other end (Linux 6.16). If some arrive anyway,
 * they are closed like all that are not taken. */
void chan_refuse_fds(struct chan *c);

/* Start a frame. Write the payload with a wire_out over the returned buffer (&c->out) or
 * buf_reserve/commit, then end it. Return NULL if max_out is reached. */
struct buf *chan_begin(struct chan *c, uint16_t type, size_t *ret_mark);
/* End the frame that began at mark. fds are duplicated (borrowed from the caller). Return 0 or
 * -errno; on failure the frame is withdrawn. */
_warn_unused_ int chan_end(struct chan *c, size_t mark, const int *fds, unsigned fds_n);
/* Withdraw the frame that began at mark. */
void chan_abort(struct chan *c, size_t mark);
/* Send a whole frame in one call. */
_warn_unused_ int chan_send(
	struct chan *c, uint16_t type, struct str payload, const int *fds, unsigned fds_n);

/* Write as much as possible. Return 0 (check chan_pending), or -errno (-EPIPE: the other end is
 * gone). */
_warn_unused_ int chan_flush(struct chan *c);
static inline size_t chan_pending(const struct chan *c)
{
	return buf_len(&c->out);
}

/* Take the next frame; read from the socket if no whole frame is buffered. Return 1 if a frame is
 * in ret, 0 if there is none now, -EPIPE if the other end has closed, -EPROTO if it is malformed,
 * or another -errno if the socket failed. The next call or chan_frame_done releases a frame's
 * payload and untaken descriptors. */
_warn_unused_ int chan_recv(struct chan *c, struct chan_frame *ret);
void chan_frame_done(struct chan_frame *f);

/* For programs without a loop: flush everything and wait until a frame arrives or timeout_ms (-1:
 * for ever) has passed (-ETIMEDOUT). Otherwise as chan_recv, but never returns 0. */
_warn_unused_ int chan_recv_wait(struct chan *c, struct chan_frame *ret, int timeout_ms);
/* Flush everything and wait until that is done, at most timeout_ms (-1: for ever). */
_warn_unused_ int chan_flush_wait(struct chan *c, int timeout_ms);
