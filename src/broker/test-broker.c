/* SPDX-License-Identifier: Apache-2.0 */
/* The broker as a process of its own, with real origins: what it lets out, what it never lets out,
 * and what comes back. Hostile gateways are in test-broker-hostile.c. */
#include "base/clock.h"
#include "broker/test-origin.h"
#include "broker/testing.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <tap.h>
#include <unistd.h>

#define REAL "sk-real-0123456789abcdef"
#define FAKE "sk-fake-ABCDEFGHIJKLMNOP"
#define ALLOW_ALL                                                                                  \
	"domains:\n  - \"*.test\"\n  - localhost\nurl_prefixes:\n  - host: api.narrow\n"           \
	"    path: /hello*\n    methods: [GET]\n"

static struct test_ca *ca, *stranger;

/* A broker, a plain origin and one behind TLS, as most tests need them. */
struct world {
	struct rig g;
	struct origin_seen plain_seen, tls_seen;
	struct test_origin *plain, *tls;
};

static void world_start(struct world *w, const struct test_cert *cert)
{
	const struct test_cert usual = {.ca = ca, .dns = "*.site.test"};
	struct test_origin_config plain = {.serve = origin_serve, .arg = &w->plain_seen};
	struct test_origin_config tls = {
		.cert = cert ? cert : &usual, .serve = origin_serve, .arg = &w->tls_seen};
	struct buf pem = BUF_INIT(8192);

	w->plain_seen = w->tls_seen = (struct origin_seen){.heads = BUF_INIT(1 << 20)};
	rig_start(&w->g);
	w->plain = test_origin_start(&plain);
	w->tls = test_origin_start(&tls);
	test_ca_add_pem(ca, &pem);
	must(chan_send(&w->g.conf, NETCONF_UPSTREAM_CA, buf_str(&pem), NULL, 0) == 0);
	buf_done(&pem);
	rig_allow(&w->g, ALLOW_ALL);
	rig_connect_to(&w->g, "a.site.test", 443, test_origin_port(w->tls));
	rig_connect_to(&w->g, "b.site.test", 443, test_origin_port(w->tls));
	rig_connect_to(&w->g, "a.site.test", 80, test_origin_port(w->plain));
	rig_connect_to(&w->g, "b.site.test", 80, test_origin_port(w->plain));
	rig_secret(&w->g, "TOKEN", REAL, FAKE, "a.site.test", "authorization");
}

static void world_stop(struct world *w)
{
	int status = rig_stop(&w->g);

	check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	test_origin_stop(w->plain);
	test_origin_stop(w->tls);
	buf_done(&w->plain_seen.heads);
	buf_done(&w->tls_seen.heads);
}

static bool seen(const struct origin_seen *o, const char *text)
{
	return str_find(buf_str(&o->heads), str_from(text)) < buf_len(&o->heads);
}

static bool log_has(const struct world *w, bool json, const char *text)
{
	char *log = rig_log(&w->g, json);
	bool has = strstr(log, text) != NULL;

	free(log);
	return has;
}

static void expect_body(struct world *w, const struct ask *a, const char *body)
{
	struct got r;

	rig_ask(&w->g, a, &r);
	if (r.status != 200 || !r.ended)
		tap_fail("%s: status %u: %.*s", a->target, r.status, STR_FMT(buf_str(&r.text)));
	check_str(buf_str(&r.text), body);
	got_done(&r);
}

static void test_allowed(void)
{
	struct world w;
	struct got r;

	world_start(&w, NULL);
	rig_serve(&w.g);
	rig_ask(&w.g,
		&(struct ask){.host = "a.site.test",
			.target = "/hello?x=%41",
			.fields = {"User-Agent", "t", "X-A", "1", "X-A", "2"}},
		&r);
	check_int(r.status, 200);
	check(r.ended && !r.close);
	check_int(r.body, NET_BODY_LENGTH);
	check_int(r.length, 5);
	check_str(buf_str(&r.text), "hello");
	check(!got_field(&r, "Alt-Svc"));
	got_done(&r);
	check(seen(&w.plain_seen, "GET /hello?x=%41 HTTP/1.1\r\nHost: a.site.test\r\n"
				  "User-Agent: t\r\nX-A: 1\r\nX-A: 2\r\n\r\n"));
	expect_body(&w,
		&(struct ask){.scheme = NET_HTTPS, .host = "a.site.test", .target = "/hello"},
		"hello");
	check(log_has(&w, false, "ALLOWED GET http://a.site.test/hello?x=%2541 -> 200"));
	check(log_has(&w, true, "\"event\":\"intent\""));
	check(log_has(&w, true, "\"bytes_in\":5"));
	world_stop(&w);
}

