/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: every address in the room is local, as in any native room, and we have the
 * listeners. A connection becomes a channel, and is announced with the name that its address stands
 * for. Names are answered here, from a map of our own, so that a name costs no round trip. */
#include "base/clock.h"
#include "base/fd.h"
#include "dns/responder.h"
#include "dns/udp.h"
#include "farside/hold.h"
#include "ipc/capture.h"
#include "jail/netcapture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

enum {
	ACCEPTS_A_TURN = 16,
	PACKETS_A_TURN = 64,
	STREAMS_MAX = 800,
	NAMES_MAX = 16384,
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
	if (r > 0 && buf_len(&h->carrier.link.kept) < 64 * 1024)
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
		*l = (struct hold_listener){.hold = h, .fd = fds[i]};
		if (udp)
			dns_udp_prepare(l->fd);
		r = loop_io_add(
			h->loop, &l->io, l->fd, EPOLLIN, udp ? captured_on_udp : captured_on_tcp);
	}
	return r < 0 ? err_sys(err, -r, "watch the room's network") : 0;
}
