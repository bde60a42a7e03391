/* SPDX-License-Identifier: Apache-2.0 */
/* Tries to break INV-WHOLE-POLICY: a new policy for a broker that serves, as a whole or not at all,
 * and what becomes of the requests that are under way. */
#include "base/fd.h"
#include "broker/test-world.h"
#include "ipc/helper.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <tap.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000 };

#define ONLY_A "domains: [a.site.test]\n"
#define ONLY_B "domains: [b.site.test]\n"

/* A client's socket, whose other end the broker has. */
static void policy_begin(struct world *w, struct chan *ret)
{
	int pair[2];

	must(fd_socketpair(SOCK_STREAM, pair) == 0);
	must(helper_send_policy(&w->g.supervisor, pair[1]) == 0);
	must(chan_flush_wait(&w->g.supervisor, PATIENCE_MS) == 0);
	close(pair[1]);
	must(chan_init(ret, pair[0], NETCONF_MAX_PAYLOAD, 8 << 20) == 0);
}

static void policy_add(struct chan *c, const char *yaml)
{
	must(netconf_send_two(c, NETCONF_ALLOWLIST, STR("new.yaml"), str_from(yaml)) == 0);
	must(chan_flush_wait(c, PATIENCE_MS) == 0);
}

/* Says DONE and takes the answer: 0 with *ret filled, or its refusal. */
static int policy_done(struct chan *c, struct netconf_replaced *ret, struct cloche_err *err)
{
	struct chan_frame f;
	int r;

	must(chan_send(c, NETCONF_DONE, STR_NULL, NULL, 0) == 0);
	must(chan_recv_wait(c, &f, PATIENCE_MS) == 1);
	if (f.type == NETCONF_REFUSED) {
		r = netconf_get_refused(f.payload, err);
	} else {
		must(f.type == NETCONF_REPLACED && netconf_get_replaced(f.payload, ret));
		r = 0;
	}
	check_int(chan_recv_wait(c, &f, PATIENCE_MS), -EPIPE);
	chan_done(c);
	return r;
}

static int set_policy(
	struct world *w, const char *yaml, struct netconf_replaced *ret, struct cloche_err *err)
{
	struct chan c;

	policy_begin(w, &c);
	policy_add(&c, yaml);
	return policy_done(&c, ret, err);
}

static unsigned status_of(struct world *w, const char *host)
{
	struct got r;
	unsigned status;

	rig_ask(&w->g, &(struct ask){.scheme = NET_HTTPS, .host = host, .target = "/hello"}, &r);
	status = r.status;
	got_done(&r);
	return status;
}

static void test_replaced(void)
{
	struct netconf_replaced m = {0};
	struct world w;
	struct chan c;

	world_start(&w, NULL);
	rig_serve(&w.g);
	check_int(status_of(&w, "a.site.test"), 200);
	check_int(status_of(&w, "b.site.test"), 200);
	policy_begin(&w, &c);
	policy_add(&c, ONLY_A);
	must(chan_send(&c, NETCONF_ALLOW, STR("x.test:8443"), NULL, 0) == 0);
	check_int(policy_done(&c, &m, NULL), 0);
	check(m.rules == 2 && m.closed == 0);
	check_int(status_of(&w, "a.site.test"), 200);
	check_int(status_of(&w, "b.site.test"), 403);
	check(world_log_has(&w, false, "\nPOLICY 2 rules (new.yaml, --allow)\n"));
	check(world_log_has(
		&w, true, "\"event\":\"policy\",\"note\":\"new.yaml, --allow\",\"count\":2}"));
	/* The secret has stayed. */
	check(world_gets(&w,
		&(struct ask){.scheme = NET_HTTPS,
			.host = "a.site.test",
			.target = "/hello",
			.fields = {"Authorization", "Bearer " FAKE}},
		"hello"));
	check(world_seen(&w.tls_seen, "Authorization: Bearer " REAL));
	/* One without any rule blocks everything. */
	policy_begin(&w, &c);
	check_int(policy_done(&c, &m, NULL), 0);
	check(m.rules == 0);
	check_int(status_of(&w, "a.site.test"), 403);
	world_stop(&w);
}