static void test_head_and_interim(void)
{
	struct world w;
	struct got r;

	world_start(&w, NULL);
	rig_serve(&w.g);
	rig_ask(&w.g, &(struct ask){.host = "a.site.test", .method = "HEAD", .target = "/chunked"},
		&r);
	check_int(r.status, 200);
	check_int(r.interims, 1);
	check(got_field(&r, "Link: </x>"));
	check_int(r.bytes, 0);
	got_done(&r);
	world_stop(&w);
}

static void test_blocked(void)
{
	struct world w;
	struct got r;

	world_start(&w, NULL);
	rig_connect_to(&w.g, "evil.example", 443, test_origin_port(w.tls));
	rig_serve(&w.g);
	rig_ask(&w.g,
		&(struct ask){.scheme = NET_HTTPS,
			.host = "evil.example",
			.method = "POST",
			.target = "/x?y=1",
			.fields = {"Authorization", "Bearer " FAKE}},
		&r);
	check_int(r.status, 403);
	check(r.ended && got_field(&r, "Content-Type: application/json"));
	check(got_has(&r, "\"error\": \"blocked_by_network_allowlist\""));
	check(got_has(&r, "\"host\": \"evil.example\"") && got_has(&r, "\"path\": \"/x?y=1\""));
	check(got_has(&r, "\"method\": \"POST\"") && got_has(&r, "how_to_allow"));
	got_done(&r);
	rig_ask(&w.g, &(struct ask){.scheme = NET_HTTPS, .host = "api.narrow", .target = "/other"},
		&r);
	check_int(r.status, 403);
	check(got_has(&r, "\"rule\": ") && got_has(&r, "\"reason\": \"path\""));
	got_done(&r);
	rig_ask(&w.g,
		&(struct ask){
			.scheme = NET_HTTPS, .host = "api.narrow", .target = "/hello/%2e%2e/x"},
		&r);
	check_int(r.status, 403);
	got_done(&r);
	rig_ask(&w.g, &(struct ask){.host = "a.site.test", .port = 8080, .target = "/"}, &r);
	check_int(r.status, 403);
	got_done(&r);
	check(log_has(&w, false, "BLOCKED POST https://evil.example/x?y=1 -> 403"));
	check_int(test_origin_accepted(w.tls) + test_origin_accepted(w.plain), 0);
	world_stop(&w);
}

/* A refused body is taken up to a limit, so that the refusal arrives. */
static void test_blocked_body(void)
{
	static const char zeros[NET_WINDOW];
	struct world w;
	struct got r = {0};
	uint32_t id;

	world_start(&w, NULL);
	rig_serve(&w.g);
	id = rig_open(&w.g, &(struct ask){.host = "evil.example",
				    .method = "POST",
				    .target = "/",
				    .body = NET_BODY_LENGTH,
				    .length = 10});
	rig_data(&w.g, id, "0123456789", 10);
	rig_end(&w.g, id);
	rig_collect(&w.g, id, &r, 5000);
	check(r.status == 403 && !r.close && r.ended);
	got_done(&r);
	id = rig_open(&w.g, &(struct ask){.host = "evil.example",
				    .method = "POST",
				    .target = "/",
				    .body = NET_BODY_STREAM});
	r = (struct got){0};
	rig_collect(&w.g, id, &r, 5000);
	check(r.status == 403 && r.close && r.ended && !r.reset);
	r.ended = false;
	for (int i = 0; i < 3 && !r.reset; i++) {
		rig_data(&w.g, id, zeros, sizeof(zeros));
		rig_collect(&w.g, id, &r, 200);
	}
	check(r.reset); /* after the limit */
	got_done(&r);
	expect_body(&w, &(struct ask){.host = "a.site.test", .target = "/hello"}, "hello");
	world_stop(&w);
}

