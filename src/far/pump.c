/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a descriptor that may not be read now is taken out of the loop, as the end
 * of a pipe is reported whether it is asked for or not. What a descriptor does not take at once
 * waits in `late`, which the channel's window bounds. */
#include "far/pump.h"
#include "base/fd.h"

#include <errno.h>
#include <unistd.h>

/* So much is read at most after a flush was asked for. */
enum { FLUSH_MAX = 1024 * 1024 };

static struct pump *pump_of(struct link_channel *c)
{
	return (struct pump *)c;
}

static struct link *pump_link(struct pump *p)
{
	return &p->carrier->link;
}

static void pump_close_in(struct pump *p)
{
	loop_io_remove(&p->in_io);
	p->in = fd_close_foreign(p->in);
}

static void pump_close_out(struct pump *p)
{
	loop_io_remove(&p->out_io);
	buf_done(&p->late);
	/* The other direction of a socket may go on. */
	if (p->out >= 0)
		shutdown(p->out, SHUT_WR);
	p->out = fd_close_foreign(p->out);
}

/* Both directions may have ended, and a flush may be over. p may be gone afterwards. */
static void pump_settle(struct pump *p)
{
	bool is_clean = p->flushes == PUMP_READ ? p->in < 0 || p->flushed >= FLUSH_MAX
						: p->out < 0 || buf_len(&p->late) == 0;

	if (p->flushes && is_clean) {
		p->flushes = PUMP_NO_FLUSH;
		p->clean(p);
	}
	if (p->in >= 0 || p->out >= 0 || p->is_reserved || !pump_is_open(p))
		return;
	pump_close(p);
	p->done(p);
}

static void pump_on_in(struct loop_io *io, uint32_t events);

/* Read when there is something, or when the link takes more. */
static void pump_watch_in(struct pump *p, bool now)
{
	int r = 0;

	if (!now)
		loop_io_remove(&p->in_io);
	else if (!p->in_io.loop)
		r = loop_io_add(p->carrier->loop, &p->in_io, p->in, EPOLLIN, pump_on_in);
	carrier_fail(p->carrier, r);
}

/* Return the bytes read, 0 if there are none now, or -EPIPE at the end. */
static ssize_t pump_read_some(struct pump *p, size_t most)
{
	static char bytes[LINK_MAX_DATA];
	ssize_t n = read(p->in, bytes, MIN(most, sizeof(bytes)));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -EPIPE;
	carrier_fail(p->carrier, link_data(pump_link(p), &p->channel, str_make(bytes, (size_t)n)));
	return n;
}

/* Pass on what can be read now, but not too much at a time. */
static void pump_read(struct pump *p)
{
	for (int i = 0; i < 8 && p->in >= 0; i++) {
		size_t most = link_may_send(pump_link(p), &p->channel);
		ssize_t n = most ? pump_read_some(p, most) : 0;

		if (n < 0) {
			carrier_fail(p->carrier, link_end(pump_link(p), &p->channel));
			pump_close_in(p);
		} else if (n == 0) {
			if (p->flushes == PUMP_READ && most)
				p->flushed = FLUSH_MAX;
			pump_watch_in(p, most > 0);
			break;
		} else {
			p->flushed += (size_t)n;
		}
	}
	carrier_kick(p->carrier);
}

static void pump_on_in(struct loop_io *io, uint32_t events)
{
	struct pump *p = container_of(io, struct pump, in_io);

	pump_read(p);
	pump_settle(p);
}

void pump_on_more(struct link *l, struct link_channel *c)
{
	struct pump *p = pump_of(c);

	if (p->in >= 0)
		pump_watch_in(p, true);
}

void pump_on_stop(struct link *l, struct link_channel *c)
{
	struct pump *p = pump_of(c);

	pump_close_in(p);
	pump_settle(p);
}

/* Return how many of the bytes `out` takes now, or -errno. */
static ssize_t pump_write_some(struct pump *p, struct str bytes)
{
	ssize_t n;

	if (bytes.n == 0)
		return 0;
	n = write(p->out, bytes.p, bytes.n);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return n < 0 ? -errno : n;
}

/* Nobody reads what comes. */
static void pump_refuse(struct pump *p)
{
	carrier_fail(p->carrier, link_stop(pump_link(p), &p->channel));
	pump_close_out(p);
	carrier_kick(p->carrier);
}

