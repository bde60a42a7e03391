/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a connection has two sockets and a buffer in each direction. Data is written
 * as far as the socket accepts it; a full buffer stops the reading. When one side has ended and its
 * bytes are written, the end is passed on as a half-close. When both directions are shut, the
 * connection is over. A process in the room can hold the same socket and change its flags at any
 * moment, so every call passes MSG_DONTWAIT. */
#include "base/clock.h"
#include "base/fd.h"
#include "forward.h"
#include "ipc/forward.h"

#include <errno.h>
#include <sys/socket.h>

enum { ROUNDS = 4 };
#define PATIENCE (15 * USEC_PER_SEC) /* for the room's answer */

static void bury(struct loop_job *job)
{
	struct conn *c = container_of(job, struct conn, bury);

	free(c->ways[0].mem);
	free(c->ways[1].mem);
	free(c);
}

void conn_end(struct conn *c)
{
	if (c->dead)
		return;
	c->dead = true;
	loop_timer_clear(&c->patience);
	for (int i = 0; i < 2; i++)
		loop_io_remove(&c->io[i]);
	/* With a reset, the program on the host can tell a failure from an end. */
	if (!c->joined)
		fd_set_reset(c->fds[0], true);
	fd_close(c->fds[0]);
	fd_close_foreign(c->fds[1]);
	forward_forget(c->forward, c);
	c->forward->conns_n--;
	loop_defer(c->forward->loop, &c->bury, bury);
}

static void on_patience(struct loop_timer *t)
{
	conn_end(container_of(t, struct conn, patience));
}

struct conn *conn_new(struct forward *f, int host)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c) {
		fd_close(host);
		return NULL;
	}
	c->forward = f;
	c->fds[0] = host;
	c->fds[1] = -1;
	f->conns_n++;
	fd_send_at_once(host);
	for (int i = 0; i < 2; i++)
		c->ways[i].mem = malloc(BUFFER);
	if (!c->ways[0].mem || !c->ways[1].mem ||
		loop_timer_set(f->loop, &c->patience, clock_mono_usec() + PATIENCE, on_patience) <
			0) {
		conn_end(c);
		return NULL;
	}
	return c;
}

/* Return -1 if the connection is broken, 1 if something moved, 0 if nothing can move now. */
static int fill(struct way *w, int from)
{
	ssize_t n;

	if (w->ended || w->tail == BUFFER)
		return 0;
	n = recv(from, w->mem + w->tail, BUFFER - w->tail, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (n == 0)
		w->ended = true;
	w->tail += (size_t)n;
	return 1;
}

static int drain(struct way *w, int to)
{
	ssize_t n;

	if (w->shut)
		return 0;
	if (w->head == w->tail) {
		if (!w->ended)
			return 0;
		/* shutdown() may fail if the peer is gone already. */
		(void)shutdown(to, SHUT_WR);
		w->shut = true;
		return 1;
	}
	n = send(to, w->mem + w->head, w->tail - w->head, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	w->head += (size_t)n;
	if (w->head == w->tail)
		w->head = w->tail = 0;
	return n > 0;
}

static uint32_t wanted(const struct conn *c, int side)
{
	const struct way *out = &c->ways[side], *in = &c->ways[!side];
	bool reads = !out->ended && out->tail < BUFFER, writes = in->head < in->tail;

	return (reads ? (uint32_t)EPOLLIN : 0) | (writes ? (uint32_t)EPOLLOUT : 0);
}

/* A side without wanted events leaves the loop, which would otherwise report its hang-up
 * forever. */
static int watch(struct conn *c, int side, void (*cb)(struct loop_io *, uint32_t))
{
	uint32_t events = wanted(c, side);

	if (!events)
		loop_io_remove(&c->io[side]);
	else if (c->io[side].loop)
		loop_io_set(&c->io[side], events);
	else
		return loop_io_add(c->forward->loop, &c->io[side], c->fds[side], events, cb);
	return 0;
}

static void on_host(struct loop_io *io, uint32_t events);
static void conn_on_room(struct loop_io *io, uint32_t events);

static void move(struct conn *c)
{
	/* Data sent to a side acknowledges what was received from it. */
	bool owes[2] = {false, false};
	int r = 1;

	for (int round = 0; round < ROUNDS && r > 0; round++) {
		r = 0;
		for (int i = 0; i < 2 && r >= 0; i++) {
			int a = fill(&c->ways[i], c->fds[i]);
			int b = a < 0 ? -1 : drain(&c->ways[i], c->fds[!i]);

			owes[i] |= a > 0;
			if (b > 0)
				owes[!i] = false;
			r = b < 0 ? -1 : r | a | b;
		}
	}
	if (r < 0 || (c->ways[0].shut && c->ways[1].shut)) {
		conn_end(c);
		return;
	}
	for (int i = 0; i < 2; i++)
		if (owes[i]) /* it may send more, and nothing goes there now to carry the ACK */
			fd_acknowledge(c->fds[i]);
	if (watch(c, 0, on_host) < 0 || watch(c, 1, conn_on_room) < 0)
		conn_end(c);
}

static void on_host(struct loop_io *io, uint32_t events)
{
	move(container_of(io, struct conn, io[0]));
}

static void conn_on_room(struct loop_io *io, uint32_t events)
{
	move(container_of(io, struct conn, io[1]));
}

void conn_join(struct conn *c, int room)
{
	loop_timer_clear(&c->patience);
	c->fds[1] = room;
	c->joined = true;
	fd_send_at_once(room);
	move(c);
}

static void conn_on_verdict(struct loop_io *io, uint32_t events)
{
	struct conn *c = container_of(io, struct conn, io[1]);
	char byte = FORWARD_NO;
	ssize_t n = recv(c->fds[1], &byte, 1, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	loop_io_remove(io);
	if (n == 1 && byte == FORWARD_YES)
		conn_join(c, c->fds[1]);
	else
		conn_end(c);
}

void conn_join_later(struct conn *c, int room)
{
	c->fds[1] = room;
	if (loop_io_add(c->forward->loop, &c->io[1], room, EPOLLIN, conn_on_verdict) < 0)
		conn_end(c);
}