static void test_secret(void)
{
	struct world w;
	const char *auth = "Bearer " FAKE;

	world_start(&w, NULL);
	rig_serve(&w.g);
	/* Basic user:FAKE and user:REAL */
	const char *basic_fake = "Basic dXNlcjpzay1mYWtlLUFCQ0RFRkdISUpLTE1OT1A=";
	const char *basic_real = "Basic dXNlcjpzay1yZWFsLTAxMjM0NTY3ODlhYmNkZWY=";
	struct ask a = {.scheme = NET_HTTPS,
		.host = "a.site.test",
		.target = "/hello",
		.fields = {"Authorization", auth, "Accept-Encoding", "gzip, br"}};

	expect_body(&w, &a, "hello");
	check(seen(&w.tls_seen, "Authorization: Bearer " REAL "\r\n"));
	check(seen(&w.tls_seen, "Accept-Encoding: identity\r\n"));
	check(!seen(&w.tls_seen, FAKE));
	check(log_has(&w, false, "[masked: 1]"));

	a.fields[1] = basic_fake;
	expect_body(&w, &a, "hello");
	check(seen(&w.tls_seen, basic_real));

	/* Another host, another scheme: only ever the surrogate. */
	buf_clear(&w.tls_seen.heads);
	a.fields[1] = auth;
	a.host = "b.site.test";
	expect_body(&w, &a, "hello");
	check(seen(&w.tls_seen, FAKE) && !seen(&w.tls_seen, REAL));
	check(seen(&w.tls_seen, "Accept-Encoding: gzip, br\r\n"));
	a.host = "a.site.test";
	a.scheme = NET_HTTP;
	expect_body(&w, &a, "hello");
	check(w.plain_seen.requests == 1 && !seen(&w.plain_seen, REAL));
	check(log_has(&w, false, "WARNING: TOKEN not put into header 'authorization'"));

	/* Someone else's credential does not go to the secret's host. */
	buf_clear(&w.tls_seen.heads);
	a.scheme = NET_HTTPS;
	a.fields[1] = "Bearer stolen";
	expect_body(&w, &a, "hello");
	check(!seen(&w.tls_seen, "stolen"));
	check(log_has(
		&w, false, "STRIPPED header 'authorization' from GET https://a.site.test/hello"));
	check(!log_has(&w, false, REAL) && !log_has(&w, true, REAL));
	world_stop(&w);
}

static void test_echo_scrubbed(void)
{
	static const char *const targets[] = {"/echo", "/split"};
	struct world w;
	struct got r;
	struct ask a = {.scheme = NET_HTTPS,
		.host = "a.site.test",
		.fields = {"Authorization", "Bearer " FAKE}};

	world_start(&w, NULL);
	rig_serve(&w.g);
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		a.target = targets[i];
		rig_ask(&w.g, &a, &r);
		check(r.status == 200 && r.ended);
		check(got_has(&r, FAKE) && !got_has(&r, REAL));
		check(got_has(&r, "\r\n\r\n")); /* to the end */
		got_done(&r);
	}
	check(seen(&w.tls_seen, REAL));
	a.target = "/echohead";
	rig_ask(&w.g, &a, &r);
	check(got_field(&r, "X-Seen: Bearer " FAKE) && !got_field(&r, REAL));
	got_done(&r);
	check(log_has(&w, false, "[scrubbed: 1]"));
	world_stop(&w);
}

