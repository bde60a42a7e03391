/* SPDX-License-Identifier: Apache-2.0 */
/* The broker with an origin that speaks HTTP/2. */
#include "base/clock.h"
#include "broker/test-world.h"
#include "clockwork.h"

#include <stdio.h>
#include <tap.h>
#include <unistd.h>

static void test_exchange(void)
{
	struct world w;
	struct got r;

	world_serve(&w);
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
		check(world_fetches(&w, "/hello", "hello"));
	check_int(test_origin_accepted(w.tls), 1);
	world_stop(&w);
}

static void test_without_a_body(void)
{
	static const char *const targets[] = {"/only", "/status/204", "/status/304", "/status/421"};
	static const unsigned statuses[] = {200, 204, 304, 421};
	struct world w;
	struct got r;

	world_serve(&w);
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

/* Send the body when the origin asks for it. */
static void ask_expecting(struct world *w, const char *target, struct got *ret)
{
	uint32_t id = rig_open(&w->g, &(struct ask){HTTPS, .method = "PUT", .target = target,
					      .body = NET_BODY_STREAM, .expects = true});

	*ret = (struct got){0};
	for (int i = 0; i < 200 && ret->interims == 0 && !ret->ended; i++)
		rig_collect(&w->g, id, ret, 100);
	if (ret->ended)
		return;
	rig_data(&w->g, id, "hello", 5);
	rig_end(&w->g, id);
	rig_collect(&w->g, id, ret, 20000);
}

static void test_interim_and_trailers(void)
{
	struct world w;
	struct got r;

	world_serve(&w);
	rig_ask(&w.g, &(struct ask){HTTPS, .target = "/interim"}, &r);
	check_int(r.interims, 1);
	check(r.status == 200 && r.ended);
	got_done(&r);
	ask_expecting(&w, "/sink", &r);
	check(r.interims == 1 && r.status == 200 && r.ended);
	check_str(buf_str(&r.text), "5");
	got_done(&r);
	ask_expecting(&w, "/status/417", &r);
	check(r.interims == 0 && r.status == 417 && r.ended);
	got_done(&r);
	check(world_seen(&w.tls_seen, "\nexpect: 100-continue\n"));
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

		must(chan_recv_wait(&g->net, &f, 30000) == 1);
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

	world_serve(&w);
	check(world_fetches(&w, "/bye", "hello"));
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

	world_serve(&w);
	check(world_fetches(&w, "/bye", "hello"));
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
	static char bytes[NET_REQUEST_WINDOW_MAX];
	struct world w;
	struct got r = {0};
	uint64_t sent = NET_REQUEST_WINDOW;
	uint32_t id;

	world_serve(&w);
	id = rig_open(&w.g,
		&(struct ask){HTTPS, .method = "POST", .target = "/sink", .body = NET_BODY_STREAM});
	rig_data(&w.g, id, bytes, (size_t)sent);
	while (sent < 8 * sizeof(bytes)) {
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

	world_serve(&w);
	check(world_fetches(&w, "/hello", "hello"));
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
	check(world_fetches(&w, "/hello", "hello"));
	check_int(test_origin_accepted(w.tls), 2);
	world_stop(&w);
}

static void test_broken_off(void)
{
	static const char *const targets[] = {"/reset", "/cancel"};
	struct world w;
	struct got r;

	world_serve(&w);
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
	check(world_fetches(&w, "/hello", "hello"));
	check_int(test_origin_accepted(w.tls), 2);
	world_stop(&w);
}

/* What the origin has not looked at is sent once more; also a body that went out. */
static void test_sent_again(void)
{
	struct world w;
	struct got r = {0};
	uint32_t id;

	world_serve(&w);
	check(world_fetches(&w, "/goaway", "hello"));
	check_int(test_origin_accepted(w.tls), 2);
	id = rig_open(&w.g, &(struct ask){HTTPS, .method = "POST", .target = "/refused/4",
				    .body = NET_BODY_LENGTH, .length = 5});
	rig_data(&w.g, id, "12345", 5);
	rig_end(&w.g, id);
	rig_collect(&w.g, id, &r, 5000);
	check(r.status == 200 && r.ended);
	got_done(&r);
	/* Not for ever. */
	rig_ask(&w.g, &(struct ask){HTTPS, .target = "/refused/9"}, &r);
	check_int(r.status, 502);
	check(got_has(&r, "REFUSED_STREAM"));
	got_done(&r);
	check(world_fetches(&w, "/hello?http1", "hello"));
	check(world_seen(&w.tls_seen, "GET /hello?http1 HTTP/1.1\r\n"));
	world_stop(&w);
}

/* All that an origin has not looked at share the next connection. */
static void test_sent_again_together(void)
{
	struct world w;
	unsigned resets;
	uint64_t bytes;

	world_serve(&w);
	check(world_fetches(&w, "/hello", "hello"));
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

	world_serve(&w);
	check(world_fetches(&w, "/hello", "hello"));
	ask_in_vain(&w);
	clock_pass(w.g.pid, 5 * USEC_PER_SEC);
	check(world_fetches(&w, "/hello", "hello")); /* that is a word */
	ask_in_vain(&w);
	check_int(test_origin_accepted(w.tls), 1);
	clock_pass(w.g.pid, 5 * USEC_PER_SEC + 1);
	check(world_fetches(&w, "/hello", "hello"));
	check_int(test_origin_accepted(w.tls), 2);
	check(world_fetches(&w, "/hello", "hello"));
	check_int(test_origin_accepted(w.tls), 2);
	world_stop(&w);
}

/* The room gives one up; the others stay. */
static void test_cancelled(void)
{
	struct world w;
	uint32_t id;

	world_serve(&w);
	check(world_fetches(&w, "/hello", "hello"));
	for (int i = 0; i < 30; i++) {
		id = rig_open(&w.g, &(struct ask){HTTPS, .target = "/never"});
		usleep(2000);
		must(net_send_reset(&w.g.net, id, NET_RESET_CANCELLED) == 0);
		rig_flush(&w.g);
	}
	check(world_fetches(&w, "/hello", "hello"));
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
	world_h2 = true;
	run_test(test_exchange);
	run_test(test_without_a_body);
	run_test(test_interim_and_trailers);
	run_test(test_one_connection);
	run_test(test_leader_fails);
	run_test(test_bodies);
	run_test(test_announced_trailers);
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
