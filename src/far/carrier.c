/* SPDX-License-Identifier: Apache-2.0 */
#include "far/carrier.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <unistd.h>

enum { READ_MAX = 256 * 1024, READS_A_TURN = 4 };

static void carrier_lose(struct carrier *c, int why)
{
	carrier_detach(c);
	c->cut(c, why);
}

void carrier_detach(struct carrier *c)
{
	loop_io_remove(&c->in_io);
	loop_io_remove(&c->out_io);
	loop_timer_clear(&c->beat);
	c->in = fd_close(c->in);
	c->out = fd_close(c->out);
}

/* Write what the other side of the descriptor takes. Return 0 or -errno. */
static int carrier_write(struct carrier *c)
{
	struct str next;

	while ((next = link_pending(&c->link)).n > 0) {
		ssize_t n = write(c->out, next.p, next.n);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0)
			return -errno;
		link_written(&c->link, (size_t)n, loop_now(c->loop));
	}
	loop_io_set(&c->out_io, next.n > 0 ? EPOLLOUT : 0);
	return 0;
}

static void carrier_on_flush(struct loop_job *job)
{
	struct carrier *c = container_of(job, struct carrier, flush);
	int r = c->failed;

	if (c->out < 0)
		return;
	if (r == 0)
		r = carrier_write(c);
	if (r < 0)
		carrier_lose(c, r);
}

void carrier_kick(struct carrier *c)
{
	loop_defer(c->loop, &c->flush, carrier_on_flush);
}

void carrier_fail(struct carrier *c, int r)
{
	if (r < 0 && c->failed == 0)
		c->failed = r;
	carrier_kick(c);
}

static void carrier_on_out(struct loop_io *io, uint32_t events)
{
	struct carrier *c = container_of(io, struct carrier, out_io);

	/* A pipe whose reader is gone is always reported. */
	if (events & (EPOLLERR | EPOLLHUP))
		carrier_lose(c, -EPIPE);
	else
		carrier_kick(c);
}

static void carrier_on_in(struct loop_io *io, uint32_t events)
{
	static char bytes[READ_MAX];
	struct carrier *c = container_of(io, struct carrier, in_io);
	int r = 0;

	for (int i = 0; i < READS_A_TURN && r == 0; i++) {
		ssize_t n = read(c->in, bytes, sizeof(bytes));

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		r = n > 0    ? link_feed(&c->link, str_make(bytes, (size_t)n), loop_now(c->loop))
		    : n == 0 ? -EPIPE
			     : -errno;
		if (n < READ_MAX)
			break;
	}
	if (r < 0)
		carrier_lose(c, r);
	else
		carrier_kick(c);
}

static void carrier_on_beat(struct loop_timer *timer)
{
	struct carrier *c = container_of(timer, struct carrier, beat);

	if (loop_now(c->loop) - c->link.heard > CARRIER_SILENCE_SEC * USEC_PER_SEC) {
		carrier_lose(c, -ETIMEDOUT);
		return;
	}
	link_ping(&c->link);
	carrier_kick(c);
	if (loop_timer_in(c->loop, &c->beat, CARRIER_BEAT_SEC * USEC_PER_SEC, carrier_on_beat) < 0)
		carrier_lose(c, -ENOMEM);
}

int carrier_attach(struct carrier *c, int in, int out)
{
	int r;

	carrier_detach(c);
	c->in = in;
	c->out = out;
	r = link_restart(&c->link, loop_now(c->loop));
	if (r == 0)
		r = fd_set_nonblock(in, true);
	if (r >= 0)
		r = fd_set_nonblock(out, true);
	if (r >= 0)
		r = loop_io_add(c->loop, &c->in_io, in, EPOLLIN, carrier_on_in);
	if (r == 0)
		r = loop_io_add(c->loop, &c->out_io, out, 0, carrier_on_out);
	if (r == 0)
		r = loop_timer_in(
			c->loop, &c->beat, CARRIER_BEAT_SEC * USEC_PER_SEC, carrier_on_beat);
	if (r < 0) {
		carrier_detach(c);
		return r;
	}
	carrier_kick(c);
	return 0;
}

void carrier_init(struct carrier *c, struct loop *loop, const struct link_ops *ops,
	const uint8_t *session, void (*cut)(struct carrier *c, int why))
{
	*c = (struct carrier){.loop = loop, .in = -1, .out = -1, .cut = cut};
	link_init(&c->link, ops, session);
}

void carrier_done(struct carrier *c)
{
	carrier_detach(c);
	link_done(&c->link);
}
