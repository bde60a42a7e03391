/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-ADDRESS-CHECKED): a name is resolved only for a request that policy
 * allows. Every address of the answer is judged, those that may not be dialled are left out, and
 * exactly the judged addresses are dialled: there is no second look-up that could answer something
 * else. Addresses are tried in order. If one has not answered for a moment, the next one is tried
 * as well (the idea of RFC 8305 5); the first connection wins.
 *
 * Addresses given by --connect-to are the user's own choice and are not judged, and so is this
 * machine's loopback by the name that is only for it. Nor are those of a
 * proxy of the person's environment. It resolves the names that it is asked for, so of these only
 * addresses that are known here are judged: literals and those of the hosts file. What they say is
 * this machine itself is dialled directly, since to the proxy it would mean the proxy. */
#include "broker/dial.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "broker/broker_internal.h"
#include "broker/config.h"
#include "broker/proxy.h"
#include "broker/refuse.h"
#include "broker/stream.h"
#include "broker/upstream.h"
#include "dns/resolver.h"
#include "ipc/helper.h"
#include "loop/loop.h"
#include "policy/allowlist.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <sys/socket.h>

#define NEXT_TRY_USEC (300 * USEC_PER_MSEC)
#define NAMES_USEC (5 * USEC_PER_SEC)
enum { TRIES_AT_ONCE = 4 };

struct dial {
	struct stream *stream;
	struct dns_lookup *lookup;
	struct loop_timer next, deadline;
	union dns_addr addrs[DNS_ADDRS_MAX];
	unsigned n, at;
	uint16_t port;
	bool exempt;             /* from the judgement of addresses */
	const struct proxy *via; /* what is dialled is this proxy; NULL: the origin */
	struct proxy_ask ask;
	int error; /* errno of the last attempt that failed */
	struct attempt {
		struct dial *dial;
		struct loop_io io;
		int fd; /* -1: free */
	} tries[TRIES_AT_ONCE];
};

static void attempt_end(struct attempt *a)
{
	loop_io_remove(&a->io);
	a->fd = fd_close(a->fd);
}

void dial_cancel(struct stream *s)
{
	struct dial *d = s->dial;

	if (!d)
		return;
	s->dial = NULL;
	dns_lookup_cancel(d->lookup);
	loop_timer_clear(&d->next);
	loop_timer_clear(&d->deadline);
	for (size_t i = 0; i < TRIES_AT_ONCE; i++)
		attempt_end(&d->tries[i]);
	proxy_ask_end(&d->ask);
	free(d);
}

static void dial_fail(struct dial *d, const char *error, const char *message)
{
	char via[NOTE_MAX];

	if (d->via) {
		/* The room reads this. What d holds goes with d. */
		snprintf(via, sizeof(via), "the proxy of this machine's network: %s", message);
		refuse_upstream(d->stream, 502, "upstream_proxy", via);
		return;
	}
	refuse_upstream(d->stream, 502, error, message);
}

static socklen_t addr_len(const union dns_addr *a)
{
	return a->sa.sa_family == AF_INET6 ? sizeof(a->v6) : sizeof(a->v4);
}

static void addr_text(const union dns_addr *a, char ret[INET6_ADDRSTRLEN])
{
	const void *p = a->sa.sa_family == AF_INET6 ? (const void *)&a->v6.sin6_addr
						    : (const void *)&a->v4.sin_addr;

	if (!inet_ntop(a->sa.sa_family, p, ret, INET6_ADDRSTRLEN))
		snprintf(ret, INET6_ADDRSTRLEN, "?");
}

static struct address_policy allowed_addresses(
	const struct stream *s, const struct allow_rule *rule)
{
	struct address_policy p = {0};

	if (rule)
		p = allow_rule_addresses(rule);
	p.own = s->broker->dialer.own;
	p.n_own = s->broker->dialer.own_n;
	return p;
}

/* Return whether fd leads to an address of this machine that the rule does not open. The machine
 * may have got the address after the broker had started. Nothing has been sent yet. */
static bool reached_itself(const struct stream *s, const struct allow_rule *rule, int fd)
{
	struct address_policy p = allowed_addresses(s, rule);
	union dns_addr local = {0}, peer = {0};
	socklen_t n = sizeof(local), m = sizeof(peer);
	struct cidr one, other;

	if (getsockname(fd, &local.sa, &n) < 0 || getpeername(fd, &peer.sa, &m) < 0 ||
		cidr_from_sockaddr(&local.sa, &one) < 0 || cidr_from_sockaddr(&peer.sa, &other) < 0)
		return true;
	p.own = &other;
	p.n_own = 1;
	return memcmp(one.addr, other.addr, sizeof(one.addr)) == 0 &&
	       address_refusal(&peer.sa, &p) != NULL;
}

static void try_next(struct dial *d);

