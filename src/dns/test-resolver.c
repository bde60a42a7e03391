/* SPDX-License-Identifier: Apache-2.0 */
/* The resolver against a small DNS server on loopback, UDP and TCP, in the same thread: one poll
 * loop plays both. What the resolver remembers and waits for is in time that the test moves. */
#include "base/fd.h"
#include "clockwork.h"
#include "dns/message.h"
#include "dns/resolver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <tap.h>
#include <unistd.h>

#define WATCHED_MAX 64

static int udp = -1, tcp = -1;
static unsigned udp_queries, tcp_queries;
static struct dns_resolver *resolver;
static char servers[32];

static struct {
	int fd;
	short events;
} watched[WATCHED_MAX];
static unsigned watched_n;

static void watch(void *arg, int fd, bool readable, bool writable)
{
	short events = (short)((readable ? POLLIN : 0) | (writable ? POLLOUT : 0));
	unsigned i = 0;

	check(arg == &watched_n);
	while (i < watched_n && watched[i].fd != fd)
		i++;
	if (!events) {
		check(i < watched_n);
		watched[i] = watched[--watched_n];
		return;
	}
	must(i < WATCHED_MAX);
	if (i == watched_n)
		watched_n++;
	watched[i].fd = fd;
	watched[i].events = events;
}

static void put(struct buf *b, unsigned v, unsigned bytes)
{
	while (bytes--)
		must(buf_add_char(b, (char)(v >> (8 * bytes))) == 0);
}

static void put_record(struct buf *b, unsigned type, unsigned ttl, const char *address)
{
	uint8_t bytes[16];
	unsigned n = type == 1 ? 4 : 16;

	must(inet_pton(type == 1 ? AF_INET : AF_INET6, address, bytes) == 1);
	put(b, 0xc00c, 2);
	put(b, type, 2);
	put(b, 1, 2);
	put(b, ttl, 4);
	put(b, n, 2);
	must(buf_add(b, bytes, n) == 0);
}

struct zone {
	const char *name;
	unsigned rcode, ttl;
	const char *v4[2], *v6;
	const char *many; /* all names that begin so */
};

static const struct zone zones[] = {
	{"both.test", 0, 60, {"192.0.2.1", "192.0.2.2"}, "2001:db8::1"},
	{"four.test", 0, 60, {"192.0.2.4"}, NULL},
	{"six.test", 0, 60, {NULL}, "2001:db8::6"},
	{"tcp.test", 0, 60, {"192.0.2.5"}, NULL},
	{"brief.test", 0, 0, {"192.0.2.6"}, NULL},
	{"long.test", 0, 1000000, {"192.0.2.7"}, NULL},
	{"empty.test", 0, 60, {NULL}, NULL},
	{"nx.test", 3, 60, {NULL}, NULL, "nx"},
	{"m0.test", 0, 300, {"192.0.2.8"}, NULL, "m"},
	{"fail.test", 2, 60, {NULL}, NULL},
};

/* Appends the answer to one query; false: it is not answered at all. */
static bool serve(struct str packet, bool by_tcp, struct buf *out)
{
	const struct zone *z = NULL;
	struct dns_query q;
	bool cut;
	size_t answers_at = buf_len(out) + 6;
	unsigned n = 0;

	must(dns_query_parse(packet, &q) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(zones); i++)
		if (str_ieq(dns_query_name(&q), str_from(zones[i].name)) ||
			(zones[i].many && str_starts(dns_query_name(&q), str_from(zones[i].many))))
			z = &zones[i];
	if (!z)
		return false;
	cut = !by_tcp && str_eq(str_from(z->name), STR("tcp.test"));
	put(out, q.id, 2);
	put(out, 0x8180 | z->rcode | (cut ? 0x200 : 0), 2);
	put(out, 1, 2);
	put(out, 0, 4);
	put(out, 0, 2);
	must(buf_add(out, q.wire, q.wire_len) == 0);
	if (cut)
		return true;
	for (int i = 0; i < 2 && q.type == 1 && z->v4[i]; i++, n++)
		put_record(out, 1, z->ttl, z->v4[i]);
	if (q.type == 28 && z->v6) {
		put_record(out, 28, z->ttl, z->v6);
		n++;
	}
	buf_data(out)[answers_at + 1] = (char)n;
	return true;
}