static void test_reuse(void)
{
	struct world w;
	struct ask a = {.scheme = NET_HTTPS, .host = "a.site.test", .target = "/hello"};

	world_start(&w, NULL);
	rig_serve(&w.g);
	for (int i = 0; i < 10; i++)
		expect_body(&w, &a, "hello");
	check_int(test_origin_accepted(w.tls), 1);
	a.host = "b.site.test"; /* the same address, but not the same host */
	expect_body(&w, &a, "hello");
	check_int(test_origin_accepted(w.tls), 2);
	check_int(test_origin_resumed(w.tls), 0);
	a.target = "/once";
	for (int i = 0; i < 5; i++) {
		expect_body(&w, &a, "hello");
		usleep(20000); /* the close arrives */
	}
	check_int(test_origin_accepted(w.tls), 6);
	check_int(test_origin_resumed(w.tls), 4);
	world_stop(&w);
}

/* The origin gives up a connection at the moment of the next request. */
static void test_retry(void)
{
	struct world w;
	struct got r = {0};
	struct ask a = {.scheme = NET_HTTPS, .host = "a.site.test", .target = "/hello"};
	uint32_t id;

	world_start(&w, NULL);
	rig_serve(&w.g);
	expect_body(&w, &a, "hello");
	a.target = "/die";
	expect_body(&w, &a, "hello");
	check_int(test_origin_accepted(w.tls), 2);
	a.method = "PUT";
	a.body = NET_BODY_LENGTH;
	a.length = 4;
	id = rig_open(&w.g, &a);
	rig_data(&w.g, id, "data", 4);
	rig_end(&w.g, id);
	rig_collect(&w.g, id, &r, 5000);
	check(r.status == 200 && got_has(&r, "hello"));
	got_done(&r);
	check_int(test_origin_accepted(w.tls), 3);
	/* What may not be done twice is not. */
	a.method = "POST";
	a.body = NET_BODY_NONE;
	a.length = 0;
	rig_ask(&w.g, &a, &r);
	check_int(r.status, 502);
	check(got_has(&r, "upstream_closed"));
	got_done(&r);
	world_stop(&w);
}

static void test_bodies(void)
{
	struct world w;
	struct got r;
	struct ask a = {.host = "a.site.test", .target = "/chunked"};
	uint32_t id;

	world_start(&w, NULL);
	rig_serve(&w.g);
	rig_ask(&w.g, &a, &r);
	check_int(r.body, NET_BODY_STREAM);
	check_str(buf_str(&r.text), "hello world");
	check(got_field(&r, "X-Sum: 11"));
	got_done(&r);
	a.target = "/eof";
	expect_body(&w, &a, "until the end");
	a = (struct ask){.host = "a.site.test",
		.target = "/sink",
		.method = "POST",
		.body = NET_BODY_STREAM,
		.expects = true};
	id = rig_open(&w.g, &a);
	r = (struct got){0};
	rig_collect(&w.g, id, &r, 200);
	check_int(r.interims, 1);
	rig_data(&w.g, id, "0123456789", 10);
	rig_data(&w.g, id, "abc", 3);
	rig_end(&w.g, id);
	rig_collect(&w.g, id, &r, 5000);
	check_str(buf_str(&r.text), "13");
	got_done(&r);
	check(seen(&w.plain_seen, "Transfer-Encoding: chunked\r\n"));
	check(!seen(&w.plain_seen, "Expect"));
	world_stop(&w);
}

enum { MANY = 96 << 20, RSS_LIMIT_KIB = 16 << 10 };

static void download(struct world *w, enum net_scheme scheme)
{
	char target[32];
	struct got r;

	snprintf(target, sizeof(target), "/big/%d", MANY);
	rig_ask(&w->g, &(struct ask){.scheme = scheme, .host = "a.site.test", .target = target},
		&r);
	check(r.ended && r.bytes == MANY);
	got_done(&r);
}

static void upload(struct world *w, enum net_scheme scheme, enum net_body body)
{
	static const char zeros[NET_MAX_DATA];
	struct ask a = {.scheme = scheme,
		.host = "a.site.test",
		.method = "POST",
		.target = "/sink",
		.body = body,
		.length = body == NET_BODY_LENGTH ? MANY : 0};
	uint32_t id = rig_open(&w->g, &a);
	struct got r = {0};
	char want[16];

	for (uint64_t sent = 0; sent < MANY && !r.gone; sent += sizeof(zeros)) {
		while (sent + sizeof(zeros) > NET_WINDOW + r.credit && !r.reset && !r.gone) {
			uint64_t before = r.credit;

			rig_collect(&w->g, id, &r, 1);
			must(r.credit > before || !r.ended);
		}
		rig_data(&w->g, id, zeros, sizeof(zeros));
	}
	rig_end(&w->g, id);
	rig_collect(&w->g, id, &r, 20000);
	snprintf(want, sizeof(want), "%d", MANY);
	check_str(buf_str(&r.text), want);
	got_done(&r);
}