static void on_proxy_done(struct proxy_ask *ask, const char *why)
{
	struct dial *d = container_of(ask, struct dial, ask);
	struct stream *s = d->stream;
	int fd;

	if (why) {
		dial_fail(d, NULL, why);
		return;
	}
	fd = TAKE_FD(ask->fd);
	dial_cancel(s);
	upstream_new(s, fd);
}

static void ask_proxy(struct dial *d, int fd)
{
	struct stream *s = d->stream;

	loop_timer_clear(&d->next);
	for (size_t i = 0; i < TRIES_AT_ONCE; i++)
		attempt_end(&d->tries[i]);
	d->ask.done = on_proxy_done;
	if (proxy_ask_begin(&d->ask, s->broker->loop, fd, d->via, &s->host, s->port) < 0)
		refuse_upstream(s, 503, "out_of_memory", "no memory for a connection");
}

static void on_connected(struct attempt *a)
{
	struct dial *d = a->dial;
	struct stream *s = d->stream;
	int fd = a->fd, one = 1;

	if (!d->exempt && reached_itself(s, s->verdict.rule, fd)) {
		refuse_address(s, "the name leads to an address of this machine", NULL);
		return;
	}
	loop_io_remove(&a->io);
	a->fd = -1;
	fd_send_at_once(fd);
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	if (d->via) {
		ask_proxy(d, fd);
		return;
	}
	dial_cancel(s);
	upstream_new(s, fd);
}

