/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: HTTP/2 on a connection to an origin. Each of the room's streams is one
 * stream of the connection (upstream_h2_leg.c). The total of held answer bytes is limited. Above
 * the limit, a connection that holds some of them is not read, and new requests use another one. If
 * the room is behind with all answers of a connection, what comes waits in the socket: reading it
 * would help nobody.
 *
 * All writing and reading is done in upstream_h2_work(), once for everything that happened in an
 * iteration of the loop, so that small frames of many streams share TLS records. */
#include "broker/upstream_h2.h"
#include "base/clock.h"
#include "base/fd.h"
#include "broker/broker_internal.h"
#include "broker/dial.h"
#include "broker/pool.h"
#include "broker/response.h"
#include "broker/stream.h"
#include "broker/upstream.h"
#include "ipc/chan.h"
#include "loop/loop.h"

#include <errno.h>
#include <stdio.h>
#include <utlist.h>

static const struct upstream_ops upstream_h2;

enum {
	READS_AT_ONCE = 8,
	WINDOW = 32 * 1024 * 1024, /* what is not read holds up TCP long before that */
	OUT_ENOUGH = 32 * 1024,
};
#define SILENT_USEC (5 * USEC_PER_SEC)

static struct h2_origin *upstream_h2_of(const struct upstream *u)
{
	return u->protocol;
}

/* Return whether o has to stop reading because the room does not read its answers. */
static bool is_held_up(const struct h2_origin *o)
{
	const struct broker *b = o->u->broker;

	return o->held > 0 && b->bounds.held > legs_held_max(b);
}

/* Return whether whatever comes would only be held, beyond what a first window allows. A stream
 * that sends or waits for its answer may need what comes. */
static bool is_behind(const struct h2_origin *o)
{
	const struct leg *l;
	bool behind = false;

	DL_FOREACH (o->legs, l) {
		if (l->response_ended)
			continue;
		if (!leg_has_sent(l) || l->window == H2_ORIGIN_STREAM_WINDOW ||
			buf_len(&l->held) == 0)
			return false;
		behind = true;
	}
	return behind;
}

/* The connection ended: its requests are sent again or fail. */
static void lost(struct h2_origin *o, const char *why)
{
	struct upstream *u = o->u;
	bool used = u->used;
	struct leg *l;

	pool_remove(u);
	o->going = true;
	while ((l = o->legs)) {
		struct stream *s = l->s;

		/* RFC 9112 9.3.1. Each gets a connection of its own, as one of them may be the
		 * reason for the end. */
		if (leg_take_back(l, s->idempotent && used ? 1 : 0)) {
			dial_start(s);
			continue;
		}
		leg_free(l);
		response_lost(s, why);
	}
	upstream_close(u);
}

/* Return false if the connection is broken. */
static bool upstream_h2_flush(struct h2_origin *o)
{
	for (;;) {
		size_t n = 0;
		enum tls_io io;

		if (h2_output(o->h2, &o->out, OUT_ENOUGH) < 0)
			return false;
		if (buf_len(&o->out) == 0)
			break;
		io = upstream_write(o->u, buf_str(&o->out), &n);
		if (io == TLS_IO_WRITE || io == TLS_IO_READ)
			return true;
		if (io != TLS_IO_OK)
			return false;
		if (o->secret)
			explicit_bzero(buf_data(&o->out), n);
		buf_consume(&o->out, n);
	}
	if (!o->legs)
		buf_done(&o->out);
	return true;
}

/* Requests of the broker itself do not wait for the gateway, which would not resume them. */
static bool serves_room(const struct h2_origin *o)
{
	const struct leg *l;

	DL_FOREACH (o->legs, l)
		if (!l->s->fetch)
			return true;
	return false;
}

static bool may_read(struct h2_origin *o)
{
	struct broker *b = o->u->broker;

	if (chan_pending(&b->net) > OUT_HIGH && serves_room(o)) {
		b->bounds.full = true;
		return false;
	}
	if (!is_held_up(o))
		return !is_behind(o);
	b->bounds.held_up = true;
	return false;
}

static void upstream_h2_watch(struct h2_origin *o)
{
	bool out = o->u->want_out || buf_len(&o->out) > 0;

	if (!upstream_watch(o->u, !o->paused, out))
		lost(o, "no memory to watch a connection");
}

