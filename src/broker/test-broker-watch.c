/* SPDX-License-Identifier: Apache-2.0 */
/* A person who is asked about what the policy refuses: who is asked what, and what an answer opens.
 */
#include "base/clock.h"
#include "broker/test-reload.h"
#include "clockwork.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define SEC USEC_PER_SEC
enum { NOBODY_MS = 300, MANY = 70, HELD = 64, PIECE = 200 * 1000, UPLOADS = 340 };

static struct chan watch_begin_here(struct world *w)
{
	struct chan c;
	struct chan_frame f;

	policy_begin(w, &c);
	must(chan_send(&c, NETCONF_WATCH, STR_NULL, NULL, 0) == 0);
	must(chan_recv_wait(&c, &f, PATIENCE_MS) == 1 && f.type == NETCONF_OK);
	chan_frame_done(&f);
	return c;
}

static uint32_t take_question(struct chan *c, const char *target, bool is_host)
{
	struct netconf_question q;
	struct chan_frame f;
	uint32_t number;

	must(chan_recv_wait(c, &f, PATIENCE_MS) == 1 && f.type == NETCONF_QUESTION);
	must(netconf_get_question(f.payload, &q));
	check(str_eq(q.target, str_from(target)));
	check_int(q.is_host, is_host);
	check(q.suggestion.n > 0);
	number = q.number;
	chan_frame_done(&f);
	return number;
}

static void take_withdrawn(struct chan *c, uint32_t number)
{
	struct netconf_withdrawn m;
	struct chan_frame f;

	must(chan_recv_wait(c, &f, PATIENCE_MS) == 1 && f.type == NETCONF_WITHDRAWN);
	must(netconf_get_withdrawn(f.payload, &m));
	check_int(m.number, number);
	chan_frame_done(&f);
}

static void give_answer(struct chan *c, uint32_t number, bool allow)
{
	must(netconf_send_answer(c, &(struct netconf_answer){.number = number, .allow = allow}) ==
		0);
	must(chan_flush_wait(c, PATIENCE_MS) == 0);
	take_withdrawn(c, number);
}

static uint32_t open_b(struct world *w, const char *target)
{
	return rig_open(
		&w->g, &(struct ask){.scheme = NET_HTTPS, .host = "b.site.test", .target = target});
}

static unsigned status_at_last(struct world *w, uint32_t id)
{
	struct got r = {0};
	unsigned status;

	rig_collect(&w->g, id, &r, PATIENCE_MS);
	status = r.status;
	got_done(&r);
	return status;
}

static bool still_waits(struct world *w, uint32_t id)
{
	struct got r = {0};
	bool waits;

	rig_collect(&w->g, id, &r, NOBODY_MS);
	waits = r.status == 0 && !r.ended && !r.reset;
	got_done(&r);
	return waits;
}

static void world_of_a(struct world *w)
{
	world_serve(w);
	check_int(set_policy(w, ONLY_A, &(struct netconf_replaced){0}, NULL), 0);
}

/* What is allowed is allowed once; the origin sees nothing of what is not. */
static void test_once(void)
{
	struct world w;
	struct chan c;
	uint32_t id, number;

	world_of_a(&w);
	c = watch_begin_here(&w);
	id = open_b(&w, "/hello?first");
	number = take_question(&c, "/hello?first", true);
	check(still_waits(&w, id) && !world_seen(&w.tls_seen, "first"));
	give_answer(&c, number, true);
	check_int(status_at_last(&w, id), 200);
	check(world_seen(&w.tls_seen, "first"));
	id = open_b(&w, "/hello?second");
	give_answer(&c, take_question(&c, "/hello?second", true), false);
	check_int(status_at_last(&w, id), 403);
	check(!world_seen(&w.tls_seen, "second"));
	/* What the policy allows is not asked. */
	check_int(status_of(&w, "a.site.test"), 200);
	chan_done(&c);
	world_stop(&w);
}