static void on_attempt(struct loop_io *io, uint32_t events)
{
	struct attempt *a = container_of(io, struct attempt, io);
	struct dial *d = a->dial;
	int error = 0;
	socklen_t n = sizeof(error);

	if (getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
		error = errno;
	if (error == 0) {
		on_connected(a);
		return;
	}
	d->error = error;
	attempt_end(a);
	try_next(d);
}

static void on_next(struct loop_timer *t)
{
	try_next(container_of(t, struct dial, next));
}

/* Return 1 if it is under way, 0 if it failed at once. */
static int attempt_start(struct dial *d, struct attempt *a, union dns_addr *addr)
{
	if (addr->sa.sa_family == AF_INET6)
		addr->v6.sin6_port = htons(d->port);
	else
		addr->v4.sin_port = htons(d->port);
	a->dial = d;
	a->fd = socket(addr->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
	if (a->fd < 0 || (connect(a->fd, &addr->sa, addr_len(addr)) < 0 && errno != EINPROGRESS)) {
		d->error = errno;
		a->fd = fd_close(a->fd);
		return 0;
	}
	if (loop_io_add(d->stream->broker->loop, &a->io, a->fd, EPOLLOUT, on_attempt) < 0) {
		d->error = ENOMEM;
		a->fd = fd_close(a->fd);
		return 0;
	}
	return 1;
}

/* Try the next address, or end the dialling if none is left or under way. */
static void try_next(struct dial *d)
{
	struct loop *loop = d->stream->broker->loop;
	struct attempt *spare = NULL;
	unsigned busy = 0;
	char message[160];

	for (size_t i = 0; i < TRIES_AT_ONCE; i++) {
		if (d->tries[i].fd < 0)
			spare = &d->tries[i];
		else
			busy++;
	}
	while (spare && d->at < d->n) {
		if (attempt_start(d, spare, &d->addrs[d->at++]) == 0)
			continue;
		if (d->at < d->n && loop_timer_set(loop, &d->next,
					    clock_mono_usec() + NEXT_TRY_USEC, on_next) < 0)
			d->n = d->at; /* without a timer, the remaining addresses are not tried */
		return;
	}
	if (busy > 0)
		return;
	snprintf(message, sizeof(message), "connecting failed: %s", err_errno_text(d->error));
	dial_fail(d, "upstream_unreachable", message);
}

static void on_deadline(struct loop_timer *t)
{
	struct dial *d = container_of(t, struct dial, deadline);

	dial_fail(d, "upstream_unreachable", "connecting took too long");
}

/* Leave out addresses that may not be dialled. Return the first refusal if none is left. */
static const char *judge_addresses(
	struct dial *d, const struct dns_result *result, char ret_first[])
{
	struct address_policy p = allowed_addresses(d->stream, d->stream->verdict.rule);
	const char *first = NULL;

	for (unsigned i = 0; i < result->n; i++) {
		const char *why = d->exempt ? NULL : address_refusal(&result->addrs[i].sa, &p);

		if (!why) {
			d->addrs[d->n++] = result->addrs[i];
		} else if (!first) {
			first = why;
			addr_text(&result->addrs[i], ret_first);
		}
	}
	return d->n > 0 ? NULL : first ? first : "no address";
}

/* Return false if they may not be dialled; the stream is refused then. */
static bool take_addresses(struct dial *d, const struct dns_result *result)
{
	char first[INET6_ADDRSTRLEN] = "", advice[96] = "", message[NOTE_MAX];
	const char *why = judge_addresses(d, result, first);
	bool may_advise = result->n > 0 && address_may_be_advised(&result->addrs[0].sa);

	if (why) {
		if (may_advise)
			snprintf(advice, sizeof(advice),
				"; allow_private: [\"%s\"] in its entry opens it", first);
		snprintf(message, sizeof(message), "%s resolves to %s, which is refused: %s%s",
			d->stream->host.text, first, why, advice);
		refuse_address(d->stream, message, may_advise ? first : NULL);
		return false;
	}
	return true;
}

static void resolved(struct dial *d, const struct dns_result *result)
{
	if (take_addresses(d, result))
		try_next(d);
}

static void on_lookup(
	void *arg, int r, const struct dns_result *result, const struct cloche_err *err)
{
	struct dial *d = arg;

	d->lookup = NULL;
	if (r < 0)
		dial_fail(d, "name_not_resolved",
			d->via ? "its name cannot be resolved" : err->message);
	else
		resolved(d, result);
}

static void on_resolver_timer(struct loop_timer *t);

static void resolver_rearm(struct broker *b)
{
	uint64_t at = dns_resolver_next_usec(b->dialer.resolver);

	if (at == USEC_INFINITY)
		loop_timer_clear(&b->dialer.timer);
	else if (loop_timer_set(b->loop, &b->dialer.timer, at, on_resolver_timer) < 0)
		broker_fail(b);
}

static void on_resolver_timer(struct loop_timer *t)
{
	struct broker *b = container_of(t, struct broker, dialer.timer);

	dns_resolver_tick(b->dialer.resolver);
	resolver_rearm(b);
}

static void on_resolver_fd(struct loop_io *io, uint32_t events)
{
	struct resolver_fd *f = container_of(io, struct resolver_fd, io);
	struct broker *b = f->broker;
	uint32_t broken = events & (EPOLLERR | EPOLLHUP);

	dns_resolver_ready(b->dialer.resolver, f->fd, (events & EPOLLIN) || broken,
		(events & EPOLLOUT) || broken);
	resolver_rearm(b);
}

/* Called by the resolver to say what to wait for. */
static void dial_watch(void *arg, int fd, bool readable, bool writable)
{
	struct broker *b = arg;
	uint32_t events = (readable ? (uint32_t)EPOLLIN : 0) | (writable ? (uint32_t)EPOLLOUT : 0);
	struct resolver_fd *spare = NULL;

	for (size_t i = 0; i < RESOLVER_FDS; i++) {
		struct resolver_fd *f = &b->dialer.fds[i];

		if (!f->io.loop) {
			spare = f;
		} else if (f->fd == fd) {
			if (events)
				loop_io_set(&f->io, events);
			else
				loop_io_remove(&f->io);
			return;
		}
	}
	if (!events || !spare)
		return; /* a query that is not watched ends by its timeout */
	spare->broker = b;
	spare->fd = fd;
	if (loop_io_add(b->loop, &spare->io, fd, events, on_resolver_fd) < 0)
		spare->io.loop = NULL;
}

static const struct override *find_override(const struct stream *s)
{
	for (size_t i = 0; i < s->broker->dialer.overrides_n; i++) {
		const struct override *o = &s->broker->dialer.overrides[i];

		if (o->port == s->port && str_eq(host_str(&o->host), host_str(&s->host)))
			return o;
	}
	return NULL;
}

static bool is_this_machine(const union dns_addr *a)
{
	return a->sa.sa_family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr)
					   : ntohl(a->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* Return the proxy that leads to the origin of s, or NULL. ret: the origin's addresses, as far as
 * they are known here. */
static const struct proxy *dial_proxy(const struct stream *s, struct dns_result *ret)
{
	const struct dialer *d = &s->broker->dialer;
	const struct proxy *via = proxies_find(
		&d->proxies, s->scheme == NET_HTTP ? POLICY_HTTP : POLICY_HTTPS, &s->host);

	ret->n = 0;
	if (policy_host_is_machine(&s->host))
		return NULL;
	if (!via || !dns_resolver_known(d->resolver, host_bare(&s->host), ret))
		return via;
	return ret->n > 0 && is_this_machine(&ret->addrs[0]) ? NULL : via;
}

bool dial_may_stay(const struct stream *s, const struct allow_rule *rule)
{
	struct address_policy p = allowed_addresses(s, rule);
	struct dns_result known;
	union dns_addr peer = {0};
	socklen_t n = sizeof(peer);

	if (!s->up || find_override(s))
		return true;
	/* The connection itself is elsewhere (ssh.c). */
	if (s->scheme == NET_SSH)
		return allow_rule_same_addresses(s->verdict.rule, rule);
	if (policy_host_is_machine(&s->host))
		return rule && allow_rule_names_machine(rule);
	if (dial_proxy(s, &known)) {
		for (unsigned i = 0; i < known.n; i++)
			if (address_refusal(&known.addrs[i].sa, &p))
				return false;
		return true;
	}
	return getpeername(s->up->fd, &peer.sa, &n) == 0 && !address_refusal(&peer.sa, &p) &&
	       !reached_itself(s, rule, s->up->fd);
}

/* The host's files may have changed, and no file can be opened here: ask the supervisor. The result
 * is used for later look-ups. */
static void ask_for_names(struct broker *b)
{
	uint64_t now = loop_now(b->loop);

	if (b->dialer.names_asked && now - b->dialer.names_asked < NAMES_USEC)
		return;
	b->dialer.names_asked = now;
	/* If the supervisor has gone, reading from it will show that. */
	if (helper_send_names_changed(&b->supervisor) == 0)
		(void)!broker_flush_supervisor(b);
}

/* Return NULL after refusing the stream. */
static struct dial *dial_new(struct stream *s)
{
	struct broker *b = s->broker;
	struct dial *d = calloc(1, sizeof(*d));

	if (!d || loop_timer_set(b->loop, &d->deadline, clock_mono_usec() + CONNECT_USEC,
			  on_deadline) < 0) {
		free(d);
		refuse_upstream(s, 503, "out_of_memory", "no memory for a connection");
		return NULL;
	}
	d->stream = s;
	d->port = s->port;
	d->ask.fd = -1;
	for (size_t i = 0; i < TRIES_AT_ONCE; i++)
		d->tries[i].fd = -1;
	s->dial = d;
	return d;
}

static void dial_name(struct dial *d, struct str name)
{
	struct broker *b = d->stream->broker;
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct dns_result now;
	int r = dns_resolver_lookup(b->dialer.resolver, name,
		(struct dns_lookup_handler){.done = on_lookup, .arg = d}, &now, &d->lookup, &err);

	resolver_rearm(b);
	if (r < 0)
		dial_fail(d, "name_not_resolved",
			d->via ? "its name cannot be resolved" : err.message);
	else if (r > 0)
		resolved(d, &now);
}

/* Only a rule that names it leads to this machine's loopback by its own name. */
static bool is_named_service(const struct stream *s)
{
	const struct allow_rule *rule = s->verdict.rule;

	return policy_host_is_machine(&s->host) && rule && allow_rule_names_machine(rule);
}

void dial_start(struct stream *s)
{
	const struct override *o = find_override(s);
	struct dial *d = dial_new(s);
	struct dns_result known;
	const struct proxy *via;
	bool service = !o && is_named_service(s);

	if (!d)
		return;
	ask_for_names(s->broker);
	via = o ? NULL : dial_proxy(s, &known);
	if (via && known.n > 0 && !take_addresses(d, &known))
		return;
	d->n = 0;
	d->via = via;
	d->exempt = o || via || service;
	if (o)
		d->port = o->to_port;
	else if (via)
		d->port = via->port;
	if (o)
		dial_name(d, str_from(o->address));
	else if (service)
		dial_name(d, STR("127.0.0.1"));
	else
		dial_name(d, via ? host_bare(&via->host) : host_bare(&s->host));
}

static int load_own_addresses(struct broker *b, struct cloche_err *err)
{
	struct ifaddrs *list, *i;
	size_t n = 0;

	if (getifaddrs(&list) < 0)
		return err_sys(err, errno, "list this machine's addresses");
	for (i = list; i; i = i->ifa_next)
		n++;
	b->dialer.own = calloc(n + 1, sizeof(*b->dialer.own));
	for (i = list; b->dialer.own && i; i = i->ifa_next)
		if (i->ifa_addr &&
			cidr_from_sockaddr(i->ifa_addr, &b->dialer.own[b->dialer.own_n]) == 0)
			b->dialer.own_n++;
	freeifaddrs(list);
	return b->dialer.own ? 0 : err_nomem(err);
}

int dial_setup(struct broker *b, struct cloche_err *err)
{
	struct dns_resolver_config config = {.watch = dial_watch, .arg = b};
	int r = load_own_addresses(b, err);

	if (r == 0)
		r = dns_resolver_new(&config, &b->dialer.resolver, err);
	if (r == 0 && b->dialer.servers)
		r = dns_resolver_set_servers(b->dialer.resolver, b->dialer.servers, err);
	return r;
}

void dial_teardown(struct broker *b)
{
	dns_resolver_free(b->dialer.resolver);
	b->dialer.resolver = NULL;
	proxies_done(&b->dialer.proxies);
	for (size_t i = 0; i < RESOLVER_FDS; i++)
		loop_io_remove(&b->dialer.fds[i].io);
	loop_timer_clear(&b->dialer.timer);
}
