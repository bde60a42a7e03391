/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 through a gateway in a process of its own; see testing.h. The room's end is the same
 * engine in its other role. */
#include "gateway/test-h2-room.h"

#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

static void test_requests(void)
{
	_cleanup_(buf_donep) struct buf body = BUF_INIT(4096);
	struct rig_open o;
	struct room r;

	room_start(&r, 65535, 1 << 20);
	room_ask(&r, &(struct ask){.target = "/x?y=1",
			     .host = "A.test",
			     .fields = "X-Own: 1\ncookie: a=b",
			     .flags = H2_TE_TRAILERS});
	o = rig_expect_open(&rig);
	check_str(o.m.host, "a.test");
	check_str(o.m.method, "GET");
	check_str(o.m.target, "/x?y=1");
	check(o.m.kind == NET_KIND_HTTP && o.m.scheme == NET_HTTPS && o.m.te_trailers);
	check(o.m.body == NET_BODY_NONE && !o.m.expect_continue);
	check_int(o.m.port, rig.port);
	check_z(o.fields, "x-own: 1\ncookie: a=b\n");
	rig_answer(&rig, o.m.stream, "hello");
	check(room_told(&r, "{1 NO_ERROR}"));
	check_z(side_log(&r.s),
		"[1 200 body1=5|content-type:text/plain|content-length:5](1 end 5){1 NO_ERROR}");
	rig_open_done(&o);

	room_ask(&r, &(struct ask){.method = "POST", .body = "some", .length = 4});
	o = rig_expect_open(&rig);
	check(o.m.body == NET_BODY_LENGTH && o.m.length == 4 && !o.m.te_trailers);
	rig_expect_body(&rig, o.m.stream, &body, NULL);
	check_str(buf_str(&body), "some");
	rig_answer(&rig, o.m.stream, "");
	check(room_told(&r, "{3 NO_ERROR}"));
	rig_open_done(&o);
	room_stop(&r);
	/* How to go on is known, for those who offer the same. */
	room_start(&r, 65535, 1 << 20);
	check_int(rig.minted, 1);
	room_stop(&r);
	rig.h2 = false;
	must(client_connect_tls(&r.c, &rig, "a.test"));
	check_int(rig.minted, 2);
	check(!tls_client_is_h2(r.c.tls));
	client_close(&r.c);
	rig.h2 = true;
	room_start(&r, 65535, 1 << 20);
	check_int(rig.minted, 2);
	room_stop(&r);
}

/* Answers without a body, whatever the broker says of it. */
static void test_bodiless(void)
{
	const struct net_response last = {.status = 204};
	struct net_response m = last;
	struct rig_open o;
	struct room r;

	room_start(&r, 65535, 1 << 20);
	room_ask(&r, &(struct ask){.method = "HEAD"});
	o = rig_expect_open(&rig);
	rig_answer(&rig, o.m.stream, "not sent");
	check(room_told(&r, "{1 NO_ERROR}"));
	check_z(side_log(&r.s),
		"[1 200 body0=8|content-type:text/plain|content-length:8](1 end 0){1 NO_ERROR}");
	rig_open_done(&o);

	/* The room's side is over before the broker's: that is no reason to cancel. */
	room_ask(&r, &(struct ask){0});
	o = rig_expect_open(&rig);
	m.stream = o.m.stream;
	rig_head(&rig, NET_HEAD, &m, NULL);
	check(room_told(&r, "{3 NO_ERROR}"));
	check(rig_recv(&rig, 50) == NULL);
	rig_end(&rig, m.stream, NULL);
	rig_open_done(&o);
	room_stop(&r);
	check(rig_recv(&rig, 50) == NULL);
}