static void test_big_bodies(void)
{
	struct world w;
	long before, after;

	world_start(&w, NULL);
	rig_serve(&w.g);
	download(&w, NET_HTTPS);
	before = rig_rss_kib(&w.g);
	download(&w, NET_HTTPS);
	upload(&w, NET_HTTPS, NET_BODY_LENGTH);
	upload(&w, NET_HTTP, NET_BODY_STREAM);
	after = rig_rss_kib(&w.g);
	printf("# memory: %ld KiB after 96 MiB, %ld after four times that\n", before, after);
#if !defined(__SANITIZE_ADDRESS__)
	check(after < RSS_LIMIT_KIB && after - before < 1024);
#endif
	world_stop(&w);
}

/* A room that does not read: nothing more is read for it, and others go on. */
static void test_stalled(void)
{
	struct world w;
	struct got r = {0};
	uint32_t id;

	world_start(&w, NULL);
	rig_serve(&w.g);
	w.g.stalled = true;
	id = rig_open(&w.g,
		&(struct ask){
			.scheme = NET_HTTPS, .host = "a.site.test", .target = "/big/50000000"});
	rig_collect(&w.g, id, &r, 500);
	check(!r.ended && !r.gone);
	check_int(r.bytes, NET_WINDOW);
	w.g.stalled = false;
	expect_body(&w, &(struct ask){.host = "a.site.test", .target = "/hello"}, "hello");
	for (int i = 0; i < 4; i++)
		must(net_send_credit(&w.g.net, id, NET_WINDOW / 4) == 0);
	rig_collect(&w.g, id, &r, 10000);
	check(r.ended && r.bytes == 50000000);
	got_done(&r);
	world_stop(&w);
}

static void test_cut(void)
{
	struct world w;
	struct got r;
	struct ask a = {.scheme = NET_HTTPS, .host = "a.site.test", .target = "/cut"};

	world_start(&w, NULL);
	rig_serve(&w.g);
	rig_ask(&w.g, &a, &r);
	check(r.status == 200 && r.reset && !r.ended);
	got_done(&r);
	a.target = "/cutclose"; /* no close_notify: not a clean end of a body without framing */
	rig_ask(&w.g, &a, &r);
	check(r.status == 200 && r.reset && !r.ended);
	got_done(&r);
	a.target = "/eof";
	expect_body(&w, &a, "until the end");
	world_stop(&w);
}

static void test_malformed(void)
{
	struct world w;
	struct got r;
	char target[16];

	world_start(&w, NULL);
	rig_serve(&w.g);
	for (size_t i = 0; i < origin_malformed_n; i++) {
		snprintf(target, sizeof(target), "/raw/%c", (char)('a' + i));
		rig_ask(&w.g, &(struct ask){.host = "a.site.test", .target = target}, &r);
		if (i == 0) /* RFC 9112 6.3: the coding counts, and the connection is not kept */
			check(r.status == 200 && r.ended && r.bytes == 5);
		else if (r.gone || !(r.status == 502 || r.reset))
			tap_fail("answer %zu: status %u", i, r.status);
		got_done(&r);
	}
	expect_body(&w, &(struct ask){.host = "a.site.test", .target = "/hello"}, "hello");
	world_stop(&w);
}

