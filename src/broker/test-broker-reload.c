/* SPDX-License-Identifier: Apache-2.0 */
/* Tries to break INV-WHOLE-POLICY: a new policy for a broker that serves, as a whole or not at all,
 * and what becomes of the requests that are under way. */
#include "broker/test-reload.h"
#include "clockwork.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>

static void test_replaced(void)
{
	struct netconf_replaced m = {0};
	struct world w;
	struct chan c;

	world_serve(&w);
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

	world_serve(&w);
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

	world_serve(&w);
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
	world_serve(&w);
	for (int i = 0; i < MANY; i++)
		id = rig_open(&w.g, &(struct ask){.host = "b.site.test", .target = target});
	rig_collect(&w.g, id, &r, 300);
	check_int(r.status, 0);
	got_done(&r);
	check_int(set_policy(&w, ONLY_A, &m, NULL), 0);
	check_int(m.closed, MANY);
	while (refused + reset < MANY) {
		struct chan_frame f;
		struct net_end_of_stream end;

		must(chan_recv_wait(&w.g.net, &f, PATIENCE_MS) == 1);
		refused += f.type == NET_END;
		reset += f.type == NET_RESET;
		if (f.type == NET_RESET)
			check(net_get_end_of_stream(f.payload, &end) && end.why == NET_RESET_LIMIT);
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

	world_serve(&w);
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
	int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), at_silent;
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
	at_silent = accept4(silent, NULL, NULL, SOCK_CLOEXEC);
	must(at_silent >= 0);
	check_int(set_policy(&w, ONLY_A, &m, NULL), 0);
	must(chan_recv_wait(&w.g.net, &f, PATIENCE_MS) == 1);
	check(f.type == NET_CERT && net_get_cert(f.payload, &cert) && cert.request == 7);
	check(cert.ok && cert.mode == NET_MODE_HTTP1);
	chan_frame_done(&f);
	must(chan_recv_wait(&w.g.net, &f, PATIENCE_MS) == 1);
	check(f.type == NET_FORGET);
	/* What was found out for nobody any more is not gone on with. Its own bound, which would
	 * end it as well, stands still. */
	must(poll(&(struct pollfd){.fd = at_silent, .events = POLLRDHUP}, 1, PATIENCE_MS) == 1);
	close(at_silent);
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

	world_serve(&w);
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

	world_serve(&w);
	policy_begin(&w, &c);
	must(netconf_send_allowlist(&c, &(struct netconf_allowlist){STR("x"), STR(ONLY_A)}) == 0);
	must(chan_send(&c, NETCONF_DONE, STR_NULL, NULL, 0) == 0);
	must(buf_add_str(&frames, buf_str(&c.out)) == 0);
	chan_done(&c);
	for (size_t n = 0; n < buf_len(&frames); n += 3) {
		policy_begin(&w, &c);
		must(send(c.fd, buf_data(&frames), n, MSG_NOSIGNAL) == (ssize_t)n);
		chan_done(&c);
	}
	/* Also if it has said all, and gave up waiting for a broker that did not listen. */
	tap_stop(w.g.pid);
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

	world_serve(&w);
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

int main(void)
{
	run_test(test_replaced);
	run_test(test_under_way);
	run_test(test_many_under_way);
	run_test(test_upload);
	run_test(test_forget);
	run_test(test_bad);
	run_test(test_gone);
	run_test(test_many_at_once);
	run_test(test_early);
	run_test(test_unrecorded);
	clock_hold();
	run_test(test_forget_waiting);
	return tap_done();
}