static void test_trailers_and_interim(void)
{
	_cleanup_(buf_donep) struct buf body = BUF_INIT(4096);
	_cleanup_(buf_donep) struct buf text = BUF_INIT(4096);
	_cleanup_(http_fields_donep) struct http_fields trailers = HTTP_FIELDS_INIT;
	struct net_response m = {.status = 100};
	struct rig_open o;
	struct leg *l;
	struct room r;

	must(http_fields_add(&trailers, STR("x-sum"), STR("7")) == 0);
	room_start(&r, 65535, 1 << 20);
	l = room_ask(&r, &(struct ask){.method = "POST", .goes_on = true, .flags = H2_EXPECT});
	o = rig_expect_open(&rig);
	check(o.m.body == NET_BODY_STREAM && o.m.expect_continue);
	check(!o.m.http1 && !o.m.keep_alive);
	check_z(o.fields, "");
	m.stream = o.m.stream;
	rig_head(&rig, NET_INTERIM, &m, NULL);
	m.status = 103;
	rig_head(&rig, NET_INTERIM, &m, "link: </a>\n");
	check(room_told(&r, "[1 103 body0|link:</a>]"));
	check(has(&r.s.log, "[1 100 body0]"));
	must(buf_add_str(&l->out, STR("hello")) == 0);
	must(h2_end(l->st, &trailers) == 0);
	room_say(&r);
	rig_expect_body(&rig, o.m.stream, &body, &text);
	check_str(buf_str(&body), "hello");
	check_str(buf_str(&text), "x-sum: 7\n");
	m = (struct net_response){.stream = o.m.stream, .status = 200, .body = NET_BODY_STREAM};
	rig_head(&rig, NET_HEAD, &m, NULL);
	rig_data(&rig, m.stream, STR("abc"));
	rig_end(&rig, m.stream, "grpc-status: 0\n");
	check(room_told(&r, "(1 end 3|grpc-status:0){1 NO_ERROR}"));
	rig_open_done(&o);

	/* Trailers behind a body whose length was told stay here: nobody expects them. */
	l = room_ask(
		&r, &(struct ask){.method = "POST", .goes_on = true, .body = "four", .length = 4});
	must(h2_end(l->st, &trailers) == 0);
	room_say(&r);
	o = rig_expect_open(&rig);
	buf_clear(&text);
	rig_expect_body(&rig, o.m.stream, &body, &text);
	check_str(buf_str(&text), "");
	rig_answer(&rig, o.m.stream, "");
	check(room_told(&r, "{3 NO_ERROR}"));
	rig_open_done(&o);
	room_stop(&r);
}

static void test_many_at_once(void)
{
	struct rig_open o[H2_STREAMS_MAX];
	struct room r;
	size_t n = 0;

	room_start(&r, 65535, 1 << 20);
	room_settle(&r);
	while (h2_streams_free(r.s.h) > 0) {
		room_ask(&r, &(struct ask){0});
		o[n++] = rig_expect_open(&rig);
	}
	check_int(n, H2_STREAMS_MAX);
	/* In any order. */
	while (n-- > 0) {
		rig_answer(&rig, o[n].m.stream, "x");
		rig_open_done(&o[n]);
	}
	check(room_told(&r, "{199 NO_ERROR}") && room_told(&r, "{1 NO_ERROR}"));
	room_stop(&r);
}

/* One connection, one host (INV-ONE-HOST); and what is refused by itself. */
static void test_refused(void)
{
	static const struct {
		struct ask ask;
		enum net_event_kind event;
		unsigned status;
	} all[] = {
		{{.host = "b.test"}, NET_EVENT_MISMATCH, 421},
		{{.host = "127.0.0.1"}, NET_EVENT_MISMATCH, 421},
		{{.host = "127.1"}, NET_EVENT_MALFORMED, 400},
		{{.fields = "expect: 200-ok"}, NET_EVENT_MALFORMED, 417},
		{{.host = "b.test", .method = "POST", .goes_on = true, .body = "x"},
			NET_EVENT_MISMATCH, 421},
		{{.host = "b.test", .method = "HEAD"}, NET_EVENT_MISMATCH, 421},
	};
	char text[64];
	struct room r;

	room_start(&r, 65535, 1 << 20);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct leg *l = room_ask(&r, &all[i].ask);

		(void)rig_expect_event(&rig, all[i].event);
		if (all[i].ask.goes_on)
			must(h2_end(l->st, NULL) == 0);
		snprintf(text, sizeof(text), "{%u NO_ERROR}", l->id);
		check(room_told(&r, text));
		snprintf(text, sizeof(text), "[%u %u ", l->id, all[i].status);
		check(has(&r.s.log, text));
		check(l->received > 0 || str_eq(str_from(all[i].ask.method), STR("HEAD")));
	}
	check(rig_recv(&rig, 50) == NULL);
	room_stop(&r);
}