/* One download goes on, one is broken off, one that has no answer yet is refused. */
static void test_under_way(void)
{
	struct netconf_replaced m = {0};
	struct got on = {0}, off = {0}, waits = {0};
	struct world w;
	uint32_t a, b, never;

	world_start(&w, NULL);
	rig_serve(&w.g);
	w.g.stalled = true;
	a = rig_open(&w.g, &(struct ask){.host = "a.site.test", .target = "/big/3000000"});
	rig_collect(&w.g, a, &on, 300);
	b = rig_open(&w.g, &(struct ask){.host = "b.site.test", .target = "/big/3000000"});
	rig_collect(&w.g, b, &off, 300);
	never = rig_open(&w.g, &(struct ask){.host = "b.site.test", .target = "/never"});
	rig_collect(&w.g, never, &waits, 300);
	check(on.status == 200 && off.status == 200 && waits.status == 0);
	check_int(set_policy(&w, ONLY_A, &m, NULL), 0);
	check_int(m.closed, 2);
	rig_collect(&w.g, b, &off, PATIENCE_MS);
	check(off.reset && !off.ended);
	rig_collect(&w.g, never, &waits, PATIENCE_MS);
	check(waits.status == 403 && waits.ended);
	check(got_has(&waits, "b.site.test is not in the network allowlist"));
	w.g.stalled = false;
	must(net_send_credit(&w.g.net, a, (uint32_t)on.bytes) == 0);
	rig_flush(&w.g);
	rig_collect(&w.g, a, &on, PATIENCE_MS);
	check(on.ended && on.bytes == 3000000);
	check(world_log_has(&w, false,
		"ALLOWED GET http://b.site.test/big/3000000 -> 200 "
		"(broken off: the policy was replaced)"));
	check(world_log_has(&w, false,
		"BLOCKED GET http://b.site.test/never -> 403 (broken off: the policy was "
		"replaced)"));
	/* What goes on is logged with the rule that let it through. */
	check(world_log_has(&w, true, "\"rule\":\"domains[0] *.test (allow.yaml:2)\""));
	got_done(&on);
	got_done(&off);
	got_done(&waits);
	world_stop(&w);
}

/* An upload whose request is refused: the rest of its body is nobody's. */
static void test_upload(void)
{
	static const char piece[NET_MAX_DATA];
	struct netconf_replaced m = {0};
	struct got r = {0};
	struct world w;
	uint32_t id;

	world_start(&w, NULL);
	rig_serve(&w.g);
	id = rig_open(&w.g, &(struct ask){.host = "b.site.test",
				    .method = "POST",
				    .target = "/sink",
				    .body = NET_BODY_STREAM});
	rig_data(&w.g, id, piece, sizeof(piece));
	check_int(set_policy(&w, ONLY_A, &m, NULL), 0);
	check_int(m.closed, 1);
	rig_data(&w.g, id, piece, sizeof(piece));
	rig_end(&w.g, id);
	rig_collect(&w.g, id, &r, PATIENCE_MS);
	check(r.status == 403 && r.ended);
	got_done(&r);
	check_int(status_of(&w, "a.site.test"), 200);
	world_stop(&w);
}

/* More refusals at once than the channel takes: the gateway answers the rest by itself. */
static void test_many_under_way(void)
{
	enum { MANY = 400, LONG = 16000 };
	char target[LONG + 1] = "/never?";
	struct netconf_replaced m = {0};
	unsigned refused = 0, reset = 0;
	struct got r = {0};
	uint32_t id = 0;
	struct world w;

	memset(target + strlen(target), '"', LONG - strlen(target));
	world_start(&w, NULL);
	rig_serve(&w.g);
	for (int i = 0; i < MANY; i++)
		id = rig_open(&w.g, &(struct ask){.host = "b.site.test", .target = target});
	rig_collect(&w.g, id, &r, 300);
	check_int(r.status, 0);
	got_done(&r);
	check_int(set_policy(&w, ONLY_A, &m, NULL), 0);
	check_int(m.closed, MANY);
	while (refused + reset < MANY) {
		struct chan_frame f;
		enum net_reset why;

		must(chan_recv_wait(&w.g.net, &f, PATIENCE_MS) == 1);
		refused += f.type == NET_END;
		reset += f.type == NET_RESET;
		if (f.type == NET_RESET)
			check(net_get_reset(f.payload, &id, &why) && why == NET_RESET_LIMIT);
		chan_frame_done(&f);
	}
	check(refused > 0 && reset > 0);
	check_int(status_of(&w, "a.site.test"), 200);
	world_stop(&w);
}

