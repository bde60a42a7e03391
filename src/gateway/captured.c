/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a connection that comes in a frame is treated as one that was accepted. Both
 * count against the same limits, and a name that comes with it gets an address of the gateway's own
 * map, so that whatever follows finds what it finds behind a listener. Every frame counts as a
 * connection, so a flood of either kind waits in the relay's socket.
 *
 * A descriptor must be a stream socket of the unix family. That makes what the gateway does with
 * sockets either work or do nothing: closing such a socket never waits, and its input and output
 * are always asked for without waiting. What is only for TCP (acknowledging at once, a reset, the
 * kernel's queue of what was sent) fails or says nothing there. */
#include "gateway/captured.h"
#include "base/fd.h"
#include "dns/message.h"
#include "gateway/conn.h"
#include "gateway/entry.h"
#include "gateway/state.h"
#include "ipc/capture.h"

#include <errno.h>
#include <fcntl.h>

enum { FRAMES_A_TURN = 32 };

/* Return 0, -EINVAL if the name is none, or -ENOMEM. */
static int captured_dest(
	struct gateway *g, const struct capture_connection *m, union conn_addr *ret)
{
	const struct net_client *client = &m->client;
	struct in_addr *v4 = NULL;
	struct in6_addr *v6 = NULL;

	*ret = (union conn_addr){0};
	if (client->family == 6) {
		v6 = &ret->v6.sin6_addr;
		ret->v6.sin6_family = AF_INET6;
		ret->v6.sin6_port = htons(client->server_port);
		memcpy(v6, client->server, sizeof(*v6));
	} else {
		v4 = &ret->v4.sin_addr;
		ret->v4.sin_family = AF_INET;
		ret->v4.sin_port = htons(client->server_port);
		memcpy(v4, client->server, sizeof(*v4));
	}
	return m->name.n ? dns_synthetic_get(g->names, m->name, v4, v6) : 0;
}

/* Return false if the frame is malformed. */
static bool take_connection(struct gateway *g, struct chan_frame *f)
{
	struct capture_connection m;
	union conn_addr dest;
	struct conn *c;
	int r;

	if (!capture_get_connection(f->payload, &m) || m.client.family == 0 ||
		m.client.server_port == 0 || f->fds_n != 1 || !fd_is_stream_end(f->fds[0]))
		return false;
	r = captured_dest(g, &m, &dest);
	if (r < 0)
		return r == -ENOMEM;
	/* The room's own process may have the other end. */
	fd_refuse_attached(f->fds[0]);
	c = conn_new(g, TAKE_FD(f->fds[0]), &dest);
	if (!c)
		return true;
	c->client = m.client;
	conn_set_owner(c, &m.owner);
	entry_start(c);
	return true;
}

static bool take_asked(struct gateway *g, struct str payload)
{
	static const enum dns_answer_kind kinds[CAPTURE_ANSWER_END] = {
		[CAPTURE_ANSWER_A] = DNS_ANSWER_A,
		[CAPTURE_ANSWER_AAAA] = DNS_ANSWER_AAAA,
		[CAPTURE_ANSWER_NODATA] = DNS_ANSWER_NODATA,
		[CAPTURE_ANSWER_FORMERR] = DNS_ANSWER_FORMERR,
		[CAPTURE_ANSWER_SERVFAIL] = DNS_ANSWER_SERVFAIL,
		[CAPTURE_ANSWER_BADVERS] = DNS_ANSWER_BADVERS,
	};
	struct capture_asked m;
	struct dns_answer a = {0};

	if (!capture_get_asked(payload, &m))
		return false;
	a.kind = kinds[m.answer];
	memcpy(&a.v4, m.address, sizeof(a.v4));
	memcpy(&a.v6, m.address, sizeof(a.v6));
	dns_log_answer(g, m.name, m.type, &a);
	return true;
}

static bool captured_take(struct gateway *g, struct chan_frame *f)
{
	switch (f->type) {
	case CAPTURE_CONNECTION:
		return take_connection(g, f);
	case CAPTURE_ASKED:
		return f->fds_n == 0 && take_asked(g, f->payload);
	default:
		return false;
	}
}

/* The kernel drops a descriptor that the process has no place for. So one frame is read when there
 * is a place, and the relay's other ones wait. */
static bool has_place(const struct captured *c)
{
	int fd = fcntl(c->chan.fd, F_DUPFD_CLOEXEC, 3);

	fd_close(fd);
	return fd >= 0;
}

static void captured_read(struct captured *c);

static void captured_on_more(struct loop_job *job)
{
	struct captured *c = container_of(job, struct captured, more);

	if (c->g && !c->g->accepts.paused)
		captured_read(c);
}

/* Take one frame. Return 1 if there may be more, 0 if there is none now or no more may be taken, or
 * -errno. */
static int captured_read_one(struct captured *c)
{
	struct gateway *g = c->g;
	struct chan_frame f;
	int r;

	if (!listener_may_take(g))
		return 0;
	if (!has_place(c)) {
		listener_wait(g);
		return 0;
	}
	r = chan_recv(&c->chan, &f);
	if (r <= 0) {
		listener_took_none(g);
		return r;
	}
	if (!captured_take(g, &f))
		r = -EPROTO;
	chan_frame_done(&f);
	return r;
}

static void captured_read(struct captured *c)
{
	struct gateway *g = c->g;
	int r = 1;

	for (int i = 0; i < FRAMES_A_TURN && r > 0; i++)
		r = captured_read_one(c);
	if (r > 0)
		loop_defer(g->loop, &c->more, captured_on_more);
	else if (r == -EPIPE)
		gateway_fail(g, E_NETWORK, "the relay of the room's connections has ended");
	else if (r < 0)
		gateway_fail(g, E_PROTOCOL,
			"the relay of the room's connections sent a malformed frame");
}

static void on_captured(struct loop_io *io, uint32_t events)
{
	struct captured *c = container_of(io, struct captured, io);

	if (!c->g->accepts.paused)
		captured_read(c);
	else if (events & (EPOLLHUP | EPOLLERR))
		gateway_fail(c->g, E_NETWORK, "the relay of the room's connections has ended");
}

void captured_pause(struct captured *c, bool paused)
{
	if (!c->g)
		return;
	loop_io_set(&c->io, paused ? 0 : EPOLLIN);
	/* What is left in the buffer does not make the socket readable. */
	if (!paused)
		loop_defer(c->g->loop, &c->more, captured_on_more);
}

int captured_add(struct gateway *g, struct captured *c, int fd)
{
	int r = chan_init(&c->chan, fd, CAPTURE_MAX_PAYLOAD, CAPTURE_MAX_PAYLOAD);

	c->chan.watched = true;
	if (r >= 0)
		r = loop_io_add(g->loop, &c->io, fd, EPOLLIN, on_captured);
	if (r < 0) {
		chan_done(&c->chan);
		return r;
	}
	c->g = g;
	return 0;
}

void captured_done(struct captured *c)
{
	if (!c->g)
		return;
	loop_io_remove(&c->io);
	chan_done(&c->chan);
	c->g = NULL;
}