static void test_resets(void)
{
	struct net_response m = {.status = 200, .body = NET_BODY_STREAM};
	struct rig_open o;
	struct leg *l;
	struct room r;

	room_start(&r, 65535, 1 << 20);
	l = room_ask(&r, &(struct ask){.method = "POST", .goes_on = true});
	o = rig_expect_open(&rig);
	h2_reset(l->st, H2_CANCEL);
	room_say(&r);
	check_int(rig_expect_reset(&rig, o.m.stream), NET_RESET_CANCELLED);
	rig_open_done(&o);

	/* Before the head there is an answer; after it what came goes out, and then the reset. */
	room_ask(&r, &(struct ask){0});
	o = rig_expect_open(&rig);
	rig_reset(&rig, o.m.stream, NET_RESET_UPSTREAM);
	check(room_told(&r, "{3 NO_ERROR}"));
	check(has(&r.s.log, "[3 502 "));
	rig_open_done(&o);
	room_ask(&r, &(struct ask){0});
	o = rig_expect_open(&rig);
	m.stream = o.m.stream;
	rig_head(&rig, NET_HEAD, &m, NULL);
	rig_data(&rig, m.stream, STR("part"));
	rig_reset(&rig, m.stream, NET_RESET_UPSTREAM);
	check(room_told(&r, "{5 INTERNAL_ERROR}"));
	check_int(r.s.legs[2].received, 4);
	rig_open_done(&o);

	/* Less than was announced is not an end. */
	room_ask(&r, &(struct ask){0});
	o = rig_expect_open(&rig);
	m = (struct net_response){
		.stream = o.m.stream, .status = 200, .body = NET_BODY_LENGTH, .length = 9};
	rig_head(&rig, NET_HEAD, &m, NULL);
	rig_data(&rig, m.stream, STR("part"));
	rig_end(&rig, m.stream, NULL);
	check(room_told(&r, "{7 INTERNAL_ERROR}"));
	rig_open_done(&o);

	/* An early answer: the rest of the request is nobody's. */
	l = room_ask(&r, &(struct ask){.method = "POST", .goes_on = true, .body = "x"});
	o = rig_expect_open(&rig);
	free(rig_recv(&rig, 1000));
	rig_answer(&rig, o.m.stream, "no");
	check_int(rig_expect_reset(&rig, o.m.stream), NET_RESET_CANCELLED);
	check(room_told(&r, "[9 200 "));
	/* Its end waits for that of the request, or for much more of it. */
	for (int i = 0; i < 5; i++)
		room_turn(&r, 10);
	check(!l->ended && l->received == 2);
	must(buf_add_str(&l->out, STR("more")) == 0);
	must(h2_end(l->st, NULL) == 0);
	check(room_told(&r, "{9 NO_ERROR}"));
	check(l->ended && rig_recv(&rig, 50) == NULL);
	rig_open_done(&o);

	/* The same if the answer has no body: for some clients, to be reset is to have failed. */
	l = room_ask(&r, &(struct ask){.method = "POST", .goes_on = true, .body = "x"});
	o = rig_expect_open(&rig);
	free(rig_recv(&rig, 1000));
	m = (struct net_response){.stream = o.m.stream, .status = 204};
	rig_head(&rig, NET_HEAD, &m, NULL);
	rig_end(&rig, m.stream, NULL);
	check_int(rig_expect_reset(&rig, o.m.stream), NET_RESET_CANCELLED);
	check(room_told(&r, "[11 204 "));
	for (int i = 0; i < 5; i++)
		room_turn(&r, 10);
	check(!l->ended);
	must(h2_end(l->st, NULL) == 0);
	check(room_told(&r, "{11 NO_ERROR}"));
	check(l->ended && rig_recv(&rig, 50) == NULL);
	rig_open_done(&o);

	/* The connection goes: so does everything on it. */
	room_ask(&r, &(struct ask){0});
	o = rig_expect_open(&rig);
	room_stop(&r);
	check_int(rig_expect_reset(&rig, o.m.stream), NET_RESET_CANCELLED);
	rig_open_done(&o);
}

