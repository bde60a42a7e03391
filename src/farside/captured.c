/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: every address in the room is local, as in any native room, and we have the
 * listeners. A connection becomes a channel, and is announced with the name that its address stands
 * for. Names are answered here, from a map of our own, so that a name costs no round trip.
 *
 * A room that is the container it stands in has no listeners. Its guard sends us the other end of
 * each connection instead, those to port 53 as well, and these go on to the gateway as they are. */
#include "base/clock.h"
#include "base/fd.h"
#include "dns/responder.h"
#include "dns/udp.h"
#include "farside/hold.h"
#include "ipc/capture.h"
#include "jail/netcapture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>

enum {
	ACCEPTS_A_TURN = 16,
	PACKETS_A_TURN = 64,
	STREAMS_MAX = 800,
	NAMES_MAX = 16384,
	LOGGED_BYTES = 64 * 1024, /* of what waits, while questions are told */
};

union captured_addr {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static uint16_t captured_port(const union captured_addr *a)
{
	return ntohs(a->sa.sa_family == AF_INET ? a->v4.sin_port : a->v6.sin6_port);
}

static void captured_put_address(const union captured_addr *a, uint8_t ret[16])
{
	if (a->sa.sa_family == AF_INET)
		memcpy(ret, &a->v4.sin_addr, sizeof(a->v4.sin_addr));
	else
		memcpy(ret, &a->v6.sin6_addr, sizeof(a->v6.sin6_addr));
}

/* Whether the room connected to a listener itself. */
static bool captured_is_listener(const union captured_addr *dest)
{
	if (captured_port(dest) != NETCAPTURE_PORT)
		return false;
	return dest->sa.sa_family == AF_INET ? dest->v4.sin_addr.s_addr == htonl(INADDR_LOOPBACK)
					     : IN6_IS_ADDR_LOOPBACK(&dest->v6.sin6_addr);
}

/* Announce the connection, and move its bytes. fd is taken. */
static int captured_announce(
	struct hold *h, int fd, const union captured_addr *peer, const union captured_addr *dest)
{
	_cleanup_fd_ int own = fd;
	_cleanup_(buf_donep) struct buf b = BUF_INIT(CAPTURE_MAX_PAYLOAD);
	struct wire_out w = wire_out(&b);
	struct room_owner owner = {0};
	struct capture_connection m = {0};
	struct far_connection announce = {.channel = link_new_number(&h->carrier.link)};
	int r;

