/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Write one frame of typed values into a channel. A frame that does not fit is withdrawn. */

#include "ipc/chan.h"
#include "ipc/wire.h"

struct frame_out {
	struct chan *c;
	size_t mark;
	struct wire_out w; /* w.b is NULL if the channel is full */
};

static inline struct frame_out frame_begin(struct chan *c, uint16_t type)
{
	struct frame_out f = {.c = c};

	f.w = wire_out(chan_begin(c, type, &f.mark));
	if (!f.w.b)
		f.w.error = -1; /* every put is then a no-op */
	return f;
}

/* Return 0, -ENOBUFS if the channel is full, or another -errno. fds are borrowed. */
_warn_unused_ int frame_end(struct frame_out *f, const int *fds, unsigned fds_n);