/* An early answer, when all that the room may send has been sent: the rest of the request has to
 * get through to nowhere before the answer ends. */
static void test_early_window(void)
{
	static const char bytes[3 * NET_REQUEST_WINDOW];
	struct rig_open o;
	struct rig_frame *f;
	size_t taken = 0;
	struct leg *l;
	struct room r;

	room_start(&r, 65535, 1 << 20);
	room_settle(&r);
	l = room_ask(&r, &(struct ask){.method = "POST", .goes_on = true});
	o = rig_expect_open(&rig);
	must(buf_add(&l->out, bytes, sizeof(bytes)) == 0);
	h2_wake(l->st);
	must(h2_end(l->st, NULL) == 0);
	room_say(&r);
	while (taken < NET_REQUEST_WINDOW) {
		f = rig_recv(&rig, 1000);
		must(f && f->type == NET_DATA);
		taken += f->n - 4;
		free(f);
	}
	rig_answer(&rig, o.m.stream, "no");
	check_int(rig_expect_reset(&rig, o.m.stream), NET_RESET_CANCELLED);
	check(room_told(&r, "{1 NO_ERROR}"));
	check(l->ended && l->received == 2 && buf_len(&l->out) == 0);
	room_stop(&r);
	rig_open_done(&o);
}

/* Take what the room sends of a request until nothing more comes; return how much that was. */
static size_t take_request(struct room *r, bool *ret_end)
{
	size_t taken = 0;

	for (int quiet = 0; quiet < 10; quiet++) {
		struct rig_frame *f;

		room_turn(r, 10);
		while ((f = rig_recv(&rig, 10))) {
			taken += f->type == NET_DATA ? f->n - 4 : 0;
			*ret_end |= f->type == NET_END;
			free(f);
			quiet = 0;
		}
	}
	return taken;
}

static void give_credit(uint32_t stream, uint32_t n)
{
	must(net_send_credit(&rig.broker, stream, n) == 0);
	must(chan_flush_wait(&rig.broker, 30000) == 0);
}

/* The broker gives more credit than it has taken: the room may have more under way, and all of its
 * request gets through. */
static void test_window_grows(void)
{
	static const char bytes[4 * NET_REQUEST_WINDOW];
	struct rig_open o;
	bool end = false;
	struct leg *l;
	struct room r;

	room_start(&r, 65535, 1 << 20);
	room_settle(&r);
	l = room_ask(&r, &(struct ask){.method = "POST", .goes_on = true});
	o = rig_expect_open(&rig);
	must(buf_add(&l->out, bytes, sizeof(bytes)) == 0);
	h2_wake(l->st);
	must(h2_end(l->st, NULL) == 0);
	check_int(take_request(&r, &end), NET_REQUEST_WINDOW);
	/* A quarter was taken, and the window is twice as large. */
	give_credit(o.m.stream, NET_REQUEST_WINDOW / 4 + NET_REQUEST_WINDOW);
	check_int(take_request(&r, &end), NET_REQUEST_WINDOW / 4 + NET_REQUEST_WINDOW);
	give_credit(o.m.stream, NET_REQUEST_WINDOW / 2);
	check_int(take_request(&r, &end), NET_REQUEST_WINDOW / 2);
	check(!end);
	give_credit(o.m.stream, NET_REQUEST_WINDOW_MAX);
	check_int(take_request(&r, &end), sizeof(bytes) - 11 * NET_REQUEST_WINDOW / 4);
	check(end);
	rig_answer(&rig, o.m.stream, "done");
	check(room_told(&r, "{1 NO_ERROR}"));
	check(l->received == 4);
	room_stop(&r);
	rig_open_done(&o);
}

