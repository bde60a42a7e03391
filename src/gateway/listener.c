/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: accepting stops when a limit is reached, so that the room's connection
 * attempts wait in the room's own queue. A timer or the end of a connection resumes it. */
#include "gateway/listener.h"
#include "base/clock.h"
#include "base/fd.h"
#include "gateway/conn.h"
#include "gateway/entry.h"
#include "gateway/state.h"
#include "jail/netcapture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <unistd.h>

enum { ACCEPTS_A_TURN = 32 };

static void set_paused(struct gateway *g, bool paused)
{
	g->accepts.paused = paused;
	for (size_t i = 0; i < ARRAY_SIZE(g->tcp); i++)
		if (g->tcp[i].g)
			loop_io_set(&g->tcp[i].io, paused ? 0 : EPOLLIN);
	captured_pause(&g->captured, paused);
}

static void on_resume(struct loop_timer *timer)
{
	struct gateway *g = container_of(timer, struct gateway, accepts.timer);

	if (g->conns_n < g->limits->connections)
		set_paused(g, false);
}

void listener_resume(struct gateway *g)
{
	if (g->accepts.paused && !g->accepts.timer.loop && g->conns_n < g->limits->connections)
		set_paused(g, false);
}

/* Logged at most once a minute: the room can reach its limits as often as it likes. */
static void say_limit(struct gateway *g, const char *which)
{
	uint64_t now = loop_now(g->loop);

	if (g->accepts.said && now - g->accepts.said < 60 * USEC_PER_SEC)
		return;
	g->accepts.said = now;
	event_send(g, &(struct net_event){
			      .kind = NET_EVENT_LIMIT,
			      .a = STR("connections"),
			      .b = str_from(which),
		      });
}

static void pause_until(struct gateway *g, uint64_t at)
{
	set_paused(g, true);
	if (loop_timer_set(g->loop, &g->accepts.timer, at, on_resume) < 0)
		gateway_fail(g, E_NO_MEMORY, "out of memory");
}

bool listener_may_take(struct gateway *g)
{
	struct accept_rate *rate = &g->accepts;
	uint64_t now = loop_now(g->loop);

	if (g->conns_n >= g->limits->connections) {
		say_limit(g, "too many at once");
		set_paused(g, true);
		return false;
	}
	if (now - rate->second >= USEC_PER_SEC) {
		rate->second = now;
		rate->n = 0;
	}
	if (rate->n >= g->limits->accepts_per_sec) {
		say_limit(g, "too many in one second");
		pause_until(g, rate->second + USEC_PER_SEC);
		return false;
	}
	rate->n++;
	return true;
}

void listener_took_none(struct gateway *g)
{
	g->accepts.n--;
}

void listener_wait(struct gateway *g)
{
	listener_took_none(g);
	pause_until(g, loop_now(g->loop) + 100 * USEC_PER_MSEC);
}

/* Whether the room connected to a listener itself: that was not captured. */
static bool is_listener(const union conn_addr *dest)
{
	if (dest->sa.sa_family == AF_INET)
		return dest->v4.sin_port == htons(NETCAPTURE_PORT) &&
		       dest->v4.sin_addr.s_addr == htonl(INADDR_LOOPBACK);
	return dest->v6.sin6_port == htons(NETCAPTURE_PORT) &&
	       IN6_IS_ADDR_LOOPBACK(&dest->v6.sin6_addr);
}

static void take(struct gateway *g, int fd, const union conn_addr *peer)
{
	union conn_addr dest = {0};
	socklen_t n = sizeof(dest);
	struct conn *c;

	if (getsockname(fd, &dest.sa, &n) < 0 ||
		(dest.sa.sa_family != AF_INET && dest.sa.sa_family != AF_INET6) ||
		is_listener(&dest)) {
		fd_close(fd);
		return;
	}
	/* Send output at once and do not wait for more: an event stream must not be delayed. */
	fd_send_at_once(fd);
	c = conn_new(g, fd, &dest);
	if (!c)
		return;
	conn_set_peer(c, peer);
	entry_start(c);
}

static void on_accept(struct loop_io *io, uint32_t events)
{
	struct listener *l = container_of(io, struct listener, io);
	struct gateway *g = l->g;

	for (int i = 0; i < ACCEPTS_A_TURN && listener_may_take(g); i++) {
		union conn_addr peer = {0};
		socklen_t n = sizeof(peer);
		int fd = accept4(l->fd, &peer.sa, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			take(g, fd, &peer);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			listener_wait(g);
		else
			listener_took_none(g);
		if (errno != EINTR && errno != ECONNABORTED)
			break;
	}
}

int listener_add(struct gateway *g, struct listener *l, int fd)
{
	int r = fd_set_nonblock(fd, true);

	if (r >= 0)
		r = loop_io_add(g->loop, &l->io, fd, EPOLLIN, on_accept);
	if (r < 0) {
		fd_close(fd);
		return r;
	}
	l->g = g;
	l->fd = fd;
	return 0;
}

void listener_done(struct listener *l)
{
	if (!l->g)
		return;
	loop_io_remove(&l->io);
	l->fd = fd_close(l->fd);
	l->g = NULL;
}