static void serve_udp(void)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(2000);
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	char packet[2000];
	ssize_t n =
		recvfrom(udp, packet, sizeof(packet), MSG_DONTWAIT, (struct sockaddr *)&from, &len);

	if (n < 0)
		return;
	udp_queries++;
	if (serve(str_make(packet, (size_t)n), false, &out))
		must(sendto(udp, buf_data(&out), buf_len(&out), 0, (struct sockaddr *)&from, len) >
			0);
}

/* One query a connection; it is small enough to come at once. */
static void serve_tcp(void)
{
	_cleanup_fd_ int fd = accept4(tcp, NULL, NULL, SOCK_CLOEXEC);
	_cleanup_(buf_donep) struct buf out = BUF_INIT(2000), framed = BUF_INIT(2002);
	char packet[2000];
	struct str in, message;
	ssize_t n;

	must(fd >= 0);
	do {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		/* The client side is driven here as well: its data may not be out yet. */
		for (unsigned i = 0; i < watched_n; i++)
			if (watched[i].events & POLLOUT)
				dns_resolver_ready(resolver, watched[i].fd, false, true);
		poll(&p, 1, 10);
		n = recv(fd, packet, sizeof(packet), MSG_PEEK | MSG_DONTWAIT);
		in = str_make(packet, n > 0 ? (size_t)n : 0);
	} while (n != 0 && dns_tcp_next(&in, &message) == 0);
	must(n > 0);
	tcp_queries++;
	must(serve(message, true, &out));
	put(&framed, (unsigned)buf_len(&out), 2);
	must(buf_add_str(&framed, buf_str(&out)) == 0);
	must(fd_write_all(fd, buf_data(&framed), buf_len(&framed)) == 0);
}

struct waiter {
	int calls, r;
	struct dns_result result;
	char message[200];
	struct dns_lookup *cancel; /* from within the handler */
};

static void done(void *arg, int r, const struct dns_result *result, const struct cloche_err *err)
{
	struct waiter *w = arg;

	w->calls++;
	w->r = r;
	check((r == 0) == (result != NULL) && (r < 0) == (err != NULL));
	if (result)
		w->result = *result;
	if (err)
		snprintf(w->message, sizeof(w->message), "%.190s", err->message);
	if (w->cancel)
		dns_lookup_cancel(TAKE_PTR(w->cancel));
}

/* Runs both sides until each of n waiters has been called (gives up after 20 s), or, if
 * nobody waits, for a second. */
static void run(struct waiter *w, unsigned n)
{
	uint64_t end = __real_clock_mono_usec() + (n ? 20 : 1) * USEC_PER_SEC;

	for (;;) {
		struct pollfd p[WATCHED_MAX + 2];
		uint64_t now = clock_mono_usec(), next = dns_resolver_next_usec(resolver);
		unsigned polled = watched_n, called = 0;

		for (unsigned i = 0; i < n; i++)
			called += w[i].calls > 0;
		if ((n && called == n) || __real_clock_mono_usec() > end)
			return;
		p[0] = (struct pollfd){.fd = udp, .events = POLLIN};
		p[1] = (struct pollfd){.fd = tcp, .events = POLLIN};
		for (unsigned i = 0; i < polled; i++)
			p[2 + i] =
				(struct pollfd){.fd = watched[i].fd, .events = watched[i].events};
		next = MIN(next, now + USEC_PER_SEC);
		poll(p, polled + 2, next > now ? (int)((next - now) / USEC_PER_MSEC) + 1 : 0);
		if (p[0].revents)
			serve_udp();
		if (p[1].revents)
			serve_tcp();
		for (unsigned i = 0; i < polled; i++)
			if (p[2 + i].revents)
				dns_resolver_ready(resolver, p[2 + i].fd,
					p[2 + i].revents & (POLLIN | POLLERR | POLLHUP),
					p[2 + i].revents & POLLOUT);
		if (clock_mono_usec() >= dns_resolver_next_usec(resolver))
			dns_resolver_tick(resolver);
	}
}

static int lookup(const char *name, struct waiter *w, struct dns_lookup **ret)
{
	struct dns_lookup *l = NULL;
	int r;

	memset(w, 0, sizeof(*w));
	r = dns_resolver_lookup(resolver, str_from(name),
		(struct dns_lookup_handler){.done = done, .arg = w}, &w->result, &l, NULL);
	check_int(w->calls, 0);
	check((r == 0) == (l != NULL));
	if (ret)
		*ret = l;
	return r;
}

static void resolve(const char *name, struct waiter *w)
{
	check_int(lookup(name, w, NULL), 0);
	run(w, 1);
	check_int(w->calls, 1);
}

