/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Accepts captured connections on listeners that were made inside the room's network: the local
 * address of the accepted socket is the destination that the room meant. */

#include "base/macro.h"
#include "loop/loop.h"

struct gateway;

struct listener {
	struct gateway *g; /* NULL: not in use */
	int fd;
	struct loop_io io;
};

/* All listeners, and connections that a relay sends (captured.h), share one rate. */
struct accept_rate {
	uint64_t second; /* start of the second that is being counted */
	unsigned n;
	uint64_t said; /* when a limit was last logged */
	bool paused;
	struct loop_timer timer;
};

/* Take fd. Return 0 or -errno. */
_warn_unused_ int listener_add(struct gateway *g, struct listener *l, int fd);
void listener_done(struct listener *l);
/* A connection has ended: accept again if the limit of connections had stopped it. */
void listener_resume(struct gateway *g);

/* Return whether one more connection may be taken now, and count it. If not, none is taken until a
 * limit allows it again. */
bool listener_may_take(struct gateway *g);
/* There was none. */
void listener_took_none(struct gateway *g);
/* The same, because the system lacks something: take none for a moment. */
void listener_wait(struct gateway *g);