/* The body comes, and ends, while nobody has answered yet. */
static void test_body(void)
{
	static const char *const words[] = {"some words, ", "and more of them"};
	struct world w;
	struct chan c;

	world_of_a(&w);
	c = watch_begin_here(&w);
	for (int late = 0; late <= 2; late++) {
		uint32_t number, id = rig_open(&w.g, &(struct ask){.scheme = NET_HTTPS,
							     .host = "b.site.test",
							     .method = "POST",
							     .target = "/sink",
							     .body = NET_BODY_STREAM});
		struct got r = {0};

		/* Of three parts, so many come after the answer. */
		if (late < 2)
			rig_data(&w.g, id, words[0], strlen(words[0]));
		if (late < 1) {
			rig_data(&w.g, id, words[1], strlen(words[1]));
			rig_end(&w.g, id);
		}
		number = take_question(&c, "/sink", true);
		check(still_waits(&w, id));
		give_answer(&c, number, true);
		if (late == 2)
			rig_data(&w.g, id, words[0], strlen(words[0]));
		if (late > 0) {
			rig_data(&w.g, id, words[1], strlen(words[1]));
			rig_end(&w.g, id);
		}
		rig_collect(&w.g, id, &r, PATIENCE_MS);
		check(r.status == 200 && r.ended && got_has(&r, "28"));
		got_done(&r);
	}
	chan_done(&c);
	world_stop(&w);
}

/* A policy that allows it answers, too, and one that denies it. */
static void test_policy(void)
{
	struct netconf_replaced m = {0};
	struct world w;
	struct chan c, other;
	uint32_t id, number;

	world_of_a(&w);
	c = watch_begin_here(&w);
	id = open_b(&w, "/hello");
	number = take_question(&c, "/hello", true);
	check_int(set_policy(&w, "domains: [a.site.test, b.site.test]\n", &m, NULL), 0);
	take_withdrawn(&c, number);
	check_int(status_at_last(&w, id), 200);
	check_int(set_policy(&w, ONLY_A, &m, NULL), 0);
	id = open_b(&w, "/hello");
	number = take_question(&c, "/hello", true);
	policy_begin(&w, &other);
	must(chan_send(&other, NETCONF_KEEP, STR_NULL, NULL, 0) == 0);
	must(chan_send(&other, NETCONF_ALLOW, STR("!b.site.test"), NULL, 0) == 0);
	check_int(policy_done(&other, &m, NULL), 0);
	take_withdrawn(&c, number);
	check_int(status_at_last(&w, id), 403);
	/* Nor is it asked again. */
	id = open_b(&w, "/hello");
	check_int(status_at_last(&w, id), 403);
	chan_done(&c);
	world_stop(&w);
}

/* What is refused in the end is refused by the policy that holds then. */
static void test_refused_by_the_new_policy(void)
{
	struct netconf_replaced m = {0};
	struct got r = {0};
	struct world w;
	struct chan c, later;
	uint32_t id, number;

	world_serve(&w);
	check_int(
		set_policy(&w, "url_prefixes: [{host: b.site.test, path: /only}]\n", &m, NULL), 0);
	c = watch_begin_here(&w);
	id = open_b(&w, "/hello");
	number = take_question(&c, "/hello", false);
	check_int(set_policy(&w, ONLY_A, &m, NULL), 0);
	later = watch_begin_here(&w);
	check_int(take_question(&later, "/hello", true), number);
	give_answer(&c, number, false);
	rig_collect(&w.g, id, &r, PATIENCE_MS);
	check_int(r.status, 403);
	check(got_has(&r, "\"reason\": \"host\"") && !got_has(&r, "/only"));
	got_done(&r);
	chan_done(&c);
	chan_done(&later);
	world_stop(&w);
}