static bool has(const struct dns_result *r, const char *text)
{
	char one[INET6_ADDRSTRLEN];

	for (unsigned i = 0; i < r->n; i++) {
		const union dns_addr *a = &r->addrs[i];

		inet_ntop(a->sa.sa_family,
			a->sa.sa_family == AF_INET ? (const void *)&a->v4.sin_addr
						   : (const void *)&a->v6.sin6_addr,
			one, sizeof(one));
		if (strcmp(one, text) == 0)
			return true;
	}
	return false;
}

static uint64_t ttl(const struct dns_result *r)
{
	return (r->expires_usec - clock_mono_usec() + USEC_PER_SEC / 2) / USEC_PER_SEC;
}

static void names_are_resolved(void)
{
	struct waiter w;

	resolve("both.test", &w);
	check_int(w.r, 0);
	check_int(w.result.n, 3);
	check(has(&w.result, "192.0.2.1") && has(&w.result, "192.0.2.2"));
	check(has(&w.result, "2001:db8::1"));
	check_int(ttl(&w.result), 60);
	resolve("four.test", &w);
	check(w.result.n == 1 && has(&w.result, "192.0.2.4"));
	resolve("SIX.test.", &w);
	check(w.result.n == 1 && has(&w.result, "2001:db8::6"));
}

static void a_cut_answer_is_asked_for_by_tcp(void)
{
	struct waiter w;

	resolve("tcp.test", &w);
	check_int(w.r, 0);
	check(has(&w.result, "192.0.2.5"));
	check(tcp_queries > 0);
}

static void answers_are_kept(void)
{
	struct waiter w;
	unsigned before = udp_queries;

	check_int(lookup("BOTH.test", &w, NULL), 1);
	check_int(w.result.n, 3);
	check_int(lookup("both.test.", &w, NULL), 1);
	check_int(udp_queries, before);
	resolve("long.test", &w);
	check_int(ttl(&w.result), 300);
	resolve("brief.test", &w);
	check_int(ttl(&w.result), 1);
	before = udp_queries;
	check_int(lookup("brief.test", &w, NULL), 1);
	check_int(udp_queries, before);
	clock_pass(0, USEC_PER_SEC);
	resolve("brief.test", &w);
	check(udp_queries > before);
	clock_pass(0, 298 * USEC_PER_SEC);
	check_int(lookup("long.test", &w, NULL), 1);
	clock_pass(0, USEC_PER_SEC);
	before = udp_queries;
	resolve("long.test", &w);
	check(udp_queries > before);
}

static void what_is_not_there(void)
{
	struct waiter w;

	resolve("nx.test", &w);
	check_int(w.r, -E_NOT_FOUND);
	check_z(w.message, "resolve nx.test: no such host");
	resolve("empty.test", &w);
	check_int(w.r, -E_NOT_FOUND);
	resolve("fail.test", &w);
	check_int(w.r, -E_NETWORK);
	check_int(lookup("bad name", &w, NULL), -E_NOT_FOUND);
	check_int(lookup("", &w, NULL), -E_NOT_FOUND);
	check_int(lookup("a..b", &w, NULL), -E_NOT_FOUND);
}

/* That there is nothing is known for a while; that nobody answered is not. */
static void absence_is_kept(void)
{
	struct waiter w;
	unsigned before;

	clock_pass(0, 5 * USEC_PER_SEC); /* what the last test asked for */
	resolve("nx.test", &w);
	before = udp_queries;
	check_int(lookup("NX.test", &w, NULL), -E_NOT_FOUND);
	resolve("empty.test", &w);
	check_int(lookup("empty.test.", &w, NULL), -E_NOT_FOUND);
	check(udp_queries <= before + 2);
	before = udp_queries;
	resolve("fail.test", &w);
	check(udp_queries > before);
	clock_pass(0, 5 * USEC_PER_SEC - USEC_PER_MSEC);
	check_int(lookup("nx.test", &w, NULL), -E_NOT_FOUND);
	clock_pass(0, USEC_PER_MSEC);
	before = udp_queries;
	resolve("nx.test", &w);
	check_int(w.r, -E_NOT_FOUND);
	check(udp_queries > before);
}

/* Asks for so many names that begin so. */
static void resolve_many(const char *begin, unsigned n, int want)
{
	struct waiter w;
	char name[32];

	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%s%u.test", begin, i);
		resolve(name, &w);
		check_int(w.r, want);
	}
}

