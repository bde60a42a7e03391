/* SPDX-License-Identifier: Apache-2.0 */
/* The broker with an origin that speaks HTTP/2. */
#include "base/clock.h"
#include "broker/test-world.h"
#include "clockwork.h"

#include <signal.h>
#include <stdio.h>
#include <tap.h>
#include <unistd.h>

#define HTTPS .scheme = NET_HTTPS, .host = "a.site.test"

static void start(struct world *w)
{
	world_start(w, NULL);
	rig_serve(&w->g);
}

static bool fetches(struct world *w, const char *target, const char *body)
{
	return world_gets(w, &(struct ask){HTTPS, .target = target}, body);
}

static void test_exchange(void)
{
	struct world w;
	struct got r;

	start(&w);
	rig_ask(&w.g,
		&(struct ask){HTTPS, .target = "/hello?x=%41", .te = true,
			.fields = {"User-Agent", "t", "X-A", "1", "Authorization", "Bearer " FAKE}},
		&r);
	check(r.status == 200 && r.ended && r.length == 5);
	check_str(buf_str(&r.text), "hello");
	check(got_field(&r, "x-served: h2") && !got_field(&r, "alt-svc"));
	got_done(&r);
	check(world_seen(&w.tls_seen, "GET /hello?x=%41 HTTP/2\nauthority: a.site.test:0\n"
				      "user-agent: t\nx-a: 1\nauthorization: Bearer " REAL "\n"));
	check(world_seen(&w.tls_seen, "\nte: trailers\n"));
	check(world_log_has(&w, false, "ALLOWED GET https://a.site.test/hello?x=%2541 -> 200"));
	for (int i = 0; i < 20; i++)
		check(fetches(&w, "/hello", "hello"));
	check_int(test_origin_accepted(w.tls), 1);
	world_stop(&w);
}

static void test_without_a_body(void)
{
	static const char *const targets[] = {"/only", "/status/204", "/status/304", "/status/421"};
	static const unsigned statuses[] = {200, 204, 304, 421};
	struct world w;
	struct got r;

	start(&w);
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		rig_ask(&w.g, &(struct ask){HTTPS, .target = targets[i]}, &r);
		check_int(r.status, statuses[i]);
		check(r.ended && r.bytes == 0);
		got_done(&r);
	}
	rig_ask(&w.g, &(struct ask){HTTPS, .method = "HEAD", .target = "/only"}, &r);
	check(r.status == 200 && r.ended);
	got_done(&r);
	check_int(test_origin_accepted(w.tls), 1);
	world_stop(&w);
}

static void test_interim_and_trailers(void)
{
	struct world w;
	struct got r;

	start(&w);
	rig_ask(&w.g, &(struct ask){HTTPS, .target = "/interim"}, &r);
	check_int(r.interims, 1);
	check(r.status == 200 && r.ended);
	got_done(&r);
	rig_ask(&w.g, &(struct ask){HTTPS, .target = "/trailers"}, &r);
	check(r.status == 200 && r.ended && got_field(&r, "grpc-status: 0"));
	check_str(buf_str(&r.text), "hello");
	got_done(&r);
	world_stop(&w);
}

/* Takes frames until n streams have ended; counts what went wrong. */
static void collect_all(struct rig *g, unsigned n, unsigned *ret_resets, uint64_t *ret_bytes)
{
	unsigned ended = 0, resets = 0;
	uint64_t bytes = 0;

	while (ended < n) {
		struct chan_frame f;
		struct str data;
		uint32_t id;

		must(chan_recv_wait(&g->net, &f, 10000) == 1);
		if (f.type == NET_DATA && net_get_data(f.payload, &id, &data)) {
			bytes += data.n;
			must(net_send_credit(&g->net, id, (uint32_t)data.n) == 0);
			rig_flush(g);
		}
		resets += f.type == NET_RESET;
		ended += f.type == NET_END || f.type == NET_RESET;
		chan_frame_done(&f);
	}
	*ret_resets = resets;
	*ret_bytes = bytes;
}

static void ask_many(struct world *w, unsigned n, const char *target)
{
	for (unsigned i = 0; i < n; i++)
		rig_open(&w->g, &(struct ask){HTTPS, .target = target, .more = i + 1 < n});
}

