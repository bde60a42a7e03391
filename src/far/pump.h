/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Moves bytes between a channel of a link and descriptors: pipes, terminals, sockets. Whoever does
 * not read stops his own channel alone. */

#include "far/carrier.h"

enum pump_flush {
	PUMP_NO_FLUSH,
	PUMP_READ,    /* what can be read from `in` now is on its way */
	PUMP_WRITTEN, /* what has come for `out` is written */
};

struct pump {
	struct link_channel channel; /* first */
	struct carrier *carrier;
	int in, out; /* what is read and goes to the other end; what is written. -1: none */
	struct loop_io in_io, out_io;
	struct buf late;  /* what `out` has not taken yet */
	bool is_reserved; /* pump_start() has not been called yet */
	bool ends;        /* `out` is closed when that is written */
	enum pump_flush flushes;
	size_t flushed; /* bytes that were read since pump_flush() */
	void *user;     /* of the owner, who sets it after pump_open() */
	/* Both directions have ended; the descriptors are closed. May free p. */
	void (*done)(struct pump *p);
	void (*clean)(struct pump *p); /* see pump_flush() */
};

/* Start to move bytes. in and out are taken, also on failure; they are not the same descriptor, and
 * nobody minds that they become non-blocking. number: see link_open(). p is the caller's, who keeps
 * it until done is called, or pump_close(). */
_warn_unused_ int pump_open(struct pump *p, struct carrier *c, uint32_t number, int in, int out,
	void (*done)(struct pump *p));
/* The same for descriptors that are not there yet: what comes for them waits. */
_warn_unused_ int pump_reserve(
	struct pump *p, struct carrier *c, uint32_t number, void (*done)(struct pump *p));
/* Here they are (taken, also on failure). May call done. */
_warn_unused_ int pump_start(struct pump *p, int in, int out);
/* Close everything at once. Nothing is called any more. */
void pump_close(struct pump *p);
/* Call clean, now or later, when that is true. What is left in `in` by somebody who goes on writing
 * is not waited for. Called once for each pump at most. */
void pump_flush(struct pump *p, enum pump_flush what, void (*clean)(struct pump *p));

/* Operations of a link all of whose channels are pumps. */
int pump_on_data(struct link *l, struct link_channel *c, struct str bytes);
int pump_on_end(struct link *l, struct link_channel *c);
void pump_on_stop(struct link *l, struct link_channel *c);
void pump_on_more(struct link *l, struct link_channel *c);

static inline bool pump_is_open(const struct pump *p)
{
	return link_is_open(&p->channel);
}
