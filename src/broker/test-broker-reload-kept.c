/* SPDX-License-Identifier: Apache-2.0 */
/* What a new policy means for what the old one had led to: connections that wait, names, bodies,
 * and what is searched for in answers. */
#include "broker/test-reload.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>

/* Connections that wait are not for requests by another policy. */
static void test_pool(void)
{
	struct netconf_replaced m = {0};
	struct world w;

	world_serve(&w);
	for (int i = 0; i < 3; i++)
		check_int(status_of(&w, "a.site.test"), 200);
	check_int(test_origin_accepted(w.tls), 1);
	check_int(set_policy(&w, ONLY_A, &m, NULL), 0);
	for (int i = 0; i < 3; i++)
		check_int(status_of(&w, "a.site.test"), 200);
	check_int(test_origin_accepted(w.tls), 2);
	world_stop(&w);
}

/* Nor is one that was made under the old one, and waits when its last request is over. */
static void test_pool_later(void)
{
	struct netconf_replaced m = {0};
	struct got r = {0};
	struct world w;
	uint32_t id;

	world_serve(&w);
	w.g.stalled = true;
	id = rig_open(&w.g, &(struct ask){.host = "a.site.test", .target = "/big/3000000"});
	wait_head(&w, id, &r);
	check_int(set_policy(&w, ONLY_A, &m, NULL), 0);
	must(net_send_credit(&w.g.net, id, (uint32_t)r.bytes) == 0);
	rig_flush(&w.g);
	w.g.stalled = false;
	rig_collect(&w.g, id, &r, PATIENCE_MS);
	check(r.ended && r.bytes == 3000000);
	got_done(&r);
	check(world_gets(&w, &(struct ask){.host = "a.site.test", .target = "/hello"}, "hello"));
	check_int(test_origin_accepted(w.plain), 2);
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
	check(r.status == 403 && got_has(&r, "address_refused"));
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
	check(r.status == 403 && got_has(&r, "address_refused"));
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

	world_serve(&w);
	id = rig_open(&w.g, &(struct ask){.host = "a.site.test",
				    .method = "POST",
				    .target = "/never/",
				    .body = NET_BODY_STREAM});
	wait_taken(&w);
	check_int(set_policy(&w,
			  "url_prefixes:\n"
			  "- {host: a.site.test, path: /never, graphql: {queries: [me]}}\n"
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
		{GRAPHQL("me, you"), 0, 200},
		{GRAPHQL("you"), 0, 403},
		{"url_prefixes: [{host: a.site.test, path: /sink}]\n", 1, 503},
		{GRAPHQL("me"), 0, 200},
	};
	static const char body[] = "{\"query\":\"{me}\"}";
	struct netconf_replaced m = {0};
	struct world w;

	world_serve(&w);
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
		wait_taken(&w);
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

#define MESSAGES "domains: [api.anthropic.com, a.site.test, open.test]\n"
#define MESSAGES_NONE "domains: [api.anthropic.com, a.site.test]\n"
#define FETCH "{\"tools\":[{\"type\":\"web_fetch_1\",\"allowed_domains\":[\"open.test\"]}]}"

/* Send a request to the Messages API and replace the policy. */
static void set_under_way(
	struct world *w, const char *body, const char *yaml, unsigned closed, struct got *ret)
{
	struct netconf_replaced m = {0};
	uint32_t id;

	*ret = (struct got){0};
	check_int(set_policy(w, MESSAGES, &m, NULL), 0);
	id = rig_open(&w->g, &(struct ask){.scheme = NET_HTTPS,
				     .host = "api.anthropic.com",
				     .method = "POST",
				     .target = "/never",
				     .fields = {"X-Original-URL", "/v1/messages"},
				     .body = NET_BODY_LENGTH,
				     .length = strlen(body)});
	rig_data(&w->g, id, body, strlen(body));
	rig_end(&w->g, id);
	rig_collect(&w->g, id, ret, 300);
	check_int(ret->status, 0);
	check_int(set_policy(w, yaml, &m, NULL), 0);
	check_int(m.closed, closed);
	rig_collect(&w->g, id, ret, closed ? PATIENCE_MS : 100);
	must(net_send_reset(&w->g.net, id, NET_RESET_CANCELLED) == 0);
	rig_flush(&w->g);
}

/* What a request relies on is judged again with it, also if its own host stays in the policy:
 * before it was sent, and after. */
static void test_relied_on(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t n = sizeof(a);
	struct world w;
	struct got r;

	must(silent >= 0 && bind(silent, (struct sockaddr *)&a, n) == 0 && listen(silent, 8) == 0);
	must(getsockname(silent, (struct sockaddr *)&a, &n) == 0);
	for (int sent = 0; sent < 2; sent++) {
		const struct test_cert cert = {.ca = world_ca, .dns = "api.anthropic.com"};

		world_start(&w, sent ? &cert : NULL);
		rig_connect_to(&w.g, "api.anthropic.com", 443,
			sent ? test_origin_port(w.tls) : ntohs(a.sin_port));
		rig_serve(&w.g);
		set_under_way(&w, FETCH, MESSAGES_NONE, 1, &r);
		check(r.status == 503 && got_has(&r, "policy_replaced"));
		got_done(&r);
		set_under_way(&w, FETCH, MESSAGES "  # the same\n", 0, &r);
		check(r.status == 0 && !r.reset);
		got_done(&r);
		set_under_way(&w, "{}", MESSAGES_NONE, 0, &r);
		check(r.status == 0 && !r.reset);
		got_done(&r);
		world_stop(&w);
	}
	close(silent);
}

/* What was let through unscrubbed does not go on under a policy that wants it scrubbed. */
static void test_scrub(void)
{
	struct netconf_replaced m = {0};
	struct world w;
	struct got r = {0};
	uint32_t id;

	world_serve(&w);
	check_int(
		set_policy(&w, "url_prefixes: [{host: a.site.test, scrub: false}]\n", &m, NULL), 0);
	w.g.stalled = true;
	id = rig_open(&w.g, &(struct ask){.host = "a.site.test", .target = "/big/3000000"});
	wait_head(&w, id, &r);
	check_int(r.status, 200);
	check_int(set_policy(&w, ONLY_A, &m, NULL), 0);
	check_int(m.closed, 1);
	rig_collect(&w.g, id, &r, PATIENCE_MS);
	check(r.reset);
	got_done(&r);
	id = rig_open(&w.g, &(struct ask){.host = "a.site.test", .target = "/never"});
	r = (struct got){0};
	wait_taken(&w);
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

/* Without a secret nothing is scrubbed under either policy. */
static void test_nothing_to_scrub(void)
{
	struct netconf_replaced m = {0};
	struct world w;
	struct got r = {0};
	uint32_t id;

	world_bare = true;
	world_serve(&w);
	world_bare = false;
	check_int(
		set_policy(&w, "url_prefixes: [{host: a.site.test, scrub: false}]\n", &m, NULL), 0);
	w.g.stalled = true;
	id = rig_open(&w.g, &(struct ask){.host = "a.site.test", .target = "/big/3000000"});
	wait_head(&w, id, &r);
	check_int(set_policy(&w, ONLY_A, &m, NULL), 0);
	check_int(m.closed, 0);
	w.g.stalled = false;
	must(net_send_credit(&w.g.net, id, (uint32_t)r.bytes) == 0);
	rig_flush(&w.g);
	rig_collect(&w.g, id, &r, PATIENCE_MS);
	check(r.ended && r.bytes == 3000000);
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
	wait_head(&w, id, &r);
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
	check(r.status == 403 && got_has(&r, "address_refused"));
	got_done(&r);
	world_stop(&w);
}

int main(void)
{
	run_test(test_pool);
	run_test(test_pool_later);
	run_test(test_pool_of_each_rule);
	run_test(test_addresses);
	run_test(test_dialling);
	run_test(test_guarded_path);
	run_test(test_body);
	run_test(test_relied_on);
	run_test(test_scrub);
	run_test(test_nothing_to_scrub);
	return tap_done();
}