/* They wait for the one that connects, and share what it made. */
static void test_one_connection(void)
{
	struct world w;
	unsigned resets;
	uint64_t bytes;

	start(&w);
	check(fetches(&w, "/bye", "hello"));
	usleep(50000); /* until the broker has seen that it closes */
	ask_many(&w, 60, "/hello");
	collect_all(&w.g, 60, &resets, &bytes);
	check_int(resets, 0);
	check_int(bytes, 300);
	check_int(test_origin_accepted(w.tls), 2);
	/* More than one can take. */
	ask_many(&w, 250, "/big/20000");
	collect_all(&w.g, 250, &resets, &bytes);
	check_int(resets, 0);
	check_int(bytes, 250 * 20000);
	check(test_origin_accepted(w.tls) <= 5);
	world_stop(&w);
}

/* Those that wait go on when the one that connects is cancelled, or fails. */
static void test_leader_fails(void)
{
	struct world w;
	struct got r = {0};
	uint32_t first, second;

	start(&w);
	check(fetches(&w, "/bye", "hello"));
	usleep(50000);
	first = rig_open(&w.g, &(struct ask){HTTPS, .target = "/hello", .more = true});
	second = rig_open(&w.g, &(struct ask){HTTPS, .target = "/hello", .more = true});
	must(net_send_reset(&w.g.net, first, NET_RESET_CANCELLED) == 0);
	rig_flush(&w.g);
	rig_collect(&w.g, second, &r, 5000);
	check(r.status == 200 && r.ended);
	got_done(&r);
	world_stop(&w);
}

static void test_bodies(void)
{
	static char bytes[NET_WINDOW];
	struct world w;
	struct got r = {0};
	uint32_t id;

	start(&w);
	id = rig_open(&w.g,
		&(struct ask){HTTPS, .method = "POST", .target = "/sink", .body = NET_BODY_STREAM});
	rig_data(&w.g, id, bytes, sizeof(bytes));
	for (uint64_t sent = sizeof(bytes); sent < 8 * sizeof(bytes);) {
		uint64_t before = r.credit;

		rig_collect(&w.g, id, &r, 50);
		if (r.credit > before)
			rig_data(&w.g, id, bytes, (size_t)(r.credit - before));
		sent += r.credit - before;
	}
	{
		struct net_fields_out f = net_begin_trailers(&w.g.net, id);

		net_add_field(&f, STR("x-sum"), STR("7"));
		must(net_end_fields(&f) == 0);
	}
	rig_flush(&w.g);
	rig_collect(&w.g, id, &r, 5000);
	check(r.status == 200 && r.ended && got_field(&r, "x-sum: 7"));
	check(strtoull(buf_cstr(&r.text), NULL, 10) >= 8 * sizeof(bytes));
	got_done(&r);
	rig_ask(&w.g, &(struct ask){HTTPS, .target = "/big/50000000"}, &r);
	check(r.ended && r.bytes == 50000000);
	got_done(&r);
	check_int(test_origin_accepted(w.tls), 1);
	world_stop(&w);
}

/* Trailers that are announced go by HTTP/1.1, which whoever speaks HTTP/2 can do, too. */
static void test_announced_trailers(void)
{
	struct ask a = {HTTPS, .method = "POST", .target = "/sink", .body = NET_BODY_STREAM,
		.fields = {"Trailer", "x-sum"}};
	struct world w;
	struct got r;
	uint32_t id;

	start(&w);
	check(fetches(&w, "/hello", "hello"));
	for (int i = 0; i < 2; i++) {
		struct net_fields_out f;

		r = (struct got){0};
		id = rig_open(&w.g, &a);
		f = net_begin_trailers(&w.g.net, id);
		net_add_field(&f, STR("x-sum"), STR("7"));
		must(net_end_fields(&f) == 0);
		rig_flush(&w.g);
		rig_collect(&w.g, id, &r, 5000);
		check(r.status == 200 && r.ended);
		/* The origin gives them back by HTTP/2 alone. */
		check_int(got_field(&r, "x-sum: 7"), i);
		got_done(&r);
		a.te = true; /* but not a call's */
		a.fields[2] = "Content-Type";
		a.fields[3] = "application/grpc";
	}
	check(world_seen(&w.tls_seen, "POST /sink HTTP/1.1\r\n"));
	check(world_seen(&w.tls_seen, "POST /sink HTTP/2\n"));
	check(fetches(&w, "/hello", "hello"));
	check_int(test_origin_accepted(w.tls), 2);
	world_stop(&w);
}

static uint32_t open_bidi(struct world *w, const char *target)
{
	return rig_open(&w->g,
		&(struct ask){HTTPS, .method = "POST", .target = target, .body = NET_BODY_STREAM});
}

