/* SPDX-License-Identifier: Apache-2.0 */
/* The broker as a process of its own, with real origins: what it lets out, what it never lets out,
 * and what comes back (INV-JUDGED-FIRST). Secrets and whom it talks to are in
 * test-broker-secrets.c, hostile gateways in test-broker-hostile.c. */
#include "base/clock.h"
#include "broker/test-world.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tap.h>
#include <unistd.h>

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
	check(world_seen(&w.plain_seen, "GET /hello?x=%41 HTTP/1.1\r\nHost: a.site.test\r\n"
					"User-Agent: t\r\nX-A: 1\r\nX-A: 2\r\n\r\n"));
	check(world_gets(&w,
		&(struct ask){.scheme = NET_HTTPS, .host = "a.site.test", .target = "/hello"},
		"hello"));
	check(world_log_has(&w, false, "ALLOWED GET http://a.site.test/hello?x=%2541 -> 200"));
	check(world_log_has(&w, true, "\"event\":\"intent\""));
	check(world_log_has(&w, true, "\"bytes_in\":5"));
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
	check(world_log_has(&w, false, "BLOCKED POST https://evil.example/x?y=1 -> 403"));
	check_int(test_origin_accepted(w.tls) + test_origin_accepted(w.plain), 0);
	world_stop(&w);
}