static void pump_on_out(struct loop_io *io, uint32_t events)
{
	struct pump *p = container_of(io, struct pump, out_io);
	ssize_t n = pump_write_some(p, buf_str(&p->late));

	/* A pipe without a reader is reported even if nothing is to be written. */
	if (n < 0 || (buf_len(&p->late) == 0 && events & (EPOLLERR | EPOLLHUP))) {
		pump_refuse(p);
	} else {
		buf_consume(&p->late, (size_t)n);
		carrier_fail(p->carrier, link_consumed(pump_link(p), &p->channel, (size_t)n));
		carrier_kick(p->carrier);
		if (buf_len(&p->late) == 0)
			loop_io_set(&p->out_io, 0);
		if (buf_len(&p->late) == 0 && p->ends)
			pump_close_out(p);
	}
	pump_settle(p);
}

int pump_on_data(struct link *l, struct link_channel *c, struct str bytes)
{
	struct pump *p = pump_of(c);
	ssize_t n = 0;
	int r;

	if (p->is_reserved)
		return buf_add_str(&p->late, bytes);
	if (p->out < 0)
		return link_consumed(l, c, bytes.n);
	if (buf_len(&p->late) == 0)
		n = pump_write_some(p, bytes);
	if (n < 0) {
		pump_refuse(p);
		pump_settle(p);
		return 0;
	}
	r = link_consumed(l, c, (size_t)n);
	bytes = str_from_index(bytes, (size_t)n);
	if (r == 0 && bytes.n) {
		r = buf_add_str(&p->late, bytes);
		loop_io_set(&p->out_io, EPOLLOUT);
	}
	return r;
}

int pump_on_end(struct link *l, struct link_channel *c)
{
	struct pump *p = pump_of(c);

	p->ends = true;
	if (buf_len(&p->late) == 0)
		pump_close_out(p);
	pump_settle(p);
	return 0;
}

static int pump_watch(struct pump *p)
{
	struct loop *loop = p->carrier->loop;
	int r = p->in >= 0 ? fd_set_nonblock(p->in, true) : 0;

	if (r >= 0 && p->out >= 0)
		r = fd_set_nonblock(p->out, true);
	if (r >= 0 && p->in >= 0)
		r = loop_io_add(loop, &p->in_io, p->in, EPOLLIN, pump_on_in);
	if (r >= 0 && p->out >= 0)
		r = loop_io_add(
			loop, &p->out_io, p->out, buf_len(&p->late) ? EPOLLOUT : 0, pump_on_out);
	return MIN(r, 0);
}

static int pump_init(struct pump *p, struct carrier *c, uint32_t number, bool sends, bool receives,
	void (*done)(struct pump *p))
{
	*p = (struct pump){.carrier = c, .in = -1, .out = -1, .done = done};
	p->late = BUF_INIT(LINK_WINDOW_MAX);
	return link_open(&c->link, &p->channel, number, sends, receives);
}

int pump_open(struct pump *p, struct carrier *c, uint32_t number, int in, int out,
	void (*done)(struct pump *p))
{
	int r = pump_init(p, c, number, in >= 0, out >= 0, done);

	p->in = in;
	p->out = out;
	if (r == 0)
		r = pump_watch(p);
	if (r < 0)
		pump_close(p);
	return r;
}

int pump_reserve(struct pump *p, struct carrier *c, uint32_t number, void (*done)(struct pump *p))
{
	int r = pump_init(p, c, number, true, true, done);

	p->is_reserved = r == 0;
	return r;
}

int pump_start(struct pump *p, int in, int out)
{
	int r;

	p->is_reserved = false;
	p->in = in;
	p->out = out;
	r = pump_watch(p);
	if (r < 0) {
		pump_close(p);
		return r;
	}
	/* The other end may have left meanwhile. */
	if (!p->channel.sends)
		pump_close_in(p);
	if (p->ends && buf_len(&p->late) == 0)
		pump_close_out(p);
	pump_settle(p);
	return 0;
}

void pump_close(struct pump *p)
{
	pump_close_in(p);
	pump_close_out(p);
	if (p->carrier)
		link_close(pump_link(p), &p->channel);
}

void pump_flush(struct pump *p, enum pump_flush what, void (*clean)(struct pump *p))
{
	p->flushes = what;
	p->flushed = 0;
	p->clean = clean;
	if (what == PUMP_READ)
		pump_read(p);
	pump_settle(p);
}