/* What was let go on goes on, whatever is allowed besides, until it is denied. */
static void test_goes_on(void)
{
	struct netconf_replaced m = {0};
	struct got r = {0};
	struct world w;
	struct chan c, other;
	uint32_t id;

	world_of_a(&w);
	c = watch_begin_here(&w);
	w.g.stalled = true;
	id = open_b(&w, "/big/3000000");
	give_answer(&c, take_question(&c, "/big/3000000", true), true);
	wait_head(&w, id, &r);
	check_int(r.status, 200);
	check_int(set_policy(&w, "domains: [a.site.test, x.test]\n", &m, NULL), 0);
	check_int(m.closed, 0);
	policy_begin(&w, &other);
	must(chan_send(&other, NETCONF_KEEP, STR_NULL, NULL, 0) == 0);
	must(chan_send(&other, NETCONF_ALLOW, STR("!b.site.test"), NULL, 0) == 0);
	check_int(policy_done(&other, &m, NULL), 0);
	check_int(m.closed, 1);
	rig_collect(&w.g, id, &r, PATIENCE_MS);
	check(r.reset);
	got_done(&r);
	chan_done(&c);
	world_stop(&w);
}

/* Only a rule can be asked for: no address, no ambiguous path, no tunnel. */
static void test_not_asked(void)
{
	const struct ask asks[] = {
		{.host = "192.0.2.1", .target = "/"},
		{.host = "b.site.test", .target = "/a%252fb"},
		{.host = "b.site.test", .target = "/../x"},
		{.kind = NET_KIND_TUNNEL,
			.scheme = NET_HTTPS,
			.host = "b.site.test",
			.method = "",
			.target = "",
			.body = NET_BODY_STREAM},
	};
	struct chan_frame f;
	struct world w;
	struct chan c;

	world_of_a(&w);
	check_int(set_policy(&w, "url_prefixes:\n  - host: b.site.test\n    path: /only\n",
			  &(struct netconf_replaced){0}, NULL),
		0);
	c = watch_begin_here(&w);
	for (size_t i = 0; i < ARRAY_SIZE(asks); i++) {
		uint32_t id = rig_open(&w.g, &asks[i]);
		struct got r = {0};

		rig_collect(&w.g, id, &r, PATIENCE_MS);
		if (r.status != 403 && !r.reset)
			tap_fail("request %zu: status %u", i, r.status);
		got_done(&r);
	}
	check_int(chan_recv_wait(&c, &f, NOBODY_MS), -ETIMEDOUT);
	chan_done(&c);
	world_stop(&w);
}

/* Whoever goes, or does not answer, refuses. */
static void test_nobody(void)
{
	struct world w;
	struct chan c, other;
	uint32_t id;

	world_of_a(&w);
	check_int(status_at_last(&w, open_b(&w, "/hello")), 403);
	c = watch_begin_here(&w);
	id = open_b(&w, "/hello");
	(void)take_question(&c, "/hello", true);
	/* One who comes later is asked as well, and then the first goes. */
	other = watch_begin_here(&w);
	(void)take_question(&other, "/hello", true);
	chan_done(&c);
	check(still_waits(&w, id));
	chan_done(&other);
	check_int(status_at_last(&w, id), 403);
	check_int(status_at_last(&w, open_b(&w, "/hello")), 403);
	world_stop(&w);
}

static void test_late(void)
{
	struct world w;
	struct chan c;
	uint32_t id, number;

	clock_hold();
	world_of_a(&w);
	c = watch_begin_here(&w);
	id = open_b(&w, "/hello");
	number = take_question(&c, "/hello", true);
	clock_pass(w.g.pid, 60 * SEC - 1000);
	check(still_waits(&w, id));
	clock_pass(w.g.pid, 2000);
	take_withdrawn(&c, number);
	check_int(status_at_last(&w, id), 403);
	check(world_log_has(&w, false, "nobody answered"));
	chan_done(&c);
	world_stop(&w);
}