/* Waits until so many bytes have come in all. */
static void await_bytes(struct world *w, uint32_t id, struct got *r, uint64_t n)
{
	while (r->bytes < n) {
		struct chan_frame f;
		struct str data;
		uint32_t of;

		must(chan_recv_wait(&w->g.net, &f, 5000) == 1);
		if (f.type == NET_DATA && net_get_data(f.payload, &of, &data)) {
			r->bytes += data.n;
			must(buf_add_str(&r->text, data) == 0);
			must(net_send_credit(&w->g.net, id, (uint32_t)data.n) == 0);
		}
		must(f.type != NET_RESET && f.type != NET_END);
		chan_frame_done(&f);
	}
}

/* Each side speaks as it likes. */
static void test_bidi(void)
{
	struct world w;
	struct got r = {.fields = BUF_INIT(1 << 18), .text = BUF_INIT(1 << 20)};
	uint32_t id;

	start(&w);
	id = open_bidi(&w, "/bidi");
	for (unsigned i = 1; i <= 500; i++) {
		rig_data(&w.g, id, "0123456789", 10);
		await_bytes(&w, id, &r, (uint64_t)10 * i);
	}
	rig_end(&w.g, id);
	rig_collect(&w.g, id, &r, 5000);
	check(r.ended && got_field(&r, "grpc-status: 0"));
	got_done(&r);
	world_stop(&w);
}

/* A message goes on whole, though its end may be a secret's beginning: what answers it may be what
 * the next one waits for. */
static void test_messages(void)
{
	static const struct {
		const char *target;
		struct str pieces[3];
	} rows[] = {
		{"/bidi/application/grpc", {STR("\0\0\0\0\7sk-real")}},
		{"/bidi/application/grpc+proto", {STR("\0\0\0\0"), STR("\0\1\0\0"), STR("\0\2xs")}},
		{"/bidi/application/grpc-web", {STR("\0\0\0\0\2as\0\0\0\0\2bs")}},
		{"/bidi/Application/Connect+json",
			{STR("\2\0\0\0\1s"), STR("\0\0\0\0\2"), STR("ss")}},
	};
	struct world w;

	start(&w);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct got r = {.fields = BUF_INIT(1 << 18), .text = BUF_INIT(1 << 20)};
		uint32_t id = open_bidi(&w, rows[i].target);
		uint64_t n = 0;

		for (size_t k = 0; k < 3 && rows[i].pieces[k].n > 0; k++) {
			rig_data(&w.g, id, rows[i].pieces[k].p, rows[i].pieces[k].n);
			n += rows[i].pieces[k].n;
			await_bytes(&w, id, &r, n);
		}
		rig_data(&w.g, id, "\0\0\0\0\x18" REAL, 29);
		await_bytes(&w, id, &r, n + 29);
		check(got_has(&r, FAKE) && !got_has(&r, REAL));
		rig_end(&w.g, id);
		rig_collect(&w.g, id, &r, 5000);
		check(r.ended);
		got_done(&r);
	}
	world_stop(&w);
}

/* One stream that the room does not read: a window of it is held, others go on beside it. */
static void test_stalled(void)
{
	struct world w;
	struct got r = {0};
	uint32_t id;
	long before;

	start(&w);
	check(fetches(&w, "/hello", "hello"));
	before = rig_rss_kib(&w.g);
	w.g.stalled = true;
	id = rig_open(&w.g, &(struct ask){HTTPS, .target = "/big/50000000"});
	rig_collect(&w.g, id, &r, 500);
	check(!r.ended && !r.gone);
	check_int(r.bytes, NET_WINDOW);
	w.g.stalled = false;
	for (int i = 0; i < 5; i++)
		check(fetches(&w, "/hello", "hello"));
	printf("# memory: %ld KiB more while a stream stalls\n", rig_rss_kib(&w.g) - before);
#if !defined(__SANITIZE_ADDRESS__)
	check(rig_rss_kib(&w.g) - before < 4096);
#endif
	for (int i = 0; i < 4; i++)
		must(net_send_credit(&w.g.net, id, NET_WINDOW / 4) == 0);
	rig_collect(&w.g, id, &r, 10000);
	check(r.ended && r.bytes == 50000000);
	got_done(&r);
	check_int(test_origin_accepted(w.tls), 1);
	world_stop(&w);
}