static void put_window(struct room *r, struct leg *l)
{
	static const char bytes[NET_REQUEST_WINDOW];

	must(buf_add(&l->out, bytes, sizeof(bytes)) == 0);
	h2_wake(l->st);
	room_say(r);
}

/* However many uploads stall, another one on their connection goes on. */
static void test_stalled_uploads(void)
{
	enum { STALLED = 90, WINDOWS = 100 };
	size_t sent = 0;
	struct rig_frame *f;
	struct rig_open o;
	struct leg *l;
	struct room r;

	room_start(&r, 65535, 1 << 20);
	room_settle(&r);
	for (unsigned i = 0; i <= STALLED; i++) {
		l = room_ask(&r, &(struct ask){.method = "POST", .goes_on = true});
		o = rig_expect_open(&rig);
		put_window(&r, l);
		for (size_t taken = 0; taken < NET_REQUEST_WINDOW;) {
			f = rig_recv(&rig, 1000);
			must(f && f->type == NET_DATA);
			taken += f->n - 4;
			free(f);
		}
		if (i < STALLED)
			rig_open_done(&o);
	}
	for (unsigned i = 0; i < WINDOWS; i++) {
		size_t taken = 0;

		give_credit(o.m.stream, NET_REQUEST_WINDOW);
		put_window(&r, l);
		for (int quiet = 0; taken < NET_REQUEST_WINDOW && quiet < 20; quiet++) {
			room_turn(&r, 10);
			while (taken < NET_REQUEST_WINDOW && (f = rig_recv(&rig, 10))) {
				taken += f->n - 4;
				free(f);
				quiet = 0;
			}
		}
		sent += taken;
		if (taken < NET_REQUEST_WINDOW)
			break;
	}
	check_int(sent, (size_t)WINDOWS * NET_REQUEST_WINDOW);
	rig_open_done(&o);
	room_stop(&r);
	while ((f = rig_recv(&rig, 200))) /* each is reset */
		free(f);
}

/* The broker's window is the room's, and the other way round. */
static void test_flow(void)
{
	_cleanup_(buf_donep) struct buf big = BUF_INIT(1 << 20);
	struct net_response m = {.status = 200, .body = NET_BODY_STREAM};
	size_t taken = 0, sent = 0;
	struct rig_open o;
	struct rig_frame *f;
	struct leg *l;
	struct room r;

	must(buf_add(&big, (char[64 * 1024]){0}, 64 * 1024) == 0);
	room_start(&r, 65535, 1 << 20);
	room_settle(&r);
	l = room_ask(&r, &(struct ask){.method = "POST", .goes_on = true});
	o = rig_expect_open(&rig);
	for (int i = 0; i < 8; i++)
		must(buf_add_str(&l->out, buf_str(&big)) == 0);
	h2_wake(l->st);
	room_say(&r);
	while ((f = rig_recv(&rig, 200))) {
		check(f->type == NET_DATA);
		taken += f->n - 4;
		free(f);
		room_turn(&r, 1);
	}
	check(taken == NET_REQUEST_WINDOW);
	must(net_send_credit(&rig.broker, o.m.stream, NET_REQUEST_WINDOW / 2) == 0);
	must(chan_flush_wait(&rig.broker, 30000) == 0);
	for (int i = 0; i < 40 && sent < NET_REQUEST_WINDOW / 2; i++) {
		room_turn(&r, 10);
		while ((f = rig_recv(&rig, 10))) {
			sent += f->n - 4;
			free(f);
		}
	}
	check(sent == NET_REQUEST_WINDOW / 2);

	/* A room that gives no window keeps the broker's credit back. */
	m.stream = o.m.stream;
	rig_head(&rig, NET_HEAD, &m, NULL);
	r.s.keeps = true;
	rig_data(&rig, m.stream, str_prefix(buf_str(&big), 32 * 1024));
	rig_data(&rig, m.stream, str_prefix(buf_str(&big), 32 * 1024));
	rig_data(&rig, m.stream, str_prefix(buf_str(&big), 32 * 1024));
	for (int i = 0; i < 20; i++)
		room_turn(&r, 10);
	check_int(l->received, 65535);
	sent = 0;
	while ((f = rig_recv(&rig, 50))) {
		struct net_credit credit;

		check(f->type == NET_CREDIT);
		must(net_get_credit(str_make(f->payload, f->n), &credit));
		sent += credit.bytes;
		free(f);
	}
	check(sent <= 65535);
	rig_open_done(&o);
	room_stop(&r);
	check_int(rig_expect_reset(&rig, m.stream), NET_RESET_CANCELLED);
}