/* A room that asks for more than a person reads, and one that gives up. */
static void test_many(void)
{
	struct world w;
	struct chan c;
	uint32_t first = 0, id = 0, number = 0;

	world_of_a(&w);
	c = watch_begin_here(&w);
	for (int i = 0; i < MANY; i++) {
		char target[32];

		snprintf(target, sizeof(target), "/hello?%d", i);
		id = open_b(&w, target);
		if (i == 0)
			first = id;
		if (i < HELD)
			number = take_question(&c, target, true);
		else
			check_int(status_at_last(&w, id), 403);
	}
	check(number > 0);
	must(net_send_reset(&w.g.net, first, NET_RESET_CANCELLED) == 0);
	rig_flush(&w.g);
	take_withdrawn(&c, number - HELD + 1);
	id = open_b(&w, "/hello");
	give_answer(&c, take_question(&c, "/hello", true), true);
	check_int(status_at_last(&w, id), 200);
	chan_done(&c);
	world_stop(&w);
}

/* What is held may be refused for another reason: here, as too much waits in all. */
static void test_refused_meanwhile(void)
{
	static char piece[PIECE];
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fill[4];
	socklen_t n = sizeof(a);
	struct world w;
	struct chan c;
	struct got r = {0};
	uint32_t id, number;

	/* Connecting takes all of its time where nobody accepts. */
	must(silent >= 0 && bind(silent, (struct sockaddr *)&a, n) == 0 && listen(silent, 0) == 0);
	must(getsockname(silent, (struct sockaddr *)&a, &n) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(fill); i++) {
		fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		(void)!connect(fill[i], (struct sockaddr *)&a, n);
	}
	clock_hold();
	world_start(&w, NULL);
	rig_connect_to(&w.g, "s.site.test", 80, ntohs(a.sin_port));
	rig_serve(&w.g);
	check_int(set_policy(&w, "domains: [a.site.test, s.site.test]\n",
			  &(struct netconf_replaced){0}, NULL),
		0);
	c = watch_begin_here(&w);
	id = rig_open(&w.g, &(struct ask){.host = "b.site.test",
				    .method = "POST",
				    .target = "/sink",
				    .body = NET_BODY_STREAM});
	number = take_question(&c, "/sink", true);
	for (int i = 0; i < UPLOADS; i++)
		rig_data(&w.g,
			rig_open(&w.g, &(struct ask){.host = "s.site.test",
					       .method = "POST",
					       .target = "/",
					       .body = NET_BODY_STREAM}),
			piece, sizeof(piece));
	rig_data(&w.g, id, piece, sizeof(piece));
	rig_collect(&w.g, id, &r, PATIENCE_MS);
	check_int(r.status, 503);
	got_done(&r);
	must(netconf_send_answer(&c, &(struct netconf_answer){.number = number, .allow = true}) ==
		0);
	must(chan_flush_wait(&c, PATIENCE_MS) == 0);
	take_withdrawn(&c, number);
	chan_done(&c);
	world_stop(&w);
	close(silent);
	for (size_t i = 0; i < ARRAY_SIZE(fill); i++)
		close(fill[i]);
}

/* Who says what nobody asked is dropped. */
static void test_lies(void)
{
	struct world w;

	world_of_a(&w);
	for (int i = 0; i < 3; i++) {
		struct chan c = watch_begin_here(&w);
		struct chan_frame f;

		if (i == 0)
			must(chan_send(&c, NETCONF_WATCH, STR_NULL, NULL, 0) == 0);
		else if (i == 1)
			must(chan_send(&c, NETCONF_ANSWER, STR("x"), NULL, 0) == 0);
		else
			must(netconf_send_answer(&c, &(struct netconf_answer){.number = 99}) == 0);
		if (i == 2)
			check_int(chan_recv_wait(&c, &f, NOBODY_MS), -ETIMEDOUT);
		else
			check_int(chan_recv_wait(&c, &f, PATIENCE_MS), -EPIPE);
		chan_done(&c);
	}
	check_int(status_of(&w, "a.site.test"), 200);
	world_stop(&w);
}

int main(void)
{
	run_test(test_once);
	run_test(test_body);
	run_test(test_policy);
	run_test(test_refused_by_the_new_policy);
	run_test(test_goes_on);
	run_test(test_not_asked);
	run_test(test_nobody);
	run_test(test_many);
	run_test(test_lies);
	run_test(test_late);
	run_test(test_refused_meanwhile);
	return tap_done();
}
