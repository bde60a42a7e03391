/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: level-triggered epoll. Interest in reading is dropped lazily: only when a
 * connection becomes readable while its stage does not want that, so that the usual exchange of a
 * request and its answer needs no epoll_ctl. Interest in writing exists only while the peer is
 * behind.
 *
 * The timer is lazy too: moving the deadline later only stores it; when the timer fires early it is
 * set again. So a busy connection moves its timer about once per timeout, not once per event. */
#include "gateway/conn.h"
#include "base/clock.h"
#include "base/fd.h"
#include "gateway/state.h"
#include "ipc/netchan.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sock_diag.h>
#include <stdio.h>
#include <unistd.h>
#include <utlist.h>

enum {
	READS_A_TURN = 4,
	IN_MAX = 2 * GATEWAY_SCRATCH,
	/* The broker sends at most one window before it waits; in the worst case each byte is a
	 * chunk. */
	OUT_MAX = 8 * NET_WINDOW + 2 * HTTP_HEAD_MAX,
};

static void on_io(struct loop_io *io, uint32_t events);
static void on_timer(struct loop_timer *timer);

static uint32_t events_wanted(const struct conn *c, bool keep_reading)
{
	uint32_t events = c->half_closed ? 0 : EPOLLRDHUP;

	if (conn_may_read(c) || keep_reading)
		events |= EPOLLIN;
	if (c->blocked)
		events |= EPOLLOUT;
	return events;
}

struct conn *conn_new(struct gateway *g, int fd, const union conn_addr *dest)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c) {
		fd_close(fd);
		return NULL;
	}
	c->g = g;
	c->fd = fd;
	c->dest = *dest;
	c->port = ntohs(dest->sa.sa_family == AF_INET6 ? dest->v6.sin6_port : dest->v4.sin_port);
	c->in = BUF_INIT(IN_MAX);
	c->out = BUF_INIT(OUT_MAX);
	c->deadline = USEC_INFINITY;
	if (loop_io_add(g->loop, &c->io, fd, EPOLLIN | EPOLLRDHUP, on_io) < 0) {
		fd_close(fd);
		free(c);
		return NULL;
	}
	c->number = g->next_conn++;
	c->want_read = true;
	DL_APPEND(g->conns, c);
	g->conns_n++;
	return c;
}

size_t conn_pending_out(const struct conn *c)
{
	return buf_len(&c->out) + (c->tls ? tls_conn_pending_out(c->tls) : 0);
}

static void count_unread(struct conn *c)
{
	size_t now = c->dead ? 0 : conn_pending_out(c) + c->kept;

	c->g->unread = c->g->unread - c->unread + now;
	c->unread = now;
}

/* Its memory stays until the iteration ends. */
void conn_close(struct conn *c)
{
	struct gateway *g = c->g;

	if (c->dead)
		return;
	if (c->stage && c->stage->end)
		c->stage->end(c);
	g->opening -= c->stage && c->stage->opens;
	c->dead = true;
	leaf_wait_cancel(c);
	loop_io_remove(&c->io);
	loop_timer_clear(&c->timer);
	if (c->dirty)
		DL_DELETE2(g->dirty, c, dirty_prev, dirty_next);
	if (c->held)
		DL_DELETE2(g->held, c, held_prev, held_next);
	c->dirty = c->held = false;
	c->tls = tls_conn_free(c->tls);
	c->fd = fd_close(c->fd);
	buf_done(&c->in);
	buf_done(&c->out);
	count_unread(c);
	DL_DELETE(g->conns, c);
	if (--g->conns_n == 0)
		gateway_rest(g);
	DL_APPEND(g->dead, c);
	gateway_touch(g);
	listener_resume(g);
}

void conn_free(struct conn *c)
{
	conn_close(c);
	DL_DELETE(c->g->dead, c);
	free(c->owner);
	free(c);
}

int conn_replace(struct conn *c, int fd)
{
	loop_io_remove(&c->io);
	fd_close(c->fd);
	c->fd = fd;
	return loop_io_add(c->g->loop, &c->io, fd, EPOLLIN | EPOLLRDHUP, on_io);
}

void conn_set_stage(struct conn *c, const struct stage *stage)
{
	c->g->opening -= c->stage && c->stage->opens;
	c->g->opening += stage->opens;
	c->stage = stage;
}