/* Many that stall together hold more than a connection's window, and no other one back. */
static void test_many_stalled(void)
{
	enum { STALLED = 30 };
	struct world w;
	struct got r = {0};
	uint32_t last = 0;
	long before;

	start(&w);
	check(fetches(&w, "/hello", "hello"));
	before = rig_rss_kib(&w.g);
	w.g.stalled = true;
	for (int i = 0; i < STALLED; i++)
		last = rig_open(&w.g, &(struct ask){HTTPS, .target = "/big/5000000"});
	rig_collect(&w.g, last, &r, 500);
	check(!r.ended && !r.gone);
	got_done(&r);
	w.g.stalled = false;
	rig_ask(&w.g, &(struct ask){HTTPS, .target = "/big/5000000"}, &r);
	check(r.ended && r.bytes == 5000000);
	got_done(&r);
	check_int(test_origin_accepted(w.tls), 1);
	printf("# memory: %ld KiB more while %d streams stall\n", rig_rss_kib(&w.g) - before,
		STALLED);
#if !defined(__SANITIZE_ADDRESS__)
	check(rig_rss_kib(&w.g) - before < 64 * 1024);
#endif
	world_stop(&w);
}

/* A connection that was not read, as too much was held in all, goes on when less is held elsewhere:
 * nothing else would wake it. */
static void test_held_up(void)
{
	enum { STALLED = 45 };
	const struct ask elsewhere = {
		.scheme = NET_HTTPS, .host = "b.site.test", .target = "/big/5000000"};
	uint32_t stalled[STALLED], here, waits;
	struct got r = {0};
	struct world w;

	start(&w);
	rig_ask(&w.g, &elsewhere, &r);
	check(r.ended);
	got_done(&r);
	w.g.stalled = true;
	r = (struct got){0};
	here = rig_open(&w.g, &(struct ask){HTTPS, .target = "/big/5000000"});
	rig_collect(&w.g, here, &r, 300);
	got_done(&r);
	waits = rig_open(&w.g,
		&(struct ask){HTTPS, .method = "POST", .target = "/sink", .body = NET_BODY_STREAM});
	rig_data(&w.g, waits, "12345", 5);
	for (int i = 0; i < STALLED; i++)
		stalled[i] = rig_open(&w.g, &elsewhere);
	r = (struct got){0};
	rig_collect(&w.g, stalled[STALLED - 1], &r, 1000);
	got_done(&r);
	rig_end(&w.g, waits);
	r = (struct got){0};
	rig_collect(&w.g, waits, &r, 300);
	check_int(r.status, 0);
	for (int i = 0; i < STALLED; i++)
		must(net_send_reset(&w.g.net, stalled[i], NET_RESET_CANCELLED) == 0);
	rig_flush(&w.g);
	rig_collect(&w.g, waits, &r, 5000);
	check(r.status == 200 && r.ended);
	got_done(&r);
	world_stop(&w);
}

static void test_broken_off(void)
{
	static const char *const targets[] = {"/reset", "/cancel"};
	struct world w;
	struct got r;

	start(&w);
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		rig_ask(&w.g, &(struct ask){HTTPS, .target = targets[i]}, &r);
		check(r.status == 200 && r.reset && !r.ended);
		got_done(&r);
		check_int(test_origin_accepted(w.tls), 1);
	}
	rig_ask(&w.g, &(struct ask){HTTPS, .target = "/bad"}, &r);
	check_int(r.status, 502);
	check(got_has(&r, "upstream_malformed"));
	got_done(&r);
	check_int(test_origin_accepted(w.tls), 1); /* none of them concerned the others */
	rig_ask(&w.g, &(struct ask){HTTPS, .target = "/cut"}, &r);
	check(r.status == 200 && r.reset && !r.ended);
	got_done(&r);
	check(fetches(&w, "/hello", "hello"));
	check_int(test_origin_accepted(w.tls), 2);
	world_stop(&w);
}

/* What the origin has not looked at is sent once more; also a body that went out. */
static void test_sent_again(void)
{
	struct world w;
	struct got r = {0};
	uint32_t id;

	start(&w);
	check(fetches(&w, "/goaway", "hello"));
	check_int(test_origin_accepted(w.tls), 2);
	id = rig_open(&w.g, &(struct ask){HTTPS, .method = "POST", .target = "/refused",
				    .body = NET_BODY_LENGTH, .length = 5});
	rig_data(&w.g, id, "12345", 5);
	rig_end(&w.g, id);
	rig_collect(&w.g, id, &r, 5000);
	check(r.status == 200 && r.ended);
	got_done(&r);
	check_int(test_origin_accepted(w.tls), 3);
	check(fetches(&w, "/hello?http1", "hello"));
	check(world_seen(&w.tls_seen, "GET /hello?http1 HTTP/1.1\r\n"));
	world_stop(&w);
}

