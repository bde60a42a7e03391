/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies that filters judge, on their way through a broker (INV-BODY-JUDGED). */
#include "broker/test-world.h"

#include <stdio.h>
#include <tap.h>

#define ALLOWED "{\"query\":\"{viewer{login}}\"}"
#define REFUSED "{\"query\":\"{search{id}}\"}"

static void start(struct world *w)
{
	world_start(w, NULL);
	rig_allow(&w->g, "domains: [api.anthropic.com]\nurl_prefixes:\n"
			 "- {host: gql.narrow, path: /sink, graphql: {queries: [viewer]}}\n");
	rig_connect_to(&w->g, "gql.narrow", 80, test_origin_port(w->plain));
	rig_connect_to(&w->g, "api.anthropic.com", 80, test_origin_port(w->plain));
	rig_serve(&w->g);
}

static const struct ask graphql = {.host = "gql.narrow",
	.method = "POST",
	.target = "/sink",
	.fields = {"Content-Type", "application/json"},
	.body = NET_BODY_STREAM};

/* The body goes in pieces. */
static unsigned send_body(
	struct world *w, const struct ask *a, struct str body, size_t piece, struct got *r)
{
	uint32_t id = rig_open(&w->g, a);

	*r = (struct got){0};
	for (; body.n > 0; body = str_from_index(body, piece))
		rig_data(&w->g, id, body.p, MIN(piece, body.n));
	rig_end(&w->g, id);
	rig_flush(&w->g);
	rig_collect(&w->g, id, r, 5000);
	return r->status;
}

static void test_judged(void)
{
	struct world w;
	struct got r;

	start(&w);
	check_int(send_body(&w, &graphql, STR(ALLOWED), 5, &r), 200);
	check(got_has(&r, "27"));
	got_done(&r);
	check_int(send_body(&w, &graphql, STR(REFUSED), 5, &r), 403);
	check(got_has(&r, "\"error\": \"graphql_operation_blocked\""));
	check(got_has(&r, "\"detail\": \"query/search\""));
	got_done(&r);
	check_int(w.plain_seen.requests, 1);
	/* What was collected has a length now. */
	check(world_seen(&w.plain_seen, "Content-Length: 27\r\n"));
	check(world_log_has(&w, false, "-> 200 [graphql: query/viewer]\n"));
	check(world_log_has(&w, false,
		"-> 403 (graphql_operation_blocked: query/search) [graphql: query/search]\n"));
	check(world_log_has(&w, true, "\"tags\":{\"graphql\":\"query/search\"}"));
	world_stop(&w);
}

/* Streams are used again: nothing of one request is left for the next. */
static void test_again_and_again(void)
{
	struct world w;
	struct got r;

	start(&w);
	for (unsigned i = 0; i < 200; i++) {
		struct ask other = {.host = "gql.narrow", .target = "/sink"};

		check_int(send_body(&w, &graphql, i % 2 ? STR(REFUSED) : STR(ALLOWED), 100, &r),
			i % 2 ? 403 : 200);
		got_done(&r);
		other.host = "api.anthropic.com";
		other.target = "/hello";
		check(world_gets(&w, &other, "hello"));
	}
	check(!world_log_has(&w, false, "/hello -> 200 [graphql"));
	world_stop(&w);
}

/* One that is too long is refused before it has ended, and more than once at a time. */
static void test_too_large(void)
{
	static char blanks[NET_MAX_DATA];
	struct world w;
	struct got r;

	memset(blanks, ' ', sizeof(blanks));
	start(&w);
	for (unsigned i = 0; i < 3; i++) {
		uint32_t id = rig_open(&w.g, &graphql);

		r = (struct got){0};
		for (size_t n = 0; n <= 1 << 20; n += sizeof(blanks))
			rig_data(&w.g, id, blanks, sizeof(blanks));
		rig_flush(&w.g);
		rig_collect(&w.g, id, &r, 5000);
		check_int(r.status, 403);
		check(got_has(&r, "<too-large>") && r.close);
		got_done(&r);
	}
	check_int(w.plain_seen.requests, 0);
	check_int(send_body(&w, &graphql, STR(ALLOWED), 100, &r), 200);
	got_done(&r);
	world_stop(&w);
}

/* The body that goes on is the one that was made. */
static void test_changed(void)
{
	static const char body[] = "{\"tools\": [{\"type\": \"web_fetch_1\"}]}";
	struct ask a = {.host = "api.anthropic.com",
		.method = "POST",
		.target = "/v1/messages",
		.fields = {"Content-MD5", "x", "Digest", "y", "X-Kept", "z"},
		.body = NET_BODY_LENGTH,
		.length = sizeof(body) - 1};
	struct world w;
	struct got r;

	start(&w);
	(void)send_body(&w, &a, str_from(body), 7, &r); /* the origin knows no such target */
	got_done(&r);
	check_int(w.plain_seen.requests, 1);
	check(world_seen(&w.plain_seen, "Content-Length: 57\r\n"));
	check(world_seen(&w.plain_seen, "X-Kept: z\r\n"));
	check(!world_seen(&w.plain_seen, "Content-MD5") && !world_seen(&w.plain_seen, "Digest"));
	world_stop(&w);
}

/* The room goes away in the middle of a body that is collected. */
static void test_broken_off(void)
{
	struct world w;
	struct got r;

	start(&w);
	for (unsigned i = 0; i < 50; i++) {
		uint32_t id = rig_open(&w.g, &graphql);

		rig_data(&w.g, id, ALLOWED, 10);
		test_need(net_send_reset(&w.g.net, id, NET_RESET_CANCELLED) == 0);
	}
	rig_flush(&w.g);
	check_int(send_body(&w, &graphql, STR(ALLOWED), 100, &r), 200);
	got_done(&r);
	check_int(w.plain_seen.requests, 1);
	world_stop(&w);
}

/* A URL that a filter names has stars in the log where other URLs have them. */
static void test_starred(void)
{
	static const char body[] =
		"{\"source\":{\"type\":\"url\",\"url\":\"https://x.example/?k=value-of-env\"}}";
	const struct ask a = {.host = "api.anthropic.com",
		.method = "POST",
		.target = "/v1/messages?k=value-of-env",
		.body = NET_BODY_STREAM};
	struct world w;
	struct got r;

	world_start(&w, NULL);
	rig_allow(&w.g, "domains: [api.anthropic.com]\n");
	test_need(chan_send(&w.g.conf, NETCONF_REDACT, STR("value-of-env"), NULL, 0) == 0);
	rig_serve(&w.g);
	check_int(send_body(&w, &a, str_from(body), 100, &r), 403);
	check(got_has(&r, "value-of-env")); /* the inside knows it */
	got_done(&r);
	check(world_log_has(&w, false, "tool_url_blocked: https://x.example/?k=************"));
	check(!world_log_has(&w, false, "value-of-env"));
	check(!world_log_has(&w, true, "value-of-env"));
	world_stop(&w);
}

int main(void)
{
	run_test(test_judged);
	run_test(test_again_and_again);
	run_test(test_too_large);
	run_test(test_changed);
	run_test(test_broken_off);
	run_test(test_starred);
	return tap_done();
}