	m.client.family = dest->sa.sa_family == AF_INET ? 4 : 6;
	m.client.port = captured_port(peer);
	m.client.server_port = captured_port(dest);
	captured_put_address(peer, m.client.address);
	captured_put_address(dest, m.client.server);
	m.name = dns_synthetic_name(h->names, &dest->sa);
	if (room_find_owner(h->room, &peer->sa, &dest->sa, &owner)) {
		m.owner.pid = owner.pid;
		m.owner.name = str_from(owner.name);
		m.owner.program = str_from(owner.program);
	}
	message_put(&w, capture_connection_message(), &m);
	if (w.error)
		return w.error;
	announce.capture = buf_str(&b);
	fd_send_at_once(own);
	r = streams_add(h, announce.channel, TAKE_FD(own), NULL);
	/* What the stream reads is read later, so this comes before the first data. */
	if (r == 0)
		hold_sent(h, far_send(&h->carrier.link, FAR_CONNECTION, far_connection_message(),
				     &announce));
	return r;
}

static void captured_take(struct hold *h, int fd, const union captured_addr *peer)
{
	union captured_addr dest = {0};
	socklen_t n = sizeof(dest);

	if (getsockname(fd, &dest.sa, &n) < 0 || captured_is_listener(&dest) ||
		streams_count(h) >= STREAMS_MAX) {
		fd_close(fd);
		return;
	}
	if (captured_announce(h, fd, peer, &dest) < 0)
		hold_sent(h, 0);
}

static void captured_on_again(struct loop_timer *t)
{
	struct hold *h = container_of(t, struct hold, accept_again);

	loop_io_set(&h->listeners[ROOM_TCP4].io, EPOLLIN);
	loop_io_set(&h->listeners[ROOM_TCP6].io, EPOLLIN);
}

static void captured_on_tcp(struct loop_io *io, uint32_t events)
{
	struct hold_listener *l = container_of(io, struct hold_listener, io);

	for (int i = 0; i < ACCEPTS_A_TURN; i++) {
		union captured_addr peer = {0};
		socklen_t n = sizeof(peer);
		int fd = accept4(l->fd, &peer.sa, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			captured_take(l->hold, fd, &peer);
			continue;
		}
		if (errno == EAGAIN)
			return;
		if (errno != EINTR && errno != ECONNABORTED)
			break;
	}
	/* Others get their turn; and what is out comes back. */
	loop_io_set(io, 0);
	(void)!loop_timer_in(
		l->hold->loop, &l->hold->accept_again, 10 * USEC_PER_MSEC, captured_on_again);
}

static void captured_log(struct hold *h, const struct dns_event *e)
{
	static const enum capture_answer kinds[] = {[DNS_ANSWER_A] = CAPTURE_ANSWER_A,
		[DNS_ANSWER_AAAA] = CAPTURE_ANSWER_AAAA,
		[DNS_ANSWER_NODATA] = CAPTURE_ANSWER_NODATA,
		[DNS_ANSWER_FORMERR] = CAPTURE_ANSWER_FORMERR,
		[DNS_ANSWER_SERVFAIL] = CAPTURE_ANSWER_SERVFAIL,
		[DNS_ANSWER_BADVERS] = CAPTURE_ANSWER_BADVERS};
	struct capture_asked m = {.name = dns_query_name(&e->query),
		.type = e->query.type,
		.answer = kinds[e->answer.kind]};

	m.name = str_prefix(m.name, MIN(m.name.n, (size_t)NET_MAX_HOST));
	if (m.answer == CAPTURE_ANSWER_A)
		memcpy(m.address, &e->answer.v4, sizeof(e->answer.v4));
	if (m.answer == CAPTURE_ANSWER_AAAA)
		memcpy(m.address, &e->answer.v6, sizeof(e->answer.v6));
	hold_sent(h, far_send(&h->carrier.link, FAR_ASKED, capture_asked_message(), &m));
}

static int captured_respond(void *user, struct str packet, struct buf *out)
{
	struct hold *h = user;
	struct dns_event e;
	int r = dns_respond(h->names, packet, false, out, &e);

	/* A room that asks without end fills no queue: its questions are then not logged. */
	if (r > 0 && buf_len(&h->carrier.link.kept) < LOGGED_BYTES)
		captured_log(h, &e);
	return r;
}

static void captured_on_udp(struct loop_io *io, uint32_t events)
{
	struct hold_listener *l = container_of(io, struct hold_listener, io);

	for (int i = 0; i < PACKETS_A_TURN; i++)
		if (!dns_udp_answer(l->fd, captured_respond, l->hold))
			return;
}

/* --- a room that has no listeners: what connects sends its other end (ipc/capture.h) --- */

static void captured_read(struct hold *h);
static void captured_on_place_again(struct loop_timer *t);

static bool captured_on_sent_connection(struct hold *h, struct chan_frame *f)
{
	struct far_connection announce = {.capture = f->payload};
	struct capture_connection m;

	if (!capture_get_connection(f->payload, &m) || m.client.family == 0 ||
		m.client.server_port == 0 || f->fds_n != 1 || !fd_is_stream_end(f->fds[0]))
		return false;
	/* The frame's descriptor is closed: the room sees that it is refused. */
	if (streams_count(h) >= STREAMS_MAX)
		return true;
	/* A process of the room has the other end. */
	fd_refuse_attached(f->fds[0]);
	announce.channel = link_new_number(&h->carrier.link);
	if (streams_add(h, announce.channel, TAKE_FD(f->fds[0]), NULL) == 0)
		hold_sent(h, far_send(&h->carrier.link, FAR_CONNECTION, far_connection_message(),
				     &announce));
	return true;
}

static bool captured_on_sent_question(struct hold *h, struct chan_frame *f)
{
	struct capture_asked m;

	if (f->fds_n != 0 || !capture_get_asked(f->payload, &m))
		return false;
	if (buf_len(&h->carrier.link.kept) < LOGGED_BYTES)
		hold_sent(h, link_send(&h->carrier.link, FAR_ASKED, f->payload));
	return true;
}

/* The kernel drops a descriptor that there is no place for, which would look like a broken rule. */
static bool captured_has_place(const struct hold *h)
{
	int fd = fcntl(h->channel.fd, F_DUPFD_CLOEXEC, 3);

	fd_close(fd);
	return fd >= 0;
}

/* Take one frame. Return 1 if there may be more, 0, or -errno. */
static int captured_read_one(struct hold *h)
{
	struct chan_frame f;
	bool ok = false;
	int r;

	if (!captured_has_place(h)) {
		loop_io_set(&h->channel_io, 0);
		return loop_timer_in(
			h->loop, &h->accept_again, 10 * USEC_PER_MSEC, captured_on_place_again);
	}
	r = chan_recv(&h->channel, &f);
	if (r <= 0)
		return r;
	if (f.type == CAPTURE_CONNECTION)
		ok = captured_on_sent_connection(h, &f);
	else if (f.type == CAPTURE_ASKED)
		ok = captured_on_sent_question(h, &f);
	chan_frame_done(&f);
	return ok ? 1 : -EPROTO;
}

static void captured_on_more(struct loop_job *job)
{
	captured_read(container_of(job, struct hold, channel_more));
}

static void captured_on_channel(struct loop_io *io, uint32_t events)
{
	captured_read(container_of(io, struct hold, channel_io));
}

static void captured_on_place_again(struct loop_timer *t)
{
	struct hold *h = container_of(t, struct hold, accept_again);

	if (!h->channel_open)
		return;
	loop_io_set(&h->channel_io, EPOLLIN);
	captured_read(h);
}

static void captured_read(struct hold *h)
{
	int r = h->channel_open ? 1 : 0;

	for (int i = 0; i < ACCEPTS_A_TURN && r > 0; i++)
		r = captured_read_one(h);
	if (r > 0)
		loop_defer(h->loop, &h->channel_more, captured_on_more);
	if (r >= 0)
		return;
	captured_stop(h);
	if (r != -EPIPE)
		(void)h->room->provider->kill(h->room, SIGKILL, NULL);
}

void captured_stop(struct hold *h)
{
	if (!h->channel_open)
		return;
	loop_io_remove(&h->channel_io);
	loop_timer_clear(&h->accept_again);
	chan_done(&h->channel);
	h->channel_open = false;
}

/* fd is taken. */
static int captured_open_channel(struct hold *h, int fd)
{
	int r = chan_init(&h->channel, fd, CAPTURE_MAX_PAYLOAD, CAPTURE_MAX_PAYLOAD);

	h->channel_open = true;
	if (r == 0)
		r = loop_io_add(
			h->loop, &h->channel_io, h->channel.fd, EPOLLIN, captured_on_channel);
	return r;
}

int captured_start(struct hold *h, struct cloche_err *err)
{
	int fds[ROOM_LISTENERS], r = room_listeners(h->room, fds, err);

	if (r < 0)
		return r;
	h->names = dns_synthetic_new(NAMES_MAX);
	if (!h->names)
		return err_nomem(err);
	for (int i = 0; i < ROOM_LISTENERS && r == 0; i++) {
		struct hold_listener *l = &h->listeners[i];
		bool udp = i == ROOM_UDP4 || i == ROOM_UDP6;

		if (fds[i] < 0)
			continue;
		if (i == ROOM_CAPTURE) {
			r = captured_open_channel(h, fds[i]);
			continue;
		}
		*l = (struct hold_listener){.hold = h, .fd = fds[i]};
		if (udp)
			dns_udp_prepare(l->fd);
		r = loop_io_add(
			h->loop, &l->io, l->fd, EPOLLIN, udp ? captured_on_udp : captured_on_tcp);
	}
	return r < 0 ? err_sys(err, -r, "watch the room's network") : 0;
}