/* The gateway asks again how connections go on. */
static void test_forget(void)
{
	struct netconf_replaced m = {0};
	struct world w;
	struct chan_frame f;

	world_start(&w, NULL);
	rig_serve(&w.g);
	check_int(set_policy(&w, ONLY_A, &m, NULL), 0);
	must(chan_recv_wait(&w.g.net, &f, PATIENCE_MS) == 1);
	check(f.type == NET_FORGET && f.payload.n == 0);
	world_stop(&w);
}

/* What is still being found out for it under the old policy comes before, or it would be kept. */
static void test_forget_waiting(void)
{
	const struct net_mint mint = {
		.request = 7, .host = STR("s.site.test"), .port = 443, .h2 = true, .http1 = true};
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct netconf_replaced m = {0};
	socklen_t n = sizeof(a);
	struct net_cert cert;
	struct chan_frame f;
	struct world w;

	must(silent >= 0 && bind(silent, (struct sockaddr *)&a, n) == 0 && listen(silent, 8) == 0);
	must(getsockname(silent, (struct sockaddr *)&a, &n) == 0);
	world_start(&w, NULL);
	rig_connect_to(&w.g, "s.site.test", 443, ntohs(a.sin_port));
	rig_serve(&w.g);
	must(net_send_mint(&w.g.net, &mint) == 0);
	rig_flush(&w.g);
	must(poll(&(struct pollfd){.fd = silent, .events = POLLIN}, 1, PATIENCE_MS) == 1);
	check_int(set_policy(&w, ONLY_A, &m, NULL), 0);
	must(chan_recv_wait(&w.g.net, &f, PATIENCE_MS) == 1);
	check(f.type == NET_CERT && net_get_cert(f.payload, &cert) && cert.request == 7);
	check(cert.ok && cert.mode == NET_MODE_HTTP1);
	chan_frame_done(&f);
	must(chan_recv_wait(&w.g.net, &f, PATIENCE_MS) == 1);
	check(f.type == NET_FORGET);
	world_stop(&w);
	close(silent);
}

static void test_bad(void)
{
	struct netconf_replaced m = {0};
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct world w;
	struct chan c;
	int null = STDOUT_FILENO;

	world_start(&w, NULL);
	rig_serve(&w.g);
	policy_begin(&w, &c);
	policy_add(&c, ONLY_A);
	policy_add(&c, "domains:\n  - ok.test\n  - 7: x\n");
	policy_add(&c, ONLY_A);
	check_int(policy_done(&c, &m, &err), -E_CONFIG);
	check(str_starts(str_from(err.message), STR("new.yaml:3:")));
	err = (struct cloche_err)CLOCHE_ERR_INIT;
	policy_begin(&w, &c);
	must(chan_send(&c, NETCONF_ALLOW, STR("http//x"), NULL, 0) == 0);
	check_int(policy_done(&c, &m, &err), -E_USAGE);
	/* Nothing but rules can be changed. */
	for (int type = NETCONF_SECRET; type < NETCONF_DONE; type++) {
		err = (struct cloche_err)CLOCHE_ERR_INIT;
		policy_begin(&w, &c);
		must(chan_send(&c, (uint16_t)type, STR("\1\1\1"), NULL, 0) == 0);
		check_int(policy_done(&c, &m, &err), -E_PROTOCOL);
	}
	err = (struct cloche_err)CLOCHE_ERR_INIT;
	policy_begin(&w, &c);
	must(chan_send(&c, NETCONF_ALLOW, STR("a.site.test"), &null, 1) == 0);
	check_int(policy_done(&c, &m, &err), -E_PROTOCOL);
	check_int(status_of(&w, "a.site.test"), 200);
	check_int(status_of(&w, "b.site.test"), 200);
	check(!world_log_has(&w, false, "POLICY"));
	world_stop(&w);
}

/* A client that goes away at any point before DONE has done nothing. */
static void test_gone(void)
{
	struct buf frames = BUF_INIT(1 << 16);
	struct netconf_replaced m = {0};
	struct world w;
	struct chan c;

	world_start(&w, NULL);
	rig_serve(&w.g);
	policy_begin(&w, &c);
	must(netconf_send_two(&c, NETCONF_ALLOWLIST, STR("x"), STR(ONLY_A)) == 0);
	must(chan_send(&c, NETCONF_DONE, STR_NULL, NULL, 0) == 0);
	must(buf_add_str(&frames, buf_str(&c.out)) == 0);
	chan_done(&c);
	for (size_t n = 0; n < buf_len(&frames); n += 3) {
		policy_begin(&w, &c);
		must(send(c.fd, buf_data(&frames), n, MSG_NOSIGNAL) == (ssize_t)n);
		chan_done(&c);
	}
	/* Also where it has said all, and gave up waiting for a broker that did not listen. */
	must(kill(w.g.pid, SIGSTOP) == 0);
	policy_begin(&w, &c);
	must(send(c.fd, buf_data(&frames), buf_len(&frames), MSG_NOSIGNAL) ==
		(ssize_t)buf_len(&frames));
	chan_done(&c);
	must(kill(w.g.pid, SIGCONT) == 0);
	check_int(status_of(&w, "b.site.test"), 200);
	check(!world_log_has(&w, false, "POLICY"));
	check_int(set_policy(&w, ONLY_B, &m, NULL), 0);
	check_int(status_of(&w, "a.site.test"), 403);
	buf_done(&frames);
	world_stop(&w);
}