/* The bytes of a client are cut anywhere. */
static void test_pieces(void)
{
	struct room r;

	for (size_t step = 1; step < 40; step += 7) {
		struct rig_open o;

		room_start(&r, 65535, 1 << 20);
		room_prepare(&r, &(struct ask){0});
		must(h2_output(r.s.h, &r.s.out, OUT_ENOUGH) == 0);
		while (buf_len(&r.s.out) > 0) {
			struct str piece = str_prefix(buf_str(&r.s.out), step);

			client_send_str(&r.c, piece);
			buf_consume(&r.s.out, piece.n);
		}
		o = rig_expect_open(&rig);
		rig_answer(&rig, o.m.stream, "ok");
		check(room_told(&r, "{1 NO_ERROR}"));
		rig_open_done(&o);
		room_stop(&r);
	}
}

static void test_idle_connections_are_small(void)
{
	enum { N = 60 };
	static struct room r[N];
	size_t before = 0, each;

	for (int i = 0; i < N; i++) {
		struct rig_open o;

		if (i == 1)
			before = rig_memory(&rig);
		room_start(&r[i], 65535, 1 << 20);
		room_ask(
			&r[i], &(struct ask){.fields = "cookie: some=cookie\nx-field: some value"});
		o = rig_expect_open(&rig);
		rig_answer(&rig, o.m.stream, "hello");
		check(room_told(&r[i], "{1 NO_ERROR}"));
		rig_open_done(&o);
	}
	each = (rig_memory(&rig) - before) / (N - 1);
	printf("# an idle HTTP/2 connection takes %zu bytes\n", each);
#ifndef SANITIZED
	check(each < 50 * 1024);
#endif
	for (int i = 0; i < N; i++)
		room_stop(&r[i]);
}

/* What is no HTTP/2, and what is too much of it, is logged and ends the connection. */
static void test_hostile(void)
{
	/* Acknowledged already: our own client would take many answers at once for a flood. */
	static const char ping[] = "\0\0\x08\6\1\0\0\0\0"
				   "12345678";
	struct client c;
	struct room r;

	must(client_connect_tls(&c, &rig, "a.test"));
	client_send(&c, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
	check(strstr(rig_expect_event(&rig, NET_EVENT_MALFORMED), "a.test|") != NULL);
	check(client_expect_end(&c, 2000));
	client_close(&c);

	room_start(&r, 65535, 1 << 20);
	room_say(&r);
	for (int i = 0; i < 8000; i++)
		if (client_send_some(&r.c, str_make(ping, sizeof(ping) - 1)) == 0)
			usleep(100);
	check(strstr(rig_expect_event(&rig, NET_EVENT_LIMIT), "http/2|") != NULL);
	check(room_told(&r, "<goaway ENHANCE_YOUR_CALM>"));
	check(client_expect_end(&r.c, 2000));
	room_stop(&r);
}

int main(void)
{
	static const struct rig_config config = {0};

	rig_start(&rig, &config);
	rig.h2 = true;
	run_test(test_requests);
	run_test(test_bodiless);
	run_test(test_trailers_and_interim);
	run_test(test_many_at_once);
	run_test(test_refused);
	run_test(test_resets);
	run_test(test_early_window);
	run_test(test_flow);
	run_test(test_window_grows);
	run_test(test_stalled_uploads);
	run_test(test_pieces);
	run_test(test_idle_connections_are_small);
	run_test(test_hostile);
	check(rig_stop(&rig));
	return tap_done();
}