static bool is_known(const char *name)
{
	struct dns_lookup *l;
	struct waiter w;
	int r = lookup(name, &w, &l);

	dns_lookup_cancel(l);
	return r != 0;
}

/* 1,024 of either kind; the one that was used longest ago goes first. Names that somebody makes up
 * push out nothing but each other. */
static void room_is_bounded(void)
{
	resolve_many("m", 1024, 0);
	check(is_known("m0.test"));
	resolve_many("nx", 1024, -E_NOT_FOUND);
	check(is_known("nx0.test") && is_known("m0.test"));
	resolve_many("nxx", 1, -E_NOT_FOUND);
	check(!is_known("nx1.test") && is_known("nx2.test"));
	check(is_known("m1.test"));
	resolve_many("mm", 1, 0);
	check(!is_known("m2.test") && is_known("m3.test"));
}

static void addresses_are_their_own_answer(void)
{
	struct waiter w;

	check_int(lookup("192.0.2.77", &w, NULL), 1);
	check(w.result.n == 1 && has(&w.result, "192.0.2.77"));
	check_int(lookup("2001:db8::9", &w, NULL), 1);
	check(w.result.n == 1 && has(&w.result, "2001:db8::9"));
}

static void the_hosts_file_comes_first(void)
{
	struct waiter w;
	unsigned before = udp_queries;

	check_int(lookup("From.Hosts", &w, NULL), 1);
	check(w.result.n == 2 && has(&w.result, "192.0.2.99") && has(&w.result, "2001:db8::99"));
	check_int(udp_queries, before);
}

static void what_is_known_is_not_asked_for(void)
{
	struct dns_result known = {0};
	struct waiter w;
	unsigned before;

	resolve("both.test", &w);
	before = udp_queries;
	check(dns_resolver_known(resolver, STR("Both.test."), &known) && known.n == 3);
	check(dns_resolver_known(resolver, STR("from.hosts"), &known) && known.n == 2);
	check(dns_resolver_known(resolver, STR("192.0.2.7"), &known) && known.n == 1);
	check(has(&known, "192.0.2.7"));
	check(!dns_resolver_known(resolver, STR("never-asked.test"), &known));
	check(!dns_resolver_known(resolver, STR("a b"), &known));
	check(dns_resolver_next_usec(resolver) == USEC_INFINITY);
	check_int(udp_queries, before);
}

static void silence_ends_in_time(void)
{
	struct waiter w[2];

	check_int(lookup("silent.test", &w[0], NULL), 0);
	check_int(lookup("silent.test", &w[1], NULL), 0);
	clock_pass(0, 5 * USEC_PER_SEC - USEC_PER_MSEC);
	dns_resolver_tick(resolver);
	check_int(w[0].calls + w[1].calls, 0);
	clock_pass(0, USEC_PER_MSEC);
	check(dns_resolver_next_usec(resolver) <= clock_mono_usec());
	dns_resolver_tick(resolver);
	check_int(w[0].r, -E_NETWORK);
	check_int(w[1].r, -E_NETWORK);
	check_int(w[0].calls, 1);
	/* Asking again starts again. */
	check_int(lookup("silent.test", &w[0], NULL), 0);
	clock_pass(0, 5 * USEC_PER_SEC);
	run(w, 1);
	check_int(w[0].r, -E_NETWORK);
	run(NULL, 0); /* the server has read what was asked */
}

static void one_question_for_many(void)
{
	struct waiter w[5];
	struct dns_lookup *l[5];
	unsigned before = udp_queries;

	/* Not in the cache: it was not asked for yet under this name. */
	for (int i = 0; i < 5; i++)
		check_int(lookup("nx.test", &w[i], &l[i]), 0);
	dns_lookup_cancel(l[1]);
	w[0].cancel = l[3];
	w[1].calls = w[3].calls = 1;
	run(w, 5);
	check_int(w[0].calls, 1);
	check_int(w[2].calls, 1);
	check_int(w[4].calls, 1);
	check_int(w[1].r, 0);
	check_int(w[3].r, 0);
	check(udp_queries - before <= 2);
	dns_lookup_cancel(NULL);
}

static void all_may_be_cancelled(void)
{
	struct waiter w;
	struct dns_lookup *l;

	check_int(lookup("six.example", &w, &l), 0);
	dns_lookup_cancel(l);
	run(NULL, 0);
	check_int(w.calls, 0);
}

