/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: every address inside the room is local, so a query to any resolver arrives
 * here; the answer is sent from the address that was asked. Answers are made from the map of
 * synthetic addresses alone. A flood is dropped, and the log gets each name once a minute. */
#include "gateway/dns.h"
#include "base/clock.h"
#include "base/fd.h"
#include "dns/responder.h"
#include "dns/udp.h"
#include "gateway/conn.h"
#include "gateway/event.h"
#include "gateway/state.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

enum {
	PACKETS_A_TURN = 64,
	TCP_IN_MAX = 2 + DNS_TCP_MAX,
};

/* --- log --- */

struct dns_logged {
	UT_hash_handle hh;
	uint64_t at;
	size_t n;
	char name[DNS_WIRE_NAME_MAX + 1];
};

static void forget(struct gateway *g, struct dns_logged *l)
{
	HASH_DEL(g->dns_log.by_name, l);
	g->dns_log.n--;
	free(l);
}

/* Return whether the name is to be logged now, and remember it if so. */
static bool is_news(struct gateway *g, struct str name)
{
	uint64_t now = loop_now(g->loop);
	struct dns_logged *l = calloc(1, sizeof(*l)), *old;

	if (!l)
		return true;
	l->at = now;
	l->n = MIN(name.n, sizeof(l->name));
	for (size_t i = 0; i < l->n; i++)
		l->name[i] = str_lower_char(name.p[i]);
	HASH_FIND(hh, g->dns_log.by_name, l->name, l->n, old);
	if (old && now - old->at < g->limits->dns_log_every_usec) {
		free(l);
		return false;
	}
	if (old)
		forget(g, old);
	/* uthash keeps the order of insertion: the first is the oldest. */
	while (g->dns_log.n >= g->limits->dns_log_names)
		forget(g, g->dns_log.by_name);
	HASH_ADD_KEYPTR(hh, g->dns_log.by_name, l->name, l->n, l);
	if (l->hh.tbl)
		g->dns_log.n++;
	else
		free(l);
	return true;
}

void dns_log_done(struct gateway *g)
{
	while (g->dns_log.by_name)
		forget(g, g->dns_log.by_name);
}

static struct str answer_text(const struct dns_answer *a, char text[INET6_ADDRSTRLEN])
{
	switch (a->kind) {
	case DNS_ANSWER_A:
		return str_from(inet_ntop(AF_INET, &a->v4, text, INET6_ADDRSTRLEN));
	case DNS_ANSWER_AAAA:
		return str_from(inet_ntop(AF_INET6, &a->v6, text, INET6_ADDRSTRLEN));
	case DNS_ANSWER_NODATA:
		return STR("NODATA");
	case DNS_ANSWER_FORMERR:
		return STR("FORMERR");
	case DNS_ANSWER_SERVFAIL:
		return STR("SERVFAIL");
	case DNS_ANSWER_BADVERS:
		return STR("BADVERS");
	}
	return STR("");
}

void dns_log_answer(
	struct gateway *g, struct str name, uint16_t type, const struct dns_answer *answer)
{
	char type_text[DNS_TYPE_TEXT_MAX], text[INET6_ADDRSTRLEN];

	if (!is_news(g, name))
		return;
	dns_type_text(type, type_text);
	event_send(g, &(struct net_event){
			      .kind = NET_EVENT_DNS,
			      .port = 53,
			      .a = name,
			      .b = str_from(type_text),
			      .c = answer_text(answer, text),
		      });
}

/* Append the answer to one packet to out. Return 1, 0 if there is no answer, or a negative
 * value. */
static int respond(struct gateway *g, struct str packet, bool tcp, struct buf *out)
{
	struct dns_event e;
	int r = dns_respond(g->names, packet, tcp, out, &e);

	if (r > 0)
		dns_log_answer(g, dns_query_name(&e.query), e.query.type, &e.answer);
	return r;
}

/* --- UDP --- */

static int respond_udp(void *user, struct str packet, struct buf *out)
{
	return respond(user, packet, false, out);
}

static void on_next_second(struct loop_timer *timer)
{
	struct dns_socket *s = container_of(timer, struct dns_socket, timer);

	loop_io_set(&s->io, EPOLLIN);
}