/* Read and process some bytes. Return false if there are no more, or o is gone. */
static bool read_some(struct h2_origin *o)
{
	struct upstream *u = o->u;
	size_t n = 0;
	enum tls_io io;

	o->paused = !may_read(o);
	if (o->paused)
		return false;
	io = upstream_read(u, u->broker->scratch, SCRATCH, &n);
	if (io == TLS_IO_READ || io == TLS_IO_WRITE) {
		u->want_out = io == TLS_IO_WRITE;
		return false;
	}
	if (io != TLS_IO_OK) {
		lost(o, upstream_error(u));
		return false;
	}
	o->asked = 0;
	if (h2_feed(o->h2, str_make(u->broker->scratch, n)) < 0) {
		char why[NOTE_MAX];

		snprintf(why, sizeof(why), "HTTP/2: %s", h2_error_text(o->h2));
		(void)upstream_h2_flush(o); /* its GOAWAY */
		lost(o, why);
		return false;
	}
	return true;
}

/* Put the connection where it belongs in the pool, or close it. */
static void place(struct h2_origin *o)
{
	struct upstream *u = o->u;

	o->going |= h2_is_done(o->h2);
	if (o->going) {
		pool_remove(u);
		if (!o->legs)
			upstream_close(u);
		else if (h2_is_done(o->h2))
			lost(o, h2_error_text(o->h2));
	} else if (!o->legs && (u->shared || !u->bucket)) {
		pool_put(u, POOL_IDLE_USEC);
	}
}

static void upstream_h2_work(struct upstream *u)
{
	struct h2_origin *o = upstream_h2_of(u);
	int reads = 0;

	while (reads < READS_AT_ONCE && !u->dead && !(reads > 0 && u->drained) && read_some(o))
		reads++;
	if (u->dead)
		return;
	if (!upstream_h2_flush(o)) {
		lost(o, "the connection was lost");
		return;
	}
	place(o);
	if (u->dead)
		return;
	if (reads > 0 && o->legs)
		fd_acknowledge(u->fd);
	upstream_h2_watch(o);
	if (!u->dead && reads == READS_AT_ONCE && !u->drained)
		upstream_work_later(u);
}

static void on_event(struct upstream *u, uint32_t events)
{
	u->want_out = false;
	upstream_h2_work(u);
}

static void upstream_h2_resume(struct upstream *u, struct stream *s)
{
	struct leg *l = s->leg;

	if (buf_len(&l->held) > 0) {
		leg_drain(l);
		upstream_work_later(u); /* sends the window updates */
	} else if (upstream_h2_of(u)->paused && may_read(upstream_h2_of(u))) {
		upstream_work_later(u);
	}
}

/* An origin that owes an answer and sends nothing may be dead, so it gets no more requests. */
static bool is_silent(const struct h2_origin *o)
{
	return o->legs && o->asked != 0 && loop_now(o->u->broker->loop) - o->asked > SILENT_USEC;
}

static unsigned room(const struct upstream *u)
{
	const struct h2_origin *o = upstream_h2_of(u);

	return u->dead || o->going || is_silent(o) || is_held_up(o) ? 0 : h2_streams_free(o->h2);
}

static void upstream_h2_end(struct upstream *u)
{
	struct h2_origin *o = upstream_h2_of(u);

	h2_free(o->h2);
	buf_done_wiped(&o->out);
	free(o);
}

int upstream_h2_start(struct upstream *u)
{
	struct h2_origin *o = calloc(1, sizeof(*o));
	const struct upstream *other = pool_find_alike(u);
	struct h2_config config = {.role = H2_CLIENT,
		.on = &leg_handlers,
		.arg = o,
		.stream_window = H2_ORIGIN_STREAM_WINDOW,
		.window = WINDOW,
		.wipe = true};

	/* Until the origin says how many streams it takes, assume as many as on the other
	 * connection. */
	if (other && other->ops == &upstream_h2)
		config.peer_streams = h2_streams_max(upstream_h2_of(other)->h2);

	if (!o)
		return -ENOMEM;
	o->u = u;
	o->began = loop_now(u->broker->loop);
	o->out = BUF_INIT(OUT_ENOUGH + H2_OUT_MIN);
	o->h2 = h2_new(&config);
	if (!o->h2) {
		free(o);
		return -ENOMEM;
	}
	u->protocol = o;
	u->ops = &upstream_h2;
	upstream_work_later(u);
	return 0;
}

static const struct upstream_ops upstream_h2 = {
	.begin = leg_begin,
	.send = leg_send,
	.resume = upstream_h2_resume,
	.detach = leg_detach,
	.event = on_event,
	.work = upstream_h2_work,
	.room = room,
	.end = upstream_h2_end,
};