static void questions_are_bounded(void)
{
	static struct waiter w[512];
	struct waiter more;
	char name[32];

	for (unsigned i = 0; i < ARRAY_SIZE(w); i++) {
		snprintf(name, sizeof(name), "n%u.silent.test", i);
		must(lookup(name, &w[i], NULL) == 0);
	}
	check_int(lookup("one.silent.test", &more, NULL), -E_LIMIT);
	check_int(lookup("n0.silent.test", &more, NULL), 0); /* is asked for already */
}

/* The files have changed: what was known is forgotten, and others are asked. */
static void files_may_change(void)
{
	struct waiter w;

	check_int(dns_resolver_renew(
			  resolver, STR("nameserver 127.0.0.9\n"), STR("192.0.2.77 moved.test\n")),
		0);
	check_int(lookup("moved.test", &w, NULL), 1);
	check(has(&w.result, "192.0.2.77"));
	resolve("both.test", &w);
	check_int(w.r, -E_NETWORK);
	/* While a query is under way, too. */
	check_int(lookup("four.test", &w, NULL), 0);
	check_int(dns_resolver_renew(resolver, STR(""), STR("192.0.2.78 moved.test\n")), 0);
	run(&w, 1);
	check_int(w.calls, 1);
	check_int(lookup("moved.test", &w, NULL), 1);
	check(has(&w.result, "192.0.2.78"));
}

/* Servers that somebody named stay, whatever the files say. */
static void named_servers_stay(void)
{
	struct waiter w;

	check_int(dns_resolver_set_servers(resolver, "no address", NULL), -E_CONFIG);
	check_int(dns_resolver_set_servers(resolver, servers, NULL), 0);
	check_int(dns_resolver_renew(resolver, STR("nameserver 127.0.0.9\n"), STR("")), 0);
	resolve("both.test", &w);
	check_int(w.r, 0);
}

static void start_server(char hosts[TAP_DIR_BYTES])
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(sa);
	const char lines[] = "192.0.2.99 from.hosts\n2001:db8::99 from.hosts\n";
	int fd;

	tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	must(tcp >= 0 && udp >= 0);
	must(bind(tcp, (struct sockaddr *)&sa, sizeof(sa)) == 0 && listen(tcp, 10) == 0);
	must(getsockname(tcp, (struct sockaddr *)&sa, &len) == 0);
	must(bind(udp, (struct sockaddr *)&sa, sizeof(sa)) == 0);
	snprintf(servers, sizeof(servers), "127.0.0.1:%u", ntohs(sa.sin_port));
	fd = tap_file(hosts);
	must(fd_write_all(fd, lines, sizeof(lines) - 1) == 0);
	close(fd);
}

int main(void)
{
	char hosts[TAP_DIR_BYTES];
	struct dns_resolver_config config = {
		.servers = servers, .hosts_path = hosts, .watch = watch, .arg = &watched_n};
	struct cloche_err err = CLOCHE_ERR_INIT;

	clock_hold_here();
	start_server(hosts);
	must(dns_resolver_new(&config, &resolver, &err) == 0);
	must(dns_resolver_next_usec(resolver) == USEC_INFINITY);
	run_test(names_are_resolved);
	run_test(a_cut_answer_is_asked_for_by_tcp);
	run_test(answers_are_kept);
	run_test(what_is_not_there);
	run_test(absence_is_kept);
	run_test(room_is_bounded);
	run_test(addresses_are_their_own_answer);
	run_test(the_hosts_file_comes_first);
	run_test(what_is_known_is_not_asked_for);
	run_test(silence_ends_in_time);
	run_test(one_question_for_many);
	run_test(all_may_be_cancelled);
	dns_resolver_free(resolver);
	must(watched_n == 0);
	must(dns_resolver_new(&config, &resolver, &err) == 0);
	run_test(questions_are_bounded);
	/* With all of those still under way. */
	dns_resolver_free(resolver);
	must(watched_n == 0);
	must(dns_resolver_new(&config, &resolver, &err) == 0);
	run_test(files_may_change);
	dns_resolver_free(resolver);
	must(dns_resolver_new(&config, &resolver, &err) == 0);
	run_test(named_servers_stay);
	dns_resolver_free(resolver);
	must(watched_n == 0);
	unlink(hosts);
	config.servers = "not a server";
	config.hosts_path = "/nonexistent";
	must(dns_resolver_new(&config, &resolver, &err) < 0);
	close(udp);
	close(tcp);
	return tap_done();
}