/* The one that is complete last holds; more than there is room for are sent away. */
static void test_many_at_once(void)
{
	enum { MANY = 20 };
	struct netconf_replaced m = {0};
	struct chan c[MANY], first, second;
	struct world w;
	int away = 0;

	world_start(&w, NULL);
	rig_serve(&w.g);
	policy_begin(&w, &first);
	policy_begin(&w, &second);
	policy_add(&first, ONLY_A);
	policy_add(&second, ONLY_B);
	check_int(policy_done(&second, &m, NULL), 0);
	check_int(policy_done(&first, &m, NULL), 0);
	check_int(status_of(&w, "a.site.test"), 200);
	check_int(status_of(&w, "b.site.test"), 403);
	for (int i = 0; i < MANY; i++)
		policy_begin(&w, &c[i]);
	for (int i = 0; i < MANY; i++) {
		struct chan_frame f;

		away += chan_recv_wait(&c[i], &f, 100) == -EPIPE;
	}
	check_int(away, MANY - 16);
	for (int i = 0; i < MANY; i++)
		chan_done(&c[i]);
	check_int(set_policy(&w, ONLY_B, &m, NULL), 0);
	check_int(status_of(&w, "b.site.test"), 200);
	world_stop(&w);
}

/* It may come before the broker is configured, and waits for that. */
static void test_early(void)
{
	struct netconf_replaced m = {0};
	struct world w;
	struct chan c;

	world_start(&w, NULL);
	policy_begin(&w, &c);
	policy_add(&c, ONLY_A);
	rig_serve(&w.g);
	check_int(policy_done(&c, &m, NULL), 0);
	check_int(status_of(&w, "b.site.test"), 403);
	world_stop(&w);
}

/* What cannot be put on record does not happen. */
static void test_unrecorded(void)
{
	struct netconf_replaced m = {0};
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct world w;
	struct got r;

	world_start(&w, NULL);
	w.g.json_to = "/dev/full";
	rig_serve(&w.g);
	check_int(set_policy(&w, "domains: []\n", &m, &err), -E_SYSTEM);
	rig_ask(&w.g, &(struct ask){.host = "a.site.test", .target = "/hello"}, &r);
	check_int(r.status, 502); /* allowed by the policy that holds, and not on record either */
	got_done(&r);
	world_stop(&w);
}

/* Connections that wait are not for requests by another policy. */
static void test_pool(void)
{
	struct netconf_replaced m = {0};
	struct world w;

	world_start(&w, NULL);
	rig_serve(&w.g);
	for (int i = 0; i < 3; i++)
		check_int(status_of(&w, "a.site.test"), 200);
	check_int(test_origin_accepted(w.tls), 1);
	check_int(set_policy(&w, ONLY_A, &m, NULL), 0);
	for (int i = 0; i < 3; i++)
		check_int(status_of(&w, "a.site.test"), 200);
	check_int(test_origin_accepted(w.tls), 2);
	world_stop(&w);
}

static void private_yaml(char *ret, size_t size, uint16_t port, const char *ranges)
{
	snprintf(ret, size,
		"url_prefixes:\n  - host: localhost\n    ports: [%u]\n    allow_private: %s\n",
		port, ranges);
}

/* What one rule opens is not for requests by another, which stands at the same place of another
 * file. */