/* Queries beyond the rate stay in the socket's queue, and are lost when that is full. */
static bool within_rate(struct dns_socket *s)
{
	uint64_t now = loop_now(s->g->loop);

	if (now - s->second >= USEC_PER_SEC) {
		s->second = now;
		s->n = 0;
	}
	if (s->n < s->g->limits->dns_per_sec) {
		s->n++;
		return true;
	}
	loop_io_set(&s->io, 0);
	if (loop_timer_set(s->g->loop, &s->timer, s->second + USEC_PER_SEC, on_next_second) < 0)
		gateway_fail(s->g, E_NO_MEMORY, "out of memory");
	return false;
}

static void on_udp(struct loop_io *io, uint32_t events)
{
	struct dns_socket *s = container_of(io, struct dns_socket, io);

	for (int i = 0; i < PACKETS_A_TURN && within_rate(s); i++)
		if (!dns_udp_answer(s->fd, respond_udp, s->g)) {
			s->n--; /* there was none */
			return;
		}
}

int dns_udp_add(struct gateway *g, struct dns_socket *s, int fd)
{
	int r = fd_set_nonblock(fd, true);

	dns_udp_prepare(fd);
	if (r >= 0)
		r = loop_io_add(g->loop, &s->io, fd, EPOLLIN, on_udp);
	if (r < 0) {
		fd_close(fd);
		return r;
	}
	s->g = g;
	s->fd = fd;
	return 0;
}

void dns_udp_done(struct dns_socket *s)
{
	if (!s->g)
		return;
	loop_timer_clear(&s->timer);
	loop_io_remove(&s->io);
	s->fd = fd_close(s->fd);
	s->g = NULL;
}

/* --- TCP (RFC 7766) --- */

/* Answer one message; the answer has its length in two bytes in front. */
static int answer_tcp(struct conn *c, struct str packet)
{
	size_t before = buf_len(&c->out);
	int r = buf_add(&c->out, "\0\0", 2);
	size_t n;
	char *at;

	if (r >= 0)
		r = respond(c->g, packet, true, &c->out);
	if (r <= 0)
		return -EPROTO; /* input that is not a query ends the connection */
	at = buf_data(&c->out) + before;
	n = buf_len(&c->out) - before - 2;
	at[0] = (char)(n >> 8);
	at[1] = (char)n;
	return 0;
}

static void dns_tcp_feed(struct conn *c)
{
	struct str in = buf_str(&c->in), packet;
	size_t before = in.n, high = c->g->limits->unsent_high;
	int r = 0;

	while (r == 0 && conn_pending_out(c) < high && dns_tcp_next(&in, &packet) == 1)
		r = answer_tcp(c, packet);
	if (r < 0) {
		conn_close(c);
		return;
	}
	buf_consume(&c->in, before - in.n);
	/* If the output is full, dns_tcp_drained() continues. */
	conn_want_read(c, conn_pending_out(c) < high);
	if (conn_pending_out(c) > 0)
		conn_mark(c);
}

static void dns_tcp_readable(struct conn *c)
{
	size_t room = TCP_IN_MAX - buf_len(&c->in);
	char *at;
	ssize_t n;

	if (room > 0) {
		room = MIN(room, (size_t)4096);
		if (buf_reserve(&c->in, room, &at) < 0) {
			conn_close(c);
			return;
		}
		n = conn_read(c, at, room);
		if (n == 0)
			conn_end(c);
		else if (n < 0 && n != -EAGAIN)
			conn_close(c);
		if (n == 0 || c->dead)
			return;
		if (n > 0) {
			buf_commit(&c->in, (size_t)n);
			conn_set_timeout(c, c->g->limits->first_byte_usec);
		}
	}
	if (!c->dead)
		dns_tcp_feed(c);
}

static void dns_tcp_drained(struct conn *c)
{
	if (conn_pending_out(c) < c->g->limits->unsent_high)
		dns_tcp_feed(c);
}

static const struct stage dns_stage = {
	.readable = dns_tcp_readable,
	.drained = dns_tcp_drained,
	.expired = conn_close,
};

void dns_tcp_start(struct conn *c)
{
	conn_set_stage(c, &dns_stage);
	conn_set_timeout(c, c->g->limits->first_byte_usec);
}
