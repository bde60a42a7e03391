/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What carries a link: two descriptors, which may be exchanged for others when they break. */

#include "far/link.h"
#include "loop/loop.h"

enum {
	CARRIER_BEAT_SEC = 5,     /* so often each end asks whether the other is there */
	CARRIER_SILENCE_SEC = 20, /* after that, a carrier is given up */
};

struct carrier {
	struct loop *loop;
	struct link link;
	int in, out; /* -1: there is none */
	struct loop_io in_io, out_io;
	struct loop_timer beat;
	struct loop_job flush;
	int failed; /* see carrier_fail() */
	/* The carrier is lost and closed. why: -EPROTO, -E2BIG or -ENOMEM if the link is of no use
	 * any more, -ENOENT if nobody is at its other end, and another -errno if it may go on over
	 * a new carrier. May free c. */
	void (*cut)(struct carrier *c, int why);
};

/* session, ops: see link_init(). */
void carrier_init(struct carrier *c, struct loop *loop, const struct link_ops *ops,
	const uint8_t *session, void (*cut)(struct carrier *c, int why));
void carrier_done(struct carrier *c);

/* Go on with these descriptors (taken; not the same one), in place of those that there are. */
_warn_unused_ int carrier_attach(struct carrier *c, int in, int out);
/* Close the descriptors, without a call of cut. */
void carrier_detach(struct carrier *c);
/* Something was given to the link: write it at the end of this iteration. */
void carrier_kick(struct carrier *c);
/* The link has failed (r < 0) outside of its own calls: give everything up at the end of this
 * iteration. */
void carrier_fail(struct carrier *c, int r);