static void test_pool_of_each_rule(void)
{
	struct world w;
	struct got r;
	char yaml[256];
	uint16_t port;

	world_start(&w, NULL);
	port = test_origin_port(w.plain);
	snprintf(yaml, sizeof(yaml),
		"url_prefixes: [{host: localhost, ports: [%u], path: /hello, allow_private: "
		"[127.0.0.0/8, '::1']}]\n",
		port);
	rig_allow(&w.g, yaml);
	snprintf(yaml, sizeof(yaml),
		"url_prefixes: [{host: localhost, ports: [%u], path: /echo, allow_private: "
		"[10.0.0.0/8]}]\n",
		port);
	rig_allow(&w.g, yaml);
	rig_serve(&w.g);
	rig_ask(&w.g, &(struct ask){.host = "localhost", .port = port, .target = "/hello"}, &r);
	check_int(r.status, 200);
	got_done(&r);
	rig_ask(&w.g, &(struct ask){.host = "localhost", .port = port, .target = "/echo"}, &r);
	check(r.status == 502 && got_has(&r, "address_refused"));
	got_done(&r);
	rig_ask(&w.g, &(struct ask){.host = "localhost", .port = port, .target = "/hello"}, &r);
	check_int(r.status, 200);
	got_done(&r);
	check_int(test_origin_accepted(w.plain), 1);
	world_stop(&w);
}

/* A listener with a full queue: whoever connects waits. */
static uint16_t make_busy(int *ret_fd, int fillers[4])
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t n = sizeof(a);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*ret_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(*ret_fd >= 0 && bind(*ret_fd, (struct sockaddr *)&a, n) == 0);
	must(listen(*ret_fd, 0) == 0 && getsockname(*ret_fd, (struct sockaddr *)&a, &n) == 0);
	for (int i = 0; i < 4; i++) {
		fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		(void)!connect(fillers[i], (struct sockaddr *)&a, n);
	}
	return ntohs(a.sin_port);
}

/* An address that was allowed when a connection was begun is judged again before it is there. */
static void test_dialling(void)
{
	struct netconf_replaced m = {0};
	struct world w;
	struct got r = {0};
	char yaml[160];
	int fd, fillers[4];
	uint32_t id;
	uint16_t port = make_busy(&fd, fillers);

	world_start(&w, NULL);
	private_yaml(yaml, sizeof(yaml), port, "true");
	rig_allow(&w.g, yaml);
	rig_serve(&w.g);
	id = rig_open(&w.g, &(struct ask){.host = "localhost", .port = port, .target = "/"});
	rig_collect(&w.g, id, &r, 200);
	check_int(r.status, 0);
	private_yaml(yaml, sizeof(yaml), port, "[10.0.0.0/8]");
	check_int(set_policy(&w, yaml, &m, NULL), 0);
	check_int(m.closed, 0);
	rig_collect(&w.g, id, &r, PATIENCE_MS);
	check(r.status == 502 && got_has(&r, "address_refused"));
	got_done(&r);
	world_stop(&w);
	close(fd);
	for (int i = 0; i < 4; i++)
		close(fillers[i]);
}

#define GRAPHQL(fields)                                                                            \
	"url_prefixes: [{host: a.site.test, path: /sink, graphql: {queries: [" fields "]}}]\n"

/* An entry with graphql that comes to stand before what let a request through holds for it, too. */
static void test_guarded_path(void)
{
	struct netconf_replaced m = {0};
	struct world w;
	struct got r = {0};
	uint32_t id;

	world_start(&w, NULL);
	rig_serve(&w.g);
	id = rig_open(&w.g, &(struct ask){.host = "a.site.test",
				    .method = "POST",
				    .target = "/Sink/",
				    .body = NET_BODY_STREAM});
	check_int(set_policy(&w,
			  "url_prefixes:\n"
			  "- {host: a.site.test, path: /sink, graphql: {queries: [me]}}\n"
			  "- {host: a.site.test}\n",
			  &m, NULL),
		0);
	check_int(m.closed, 1);
	rig_collect(&w.g, id, &r, PATIENCE_MS);
	check(r.status == 403 && got_has(&r, "\"reason\": \"graphql\""));
	got_done(&r);
	world_stop(&w);
}