/* A refused body is taken up to a limit, so that the refusal arrives. */
static void test_blocked_body(void)
{
	static const char zeros[NET_REQUEST_WINDOW];
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
	check(world_gets(&w, &(struct ask){.host = "a.site.test", .target = "/hello"}, "hello"));
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
	check(world_gets(&w, &a, "until the end"));
	a = (struct ask){.host = "a.site.test",
		.target = "/sink",
		.method = "POST",
		.body = NET_BODY_STREAM};
	id = rig_open(&w.g, &a);
	r = (struct got){0};
	rig_data(&w.g, id, "0123456789", 10);
	rig_data(&w.g, id, "abc", 3);
	rig_end(&w.g, id);
	rig_collect(&w.g, id, &r, 5000);
	check_str(buf_str(&r.text), "13");
	got_done(&r);
	check(world_seen(&w.plain_seen, "Transfer-Encoding: chunked\r\n"));
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
		while (sent + sizeof(zeros) > NET_REQUEST_WINDOW + r.credit && !r.reset &&
			!r.gone) {
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

/* Each way: the window of an upload grows, as far as the origin is fast. */
static void move_big_bodies(struct world *w)
{
	download(w, NET_HTTPS);
	upload(w, NET_HTTPS, NET_BODY_LENGTH);
	upload(w, NET_HTTP, NET_BODY_STREAM);
}

static void test_big_bodies(void)
{
	struct world w;
	long before, after;

	world_start(&w, NULL);
	rig_serve(&w.g);
	move_big_bodies(&w);
	before = rig_rss_kib(&w.g);
	move_big_bodies(&w);
	after = rig_rss_kib(&w.g);
	printf("# memory: %ld KiB after 288 MiB, %ld after twice that\n", before, after);
#if !defined(__SANITIZE_ADDRESS__)
	/* Windows may grow later, if the machine was busy before. */
	check(after < RSS_LIMIT_KIB && after - before < NET_REQUESTS_GROWN_MAX >> 10);
#endif
	world_stop(&w);
}

/* A gateway that does not read its channel: no more than a window of each stream waits for it, and
 * all goes on when it does. */
static void test_slow_gateway(void)
{
	enum { STREAMS = 100, BYTES = 400000 };
	struct world w;
	unsigned ended = 0;
	uint64_t bytes = 0;
	long rss;

	world_start(&w, NULL);
	rig_serve(&w.g);
	for (int i = 0; i < STREAMS; i++)
		rig_open(&w.g, &(struct ask){.host = i % 2 ? "a.site.test" : "b.site.test",
				       .target = "/big/400000"});
	usleep(500000);
	rss = rig_rss_kib(&w.g);
	while (ended < STREAMS) {
		struct chan_frame f;
		uint32_t id;
		struct str data;

		must(chan_recv_wait(&w.g.net, &f, 30000) == 1);
		if (f.type == NET_DATA && net_get_data(f.payload, &id, &data)) {
			bytes += data.n;
			must(net_send_credit(&w.g.net, id, (uint32_t)data.n) == 0);
			rig_flush(&w.g);
		}
		ended += f.type == NET_END;
		must(f.type != NET_RESET);
	}
	check_int(bytes, (uint64_t)STREAMS * BYTES);
	printf("# memory: %ld KiB with %d answers waiting\n", rss, STREAMS);
#if !defined(__SANITIZE_ADDRESS__)
	check(rss < RSS_LIMIT_KIB);
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
	check(world_gets(&w, &(struct ask){.host = "a.site.test", .target = "/hello"}, "hello"));
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
	check(world_gets(&w, &a, "until the end"));
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
	check(world_gets(&w, &(struct ask){.host = "a.site.test", .target = "/hello"}, "hello"));
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
	check(world_gets(&w, &(struct ask){.host = "a.site.test", .target = "/hello"}, "hello"));
	check(world_log_has(&w, false, "cancelled by the client"));
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

/* Requests that come together are recorded together: all of them, or none goes out. */
static void test_log_full_for_many(void)
{
	struct world w;
	struct got r = {0};
	uint32_t last = 0;

	world_start(&w, NULL);
	w.g.json_to = "/dev/full";
	rig_serve(&w.g);
	for (int i = 0; i < 20; i++)
		last = rig_open(&w.g,
			&(struct ask){.host = "a.site.test", .target = "/hello", .more = i < 19});
	rig_collect(&w.g, last, &r, 5000);
	check_int(r.status, 502);
	check(got_has(&r, "log_unavailable"));
	check_int(test_origin_accepted(w.plain), 0);
	got_done(&r);
	world_stop(&w);
}

/* A log of which the test reads what is written, until it stops. */
static int open_fifo(char path[96], const struct rig *g)
{
	int fd;

	snprintf(path, 96, "%s.fifo", g->json);
	must(mkfifo(path, 0600) == 0);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	must(fd >= 0);
	return fd;
}

static void read_until(int fd, const char *text)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(1 << 20);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char *at;
	ssize_t n;

	while (str_find(buf_str(&b), str_from(text)) == buf_len(&b)) {
		must(poll(&p, 1, 20000) == 1 && buf_reserve(&b, 4096, &at) == 0);
		n = read(fd, at, 4096);
		must(n > 0);
		buf_commit(&b, (size_t)n);
	}
}

/* A credential among the trailers that cannot be recorded ends its request, and no other. */
static void test_log_fails_at_trailers(void)
{
	struct world w;
	struct got r = {0};
	struct net_fields_out f;
	char path[96];
	uint32_t id;
	int fd;

	world_start(&w, NULL);
	fd = open_fifo(path, &w.g);
	w.g.json_to = path;
	rig_serve(&w.g);
	id = rig_open(&w.g, &(struct ask){.host = "a.site.test",
				    .method = "POST",
				    .target = "/sink",
				    .body = NET_BODY_STREAM});
	read_until(fd, "\"event\":\"intent\"");
	close(fd);
	f = net_begin_trailers(&w.g.net, id);
	net_add_field(&f, STR("Authorization"), STR("mine"));
	must(net_end_fields(&f) == 0);
	rig_flush(&w.g);
	rig_collect(&w.g, id, &r, 20000);
	check(!r.gone);
	check_int(r.status, 502);
	check(r.ended && got_has(&r, "log_unavailable"));
	check(!world_seen(&w.plain_seen, "mine"));
	got_done(&r);
	rig_ask(&w.g, &(struct ask){.host = "a.site.test", .target = "/hello"}, &r);
	check_int(r.status, 502);
	got_done(&r);
	world_stop(&w);
	unlink(path);
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	while ((text = strstr(text, what))) {
		n++;
		text += strlen(what);
	}
	return n;
}

/* What is taken back in the same breath is recorded and not sent; the one behind it is. */
static void test_reset_before_it_goes(void)
{
	struct world w;
	struct got r = {0};
	uint32_t first, second;
	char *json;

	world_start(&w, NULL);
	rig_serve(&w.g);
	first = rig_open(
		&w.g, &(struct ask){.host = "a.site.test", .target = "/hello", .more = true});
	second = rig_open(
		&w.g, &(struct ask){.host = "b.site.test", .target = "/hello", .more = true});
	must(net_send_reset(&w.g.net, first, NET_RESET_CANCELLED) == 0);
	rig_flush(&w.g);
	rig_collect(&w.g, second, &r, 5000);
	check_int(r.status, 200);
	check_int(test_origin_accepted(w.plain), 1);
	json = rig_log(&w.g, true);
	check_int(count(json, "\"event\":\"intent\""), 2);
	check_int(count(json, "\"event\":\"request\""), 2);
	check(strstr(json, "cancelled by the client"));
	free(json);
	got_done(&r);
	world_stop(&w);
}

int main(void)
{
	run_test(test_allowed);
	run_test(test_head_and_interim);
	run_test(test_blocked);
	run_test(test_blocked_body);
	run_test(test_bodies);
	run_test(test_big_bodies);
	run_test(test_slow_gateway);
	run_test(test_stalled);
	run_test(test_cut);
	run_test(test_malformed);
	run_test(test_cancel);
	run_test(test_log_full);
	run_test(test_log_full_for_many);
	run_test(test_log_fails_at_trailers);
	run_test(test_reset_before_it_goes);
	world_ca = test_ca_free(world_ca);
	return tap_done();
}