/* All that an origin has not looked at share the next connection. */
static void test_sent_again_together(void)
{
	struct world w;
	unsigned resets;
	uint64_t bytes;

	start(&w);
	check(fetches(&w, "/hello", "hello"));
	ask_many(&w, 30, "/goaway");
	collect_all(&w.g, 30, &resets, &bytes);
	check_int(resets, 0);
	check_int(bytes, 150);
	check_int(test_origin_accepted(w.tls), 2);
	world_stop(&w);
}

/* It has gone out when this returns. */
static void ask_in_vain(struct world *w)
{
	struct got r = {0};

	rig_collect(&w->g, rig_open(&w->g, &(struct ask){HTTPS, .target = "/never"}), &r, 100);
	check_int(r.status, 0);
	got_done(&r);
}

/* A connection that has owed an answer for some seconds gets no more requests. */
static void test_silent(void)
{
	struct world w;

	start(&w);
	check(fetches(&w, "/hello", "hello"));
	ask_in_vain(&w);
	clock_pass(w.g.pid, 5 * USEC_PER_SEC);
	check(fetches(&w, "/hello", "hello")); /* that is a word */
	ask_in_vain(&w);
	check_int(test_origin_accepted(w.tls), 1);
	clock_pass(w.g.pid, 5 * USEC_PER_SEC + 1);
	check(fetches(&w, "/hello", "hello"));
	check_int(test_origin_accepted(w.tls), 2);
	check(fetches(&w, "/hello", "hello"));
	check_int(test_origin_accepted(w.tls), 2);
	world_stop(&w);
}

/* The room gives one up; the others stay. */
static void test_cancelled(void)
{
	struct world w;
	uint32_t id;

	start(&w);
	check(fetches(&w, "/hello", "hello"));
	for (int i = 0; i < 30; i++) {
		id = rig_open(&w.g, &(struct ask){HTTPS, .target = "/never"});
		usleep(2000);
		must(net_send_reset(&w.g.net, id, NET_RESET_CANCELLED) == 0);
		rig_flush(&w.g);
	}
	check(fetches(&w, "/hello", "hello"));
	check_int(test_origin_accepted(w.tls), 1);
	check(world_log_has(&w, false, "cancelled by the client"));
	world_stop(&w);
}

/* Who makes a call reads its status, and no body. */
static void test_grpc_refused(void)
{
	struct ask a = {.scheme = NET_HTTPS,
		.host = "evil.example",
		.method = "POST",
		.target = "/cloche.Test/Echo",
		.body = NET_BODY_STREAM,
		.te = true,
		.fields = {"content-type", "application/grpc+proto"}};
	struct world w;
	struct got r;

	world_start(&w, NULL);
	rig_connect_to(&w.g, "closed.test", 443, 1);
	rig_serve(&w.g);
	rig_ask(&w.g, &a, &r);
	check(r.status == 200 && r.ended && r.body == NET_BODY_NONE && r.bytes == 0);
	check(got_field(&r, "Content-Type: application/grpc"));
	check(got_field(&r, "Grpc-Status: 7"));
	check(str_find(buf_str(&r.fields), STR("evil.example is not in the network allowlist")) <
		buf_len(&r.fields));
	check(str_find(buf_str(&r.fields), STR("%0A")) < buf_len(&r.fields));
	got_done(&r);
	check(world_log_has(
		&w, false, "BLOCKED POST https://evil.example/cloche.Test/Echo -> 403"));
	a.host = "closed.test";
	rig_ask(&w.g, &a, &r);
	check(r.status == 200 && r.ended && got_field(&r, "Grpc-Status: 14"));
	got_done(&r);
	/* Whoever does not say that it reads trailers makes no such call. */
	a.te = false;
	rig_ask(&w.g, &a, &r);
	check(r.status == 502 && got_has(&r, "upstream_unreachable"));
	got_done(&r);
	world_stop(&w);
}

int main(void)
{
	(void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	world_h2 = true;
	run_test(test_exchange);
	run_test(test_without_a_body);
	run_test(test_interim_and_trailers);
	run_test(test_one_connection);
	run_test(test_leader_fails);
	run_test(test_bodies);
	run_test(test_announced_trailers);
	run_test(test_bidi);
	run_test(test_messages);
	run_test(test_stalled);
	run_test(test_many_stalled);
	run_test(test_held_up);
	run_test(test_broken_off);
	run_test(test_sent_again);
	run_test(test_sent_again_together);
	run_test(test_cancelled);
	run_test(test_grpc_refused);
	clock_hold();
	run_test(test_silent);
	world_ca = test_ca_free(world_ca);
	return tap_done();
}