void conn_set_timeout(struct conn *c, uint64_t usec)
{
	uint64_t now = loop_now(c->g->loop);

	c->deadline = usec > UINT64_MAX - now ? USEC_INFINITY : now + usec;
	if (c->deadline != USEC_INFINITY && (!c->timer.loop || c->timer.at > c->deadline) &&
		loop_timer_set(c->g->loop, &c->timer, c->deadline, on_timer) < 0)
		conn_close(c); /* without a deadline it could stay for ever */
}

static void on_timer(struct loop_timer *timer)
{
	struct conn *c = container_of(timer, struct conn, timer);

	if (c->deadline == USEC_INFINITY)
		return;
	if (c->deadline > loop_now(c->g->loop)) {
		if (loop_timer_set(c->g->loop, &c->timer, c->deadline, on_timer) < 0)
			conn_close(c);
		return;
	}
	c->deadline = USEC_INFINITY;
	c->stage->expired(c);
}

ssize_t conn_read(struct conn *c, void *p, size_t n)
{
	ssize_t r;

	if (c->tls && c->tls_done)
		return tls_conn_read(c->tls, p, n);
	do {
		r = recv(c->fd, p, n, MSG_DONTWAIT);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

bool conn_has_buffered(const struct conn *c)
{
	return buf_len(&c->in) > 0 || (c->tls_done && tls_conn_has_pending(c->tls));
}

void conn_want_read(struct conn *c, bool want)
{
	if (c->dead || c->want_read == want)
		return;
	c->want_read = want;
	if (!conn_may_read(c))
		return;
	loop_io_set(&c->io, events_wanted(c, false));
	if (conn_has_buffered(c)) {
		c->again = true;
		conn_mark(c);
	}
}

void conn_read_turn(struct conn *c, bool (*read_once)(struct conn *c))
{
	for (int i = 0; i < READS_A_TURN; i++)
		if (gateway_hold(c->g, c) || !conn_may_read(c) || !read_once(c))
			return;
	if (conn_may_read(c)) {
		c->again = true;
		conn_mark(c);
	}
}

void conn_mark(struct conn *c)
{
	if (c->dead || c->dirty)
		return;
	c->dirty = true;
	c->marked = c->g->turn_n;
	DL_APPEND2(c->g->dirty, c, dirty_prev, dirty_next);
	gateway_touch(c->g);
}

/* Return the bytes written, 0 if the peer takes no more now, or a negative value if the connection
 * is broken. */
static ssize_t write_some(struct conn *c)
{
	ssize_t n;

	if (c->tls) {
		if (tls_conn_flush(c->tls) < 0)
			return -EPIPE;
		n = tls_conn_write(c->tls, buf_data(&c->out), buf_len(&c->out), c->stage->says_end);
		return n == -EAGAIN ? 0 : n;
	}
	do {
		n = send(c->fd, buf_data(&c->out), buf_len(&c->out), MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	return n < 0 && errno == EAGAIN ? 0 : n;
}

static void fill(struct conn *c)
{
	if (c->stage && c->stage->fill)
		c->stage->fill(c);
}

/* Returns whether there was something to write. */
static bool write_out(struct conn *c)
{
	size_t before;
	ssize_t n = 1;

	if (!c->dead)
		fill(c);
	before = conn_pending_out(c);
	if (c->dead || before == 0)
		return false;
	while (n > 0 && !c->dead && buf_len(&c->out) > 0) {
		n = write_some(c);
		if (n > 0)
			buf_consume(&c->out, (size_t)n);
		if (buf_len(&c->out) == 0)
			fill(c);
	}
	if (c->dead)
		return true;
	if (n >= 0 && c->tls && tls_conn_flush(c->tls) < 0)
		n = -EPIPE;
	if (n < 0) {
		conn_close(c);
		return true;
	}
	if (buf_len(&c->out) == 0)
		buf_done(&c->out);
	c->blocked = conn_pending_out(c) > 0;
	loop_io_set(&c->io, events_wanted(c, c->io.events & EPOLLIN));
	if (conn_pending_out(c) < before && c->stage->drained)
		c->stage->drained(c);
	return true;
}

void conn_flush(struct conn *c)
{
	if (!write_out(c) && c->owes_more && conn_may_read(c))
		fd_acknowledge(c->fd);
	c->owes_more = false;
	count_unread(c);
}

/* The peer has ended its side while reading is not wanted. With TLS it is gone: no client ends one
 * side of a TLS connection and waits. A plain client may have sent all that it wants to say. */
static void on_half_close(struct conn *c)
{
	if (c->tls) {
		conn_close(c);
		return;
	}
	c->half_closed = true;
	loop_io_set(&c->io, events_wanted(c, false));
}

static void on_io(struct loop_io *io, uint32_t events)
{
	struct conn *c = container_of(io, struct conn, io);

	if (events & EPOLLERR) {
		conn_close(c);
		return;
	}
	if (events & EPOLLOUT)
		conn_flush(c);
	if (c->dead)
		return;
	if (conn_may_read(c) && (events & (EPOLLIN | EPOLLHUP | EPOLLRDHUP))) {
		c->stage->readable(c);
		c->owes_more = conn_may_read(c);
		if (c->owes_more)
			conn_mark(c);
		return;
	}
	if (events & EPOLLHUP)
		conn_close(c);
	else if (events & EPOLLRDHUP)
		on_half_close(c);
	else if (events & EPOLLIN)
		loop_io_set(&c->io, events_wanted(c, false));
}

void conn_guard_end(struct conn *c)
{
	if (!c->dead)
		fd_set_reset(c->fd, true);
	c->guarded = true;
}

/* All output was written: closing must not discard what the kernel still has of it. */
static void release_end(struct conn *c)
{
	if (c->guarded)
		fd_set_reset(c->fd, false);
	c->guarded = false;
}

void conn_abort(struct conn *c)
{
	if (c->dead)
		return;
	fd_set_reset(c->fd, true);
	conn_close(c);
}

/* --- the last stage: output is written, then the connection closed --- */

static void say_end(struct conn *c)
{
	if (c->tls_done)
		tls_conn_shutdown(c->tls);
}

/* While output is pending, the peer has as much time as within an exchange. */
static bool still_writing(struct conn *c)
{
	bool writing = conn_pending_out(c) > 0;

	conn_set_timeout(c, writing ? c->g->limits->stream_idle_usec : c->g->limits->linger_usec);
	return c->dead || writing;
}

static void closing_drained(struct conn *c)
{
	if (still_writing(c))
		return;
	release_end(c);
	say_end(c);
	conn_close(c);
}

static void closing_readable(struct conn *c)
{
	conn_want_read(c, false);
	loop_io_set(&c->io, events_wanted(c, false));
}

static const struct stage closing = {
	.says_end = true,
	.readable = closing_readable,
	.drained = closing_drained,
	.expired = conn_close,
};

static void lingering_drained(struct conn *c)
{
	if (still_writing(c))
		return;
	release_end(c);
	say_end(c);
	(void)shutdown(c->fd, SHUT_WR);
}

/* Input is dropped here and not even decrypted. */
static void lingering_readable(struct conn *c)
{
	ssize_t n;

	do {
		n = recv(c->fd, c->g->scratch, sizeof(c->g->scratch), MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return;
	c->dropped += n > 0 ? (size_t)n : 0;
	if (n <= 0 || c->dropped > c->g->limits->linger_bytes)
		conn_close(c);
}

static const struct stage lingering = {
	.says_end = true,
	.readable = lingering_readable,
	.drained = lingering_drained,
	.expired = conn_close,
};

/* Whether the kernel still has output that the peer's kernel has not taken. */
static bool is_under_way(const struct conn *c)
{
	uint32_t info[SK_MEMINFO_VARS] = {0};
	socklen_t n = sizeof(info);

	return getsockopt(c->fd, SOL_SOCKET, SO_MEMINFO, info, &n) == 0 &&
	       info[SK_MEMINFO_WMEM_QUEUED] > 0;
}

/* A reset discards output that is still under way. So check again in a moment, for up to
 * linger_usec if the peer takes none of it. */
static void cutting_drained(struct conn *c)
{
	const uint64_t step = 10 * USEC_PER_MSEC;

	if (conn_pending_out(c) > 0) {
		(void)still_writing(c);
		return;
	}
	if (!is_under_way(c) || c->cut_waits * step >= c->g->limits->linger_usec) {
		conn_abort(c);
		return;
	}
	c->cut_waits++;
	conn_set_timeout(c, step);
}

static void cutting_expired(struct conn *c)
{
	if (conn_pending_out(c) > 0)
		conn_abort(c);
	else
		cutting_drained(c);
}

static const struct stage cutting = {
	.readable = closing_readable,
	.drained = cutting_drained,
	.expired = cutting_expired,
};

static void end_in(struct conn *c, const struct stage *last)
{
	if (c->dead || c->stage == last)
		return;
	if (c->stage && c->stage->end)
		c->stage->end(c);
	c->state = NULL;
	buf_done(&c->in);
	conn_set_stage(c, last);
	conn_want_read(c, last == &lingering);
	if (c->dead)
		return;
	if (conn_pending_out(c) == 0)
		last->drained(c);
	else if (still_writing(c))
		conn_mark(c);
}

void conn_end(struct conn *c)
{
	end_in(c, &closing);
}

void conn_end_linger(struct conn *c)
{
	end_in(c, &lingering);
}

void conn_cut(struct conn *c)
{
	end_in(c, &cutting);
}

/* --- both ends --- */

static uint16_t copy_end(const union conn_addr *a, uint8_t address[16])
{
	bool v6 = a->sa.sa_family == AF_INET6;

	if (v6)
		memcpy(address, &a->v6.sin6_addr, sizeof(a->v6.sin6_addr));
	else
		memcpy(address, &a->v4.sin_addr, sizeof(a->v4.sin_addr));
	return ntohs(v6 ? a->v6.sin6_port : a->v4.sin_port);
}

void conn_set_peer(struct conn *c, const union conn_addr *peer)
{
	struct net_client *m = &c->client;

	if (peer->sa.sa_family != c->dest.sa.sa_family)
		return;
	m->family = peer->sa.sa_family == AF_INET6 ? 6 : 4;
	m->port = copy_end(peer, m->address);
	m->server_port = copy_end(&c->dest, m->server);
}

static struct str keep_text(char *at, struct str text)
{
	if (text.n > 0)
		memcpy(at, text.p, text.n);
	return str_make(at, text.n);
}

/* The texts follow the struct. */
void conn_set_owner(struct conn *c, const struct net_owner *owner)
{
	struct net_owner *o;
	char *at;

	if (owner->pid == 0)
		return;
	o = malloc(sizeof(*o) + owner->name.n + owner->program.n);
	if (!o)
		return;
	at = (char *)(o + 1);
	o->pid = owner->pid;
	o->name = keep_text(at, owner->name);
	o->program = keep_text(at + owner->name.n, owner->program);
	free(c->owner);
	c->owner = o;
}

/* --- destination as text --- */

void conn_dest_host(const struct conn *c, struct host *ret)
{
	const struct in6_addr *v6 = &c->dest.v6.sin6_addr;
	struct in_addr v4 = c->dest.v4.sin_addr;
	bool mapped = c->dest.sa.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(v6);

	if (mapped)
		memcpy(&v4, &v6->s6_addr[12], sizeof(v4));
	if (mapped || c->dest.sa.sa_family == AF_INET) {
		ret->kind = HOST_IPV4;
		inet_ntop(AF_INET, &v4, ret->text, INET_ADDRSTRLEN);
	} else {
		ret->kind = HOST_IPV6;
		ret->text[0] = '[';
		inet_ntop(AF_INET6, v6, ret->text + 1, INET6_ADDRSTRLEN);
		memcpy(ret->text + strlen(ret->text), "]", 2);
	}
	ret->n = strlen(ret->text);
}

void conn_dest_name(struct conn *c, struct host *ret)
{
	if (host_parse(dns_synthetic_name(c->g->names, &c->dest.sa), ret) < 0)
		conn_dest_host(c, ret);
}

struct str conn_dest_text(struct conn *c, char buffer[CONN_DEST_MAX])
{
	struct str name = dns_synthetic_name(c->g->names, &c->dest.sa);
	struct host host;
	int n;

	conn_dest_host(c, &host);
	if (name.n)
		n = snprintf(
			buffer, CONN_DEST_MAX, "%.*s (%s:%u)", STR_FMT(name), host.text, c->port);
	else
		n = snprintf(buffer, CONN_DEST_MAX, "%s:%u", host.text, c->port);
	return str_make(buffer, (size_t)MIN(n, CONN_DEST_MAX - 1));
}