static void test_certificates(void)
{
	const struct {
		struct test_cert cert;
		const char *text;
	} table[] = {
		{{.ca = ca, .dns = "a.site.test", .from = -7200, .to = -3600}, "expired"},
		{{.ca = ca, .dns = "c.site.test"}, "hostname"},
		{{.cn = "a.site.test", .dns = "a.site.test"}, "self-signed"},
		{{.ca = stranger, .dns = "a.site.test"}, "unable to get"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct world w;
		struct got r;

		world_start(&w, &table[i].cert);
		rig_serve(&w.g);
		rig_ask(&w.g,
			&(struct ask){.scheme = NET_HTTPS,
				.host = "a.site.test",
				.target = "/hello",
				.fields = {"Authorization", "Bearer " FAKE}},
			&r);
		check_int(r.status, 502);
		check(got_has(&r, "upstream_certificate") && got_has(&r, table[i].text));
		check(!got_has(&r, REAL));
		check_int(w.tls_seen.requests, 0);
		check(log_has(&w, false, "ERROR GET https://a.site.test/hello -> "));
		got_done(&r);
		world_stop(&w);
	}
}

static void test_addresses(void)
{
	struct world w;
	struct got r;

	world_start(&w, NULL);
	rig_serve(&w.g);
	rig_ask(&w.g, &(struct ask){.host = "localhost", .target = "/"}, &r);
	check_int(r.status, 502);
	check(got_has(&r, "address_refused") && got_has(&r, "address of this host"));
	got_done(&r);
	check(log_has(&w, false, "BLOCKED GET http://localhost/ -> 502"));
	rig_ask(&w.g, &(struct ask){.host = "127.0.0.1", .target = "/"}, &r);
	check_int(r.status, 403); /* no rule writes it out */
	got_done(&r);
	world_stop(&w);
}

static void test_unreachable(void)
{
	struct world w;
	struct got r;

	world_start(&w, NULL);
	rig_connect_to(&w.g, "c.site.test", 80, 1); /* nobody listens there */
	rig_serve(&w.g);
	rig_ask(&w.g, &(struct ask){.host = "c.site.test", .target = "/"}, &r);
	check_int(r.status, 502);
	check(got_has(&r, "upstream_unreachable") && got_has(&r, "refused"));
	got_done(&r);
	world_stop(&w);
}

static void test_cancel(void)
{
	struct world w;
	uint32_t id;

	world_start(&w, NULL);
	rig_serve(&w.g);
	id = rig_open(&w.g,
		&(struct ask){.scheme = NET_HTTPS, .host = "a.site.test", .target = "/never"});
	while (w.tls_seen.requests == 0)
		usleep(1000);
	must(net_send_reset(&w.g.net, id, NET_RESET_CANCELLED) == 0);
	/* Late frames for it are nothing bad. */
	must(net_send_credit(&w.g.net, id, 1) == 0);
	must(net_send_reset(&w.g.net, id, NET_RESET_CANCELLED) == 0);
	expect_body(&w, &(struct ask){.host = "a.site.test", .target = "/hello"}, "hello");
	check(log_has(&w, false, "cancelled by the client"));
	world_stop(&w);
}

/* What cannot be recorded does not happen. */
static void test_log_full(void)
{
	struct world w;
	struct got r;

	world_start(&w, NULL);
	w.g.json_to = "/dev/full";
	rig_serve(&w.g);
	rig_ask(&w.g, &(struct ask){.host = "a.site.test", .target = "/hello"}, &r);
	check_int(r.status, 502);
	check(got_has(&r, "log_unavailable"));
	check_int(test_origin_accepted(w.plain), 0);
	got_done(&r);
	world_stop(&w);
}

int main(void)
{
	(void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	ca = test_ca_new("Test root");
	stranger = test_ca_new("Stranger");
	run_test(test_allowed);
	run_test(test_head_and_interim);
	run_test(test_blocked);
	run_test(test_blocked_body);
	run_test(test_secret);
	run_test(test_echo_scrubbed);
	run_test(test_reuse);
	run_test(test_retry);
	run_test(test_bodies);
	run_test(test_big_bodies);
	run_test(test_stalled);
	run_test(test_cut);
	run_test(test_malformed);
	run_test(test_certificates);
	run_test(test_addresses);
	run_test(test_unreachable);
	run_test(test_cancel);
	run_test(test_log_full);
	test_ca_free(ca);
	test_ca_free(stranger);
	return tap_done();
}