/* A body that is still awaited is judged by the policy that holds when it has come. */
static void test_body(void)
{
	static const struct {
		const char *policy;
		unsigned closed, status;
	} cases[] = {
		{GRAPHQL("me"), 0, 200},
		{GRAPHQL("me, you"), 1, 503},
		{"url_prefixes: [{host: a.site.test, path: /sink}]\n", 1, 503},
		{GRAPHQL("me"), 0, 200},
	};
	static const char body[] = "{\"query\":\"{me}\"}";
	struct netconf_replaced m = {0};
	struct world w;

	world_start(&w, NULL);
	rig_serve(&w.g);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct got r = {0};
		uint32_t id;

		check_int(set_policy(&w, GRAPHQL("me"), &m, NULL), 0);
		id = rig_open(&w.g, &(struct ask){.host = "a.site.test",
					    .method = "POST",
					    .target = "/sink",
					    .fields = {"Content-Type", "application/json"},
					    .body = NET_BODY_LENGTH,
					    .length = sizeof(body) - 1});
		rig_data(&w.g, id, body, 3);
		check_int(set_policy(&w, cases[i].policy, &m, NULL), 0);
		check_int(m.closed, cases[i].closed);
		rig_data(&w.g, id, body + 3, sizeof(body) - 1 - 3);
		rig_end(&w.g, id);
		rig_collect(&w.g, id, &r, PATIENCE_MS);
		check_int(r.status, cases[i].status);
		got_done(&r);
	}
	world_stop(&w);
}

/* What was let through unscrubbed does not go on under a policy that wants it scrubbed. */
static void test_scrub(void)
{
	struct netconf_replaced m = {0};
	struct world w;
	struct got r = {0};
	uint32_t id;

	world_start(&w, NULL);
	rig_serve(&w.g);
	check_int(
		set_policy(&w, "url_prefixes: [{host: a.site.test, scrub: false}]\n", &m, NULL), 0);
	w.g.stalled = true;
	id = rig_open(&w.g, &(struct ask){.host = "a.site.test", .target = "/big/3000000"});
	rig_collect(&w.g, id, &r, 300);
	check_int(r.status, 200);
	check_int(set_policy(&w, ONLY_A, &m, NULL), 0);
	check_int(m.closed, 1);
	rig_collect(&w.g, id, &r, PATIENCE_MS);
	check(r.reset);
	got_done(&r);
	id = rig_open(&w.g, &(struct ask){.host = "a.site.test", .target = "/never"});
	r = (struct got){0};
	rig_collect(&w.g, id, &r, 100);
	check_int(
		set_policy(&w, "url_prefixes: [{host: a.site.test, scrub: false}]\n", &m, NULL), 0);
	check_int(m.closed, 0);
	check_int(set_policy(&w, "domains: []\n", &m, NULL), 0);
	check_int(m.closed, 1);
	rig_collect(&w.g, id, &r, PATIENCE_MS);
	check_int(r.status, 403);
	got_done(&r);
	world_stop(&w);
}

/* What a rule opened up is closed with it: also for a connection that is there. */
static void test_addresses(void)
{
	struct netconf_replaced m = {0};
	struct world w;
	struct got r = {0};
	char yaml[160];
	uint32_t id;

	world_start(&w, NULL);
	private_yaml(yaml, sizeof(yaml), test_origin_port(w.plain), "true");
	rig_allow(&w.g, yaml);
	rig_serve(&w.g);
	w.g.stalled = true;
	id = rig_open(&w.g, &(struct ask){.host = "localhost",
				    .port = test_origin_port(w.plain),
				    .target = "/big/3000000"});
	rig_collect(&w.g, id, &r, 300);
	check_int(r.status, 200);
	private_yaml(yaml, sizeof(yaml), test_origin_port(w.plain), "[127.0.0.0/8]");
	check_int(set_policy(&w, yaml, &m, NULL), 0);
	check_int(m.closed, 0);
	private_yaml(yaml, sizeof(yaml), test_origin_port(w.plain), "[10.0.0.0/8]");
	check_int(set_policy(&w, yaml, &m, NULL), 0);
	check_int(m.closed, 1);
	rig_collect(&w.g, id, &r, PATIENCE_MS);
	check(r.reset);
	got_done(&r);
	rig_ask(&w.g,
		&(struct ask){
			.host = "localhost", .port = test_origin_port(w.plain), .target = "/hello"},
		&r);
	check(r.status == 502 && got_has(&r, "address_refused"));
	got_done(&r);
	world_stop(&w);
}

int main(void)
{
	run_test(test_replaced);
	run_test(test_under_way);
	run_test(test_many_under_way);
	run_test(test_upload);
	run_test(test_forget);
	run_test(test_forget_waiting);
	run_test(test_bad);
	run_test(test_gone);
	run_test(test_many_at_once);
	run_test(test_early);
	run_test(test_unrecorded);
	run_test(test_pool);
	run_test(test_pool_of_each_rule);
	run_test(test_addresses);
	run_test(test_dialling);
	run_test(test_guarded_path);
	run_test(test_body);
	run_test(test_scrub);
	return tap_done();
}
