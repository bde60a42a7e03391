/* SPDX-License-Identifier: Apache-2.0 */
/* What a room can take from the gateway over HTTP/2: streams, memory and time, which the test
 * moves. */
#include "clockwork.h"
#include "gateway/test-h2-room.h"
#include "tap.h"

enum { PATIENCE_MS = 20000, UNREAD = 1 << 20 /* see test_unread() */ };

/* Whatever was sent before is known to the gateway after it. */
static void exchange(void)
{
	struct rig_open o;
	struct response p;
	struct client c;

	client_connect(&c, &rig);
	client_send(&c, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
	o = rig_expect_open(&rig);
	rig_answer(&rig, o.m.stream, "ok");
	check_int(client_response(&c, &p, 0), 200);
	response_done(&p);
	rig_open_done(&o);
	client_close(&c);
}

/* Right before so much time has passed r was told nothing of this. */
static void check_may_take(struct room *r, uint64_t usec, const char *what)
{
	clock_pass(rig.pid, usec - USEC_PER_MSEC);
	exchange();
	(void)room_turn(r, 1);
	check(!r->c.ended && !has(&r->s.log, what));
	clock_pass(rig.pid, USEC_PER_MSEC);
}

static void test_slow_head(void)
{
	/* HEADERS without END_HEADERS, behind the preface and empty settings. */
	static const char head[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
				   "\0\0\0\4\0\0\0\0\0"
				   "\0\0\1\1\0\0\0\0\1\x82";
	struct client c;

	must(client_connect_tls(&c, &rig, "a.test"));
	client_send_str(&c, str_make(head, sizeof(head) - 1));
	exchange();
	clock_pass(rig.pid, 15 * USEC_PER_SEC - USEC_PER_MSEC);
	exchange();
	(void)client_read(&c, 1);
	check(!c.ended);
	clock_pass(rig.pid, USEC_PER_MSEC);
	check(strstr(rig_expect_event(&rig, NET_EVENT_MALFORMED), "head took too long"));
	check(client_expect_end(&c, PATIENCE_MS));
	client_close(&c);
}

/* A body that does not come costs its stream, and nothing to do the connection. */
static void test_slow_body(void)
{
	struct rig_open o;
	struct room r;

	room_start(&r, 65535, 1 << 20);
	room_ask(&r, &(struct ask){.method = "POST", .goes_on = true, .body = "x"});
	o = rig_expect_open(&rig);
	rig_open_done(&o);
	free(rig_recv(&rig, PATIENCE_MS));
	room_ask(&r, &(struct ask){0});
	o = rig_expect_open(&rig);
	check_may_take(&r, 30 * USEC_PER_SEC, "[1 ");
	check(room_told(&r, "[1 408 "));
	check(strstr(rig_expect_event(&rig, NET_EVENT_MALFORMED), "too slowly|"));
	check_int(rig_expect_reset(&rig, o.m.stream - 1), NET_RESET_CANCELLED);
	clock_pass(rig.pid, 5 * USEC_PER_SEC); /* for the rest of it */
	check(room_told(&r, "{1 NO_ERROR}"));
	/* The other one waits for the broker, and may do so. */
	rig_answer(&rig, o.m.stream, "late");
	check(room_told(&r, "{3 NO_ERROR}"));
	check(has(&r.s.log, "[3 200 "));
	check_may_take(&r, 75 * USEC_PER_SEC, "<goaway");
	check(room_told(&r, "<goaway NO_ERROR>"));
	check(client_expect_end(&r.c, PATIENCE_MS));
	rig_open_done(&o);
	room_stop(&r);
}

/* Who makes a call may say something now and then. */
static void test_calls_take_their_time(void)
{
	struct rig_frame *f;
	struct rig_open o;
	struct room r;

	room_start(&r, 65535, 1 << 20);
	room_ask(&r, &(struct ask){.method = "POST",
			     .goes_on = true,
			     .body = "x",
			     .fields = "content-type: application/grpc"});
	o = rig_expect_open(&rig);
	free(rig_recv(&rig, PATIENCE_MS)); /* the body so far */
	check_may_take(&r, 60 * USEC_PER_SEC, "[1 ");
	rig_answer(&rig, o.m.stream, "");
	check(room_told(&r, "{1 NO_ERROR}"));
	check(has(&r.s.log, "[1 200 "));
	rig_open_done(&o);
	room_stop(&r);
	while ((f = rig_recv(&rig, 200))) /* what is left of the call */
		free(f);
}

static void test_nothing_moves(void)
{
	struct net_response m = {.status = 200, .body = NET_BODY_STREAM};
	struct rig_open o;
	struct room r;

	room_start(&r, 65535, 1 << 20);
	room_ask(&r, &(struct ask){0});
	o = rig_expect_open(&rig);
	check_may_take(&r, 3600 * USEC_PER_SEC, "[1 ");
	check(room_told(&r, "[1 504 "));
	check_int(rig_expect_reset(&rig, o.m.stream), NET_RESET_CANCELLED);
	rig_open_done(&o);

	room_ask(&r, &(struct ask){0});
	o = rig_expect_open(&rig);
	m.stream = o.m.stream;
	rig_head(&rig, NET_HEAD, &m, NULL);
	check(room_told(&r, "[3 200 "));
	check_may_take(&r, 3600 * USEC_PER_SEC, "{3 ");
	check(room_told(&r, "{3 CANCEL}"));
	check_int(rig_expect_reset(&rig, m.stream), NET_RESET_CANCELLED);
	rig_open_done(&o);
	room_stop(&r);
}

/* A request that goes on after its answer. */
static struct leg *ask_and_answer_early(struct room *r)
{
	struct leg *l = room_ask(r, &(struct ask){.method = "POST", .goes_on = true, .body = "x"});
	struct rig_open o = rig_expect_open(&rig);
	char told[32];

	free(rig_recv(&rig, PATIENCE_MS));
	rig_answer(&rig, o.m.stream, "no");
	check_int(rig_expect_reset(&rig, o.m.stream), NET_RESET_CANCELLED);
	snprintf(told, sizeof(told), "[%u 200 ", l->id);
	check(room_told(r, told));
	rig_open_done(&o);
	return l;
}

static void send_more(struct room *r, struct leg *l, size_t n)
{
	static const char bytes[1 << 20];

	must(buf_add(&l->out, bytes, n) == 0);
	h2_wake(l->st);
	for (int i = 0; i < PATIENCE_MS && buf_len(&l->out) > 0; i++)
		(void)room_turn(r, 1);
	check(buf_len(&l->out) == 0);
	exchange();
}

static void test_answered_early(void)
{
	struct leg *l;
	struct room r;

	room_start(&r, 65535, 1 << 20);
	room_settle(&r);
	l = ask_and_answer_early(&r);
	clock_pass(rig.pid, 4 * USEC_PER_SEC);
	send_more(&r, l, 1); /* that buys more time */
	check_may_take(&r, 5 * USEC_PER_SEC, "(1 ");
	check(room_told(&r, "(1 end 2)") && room_told(&r, "{1 NO_ERROR}"));

	l = ask_and_answer_early(&r);
	for (int i = 0; i < 16; i++)
		send_more(&r, l, 1 << 20);
	(void)room_turn(&r, 1);
	check(!l->ended);
	send_more(&r, l, 1);
	check(room_told(&r, "(3 end 2)") && room_told(&r, "{3 NO_ERROR}"));
	room_stop(&r);
}

/* Those of all connections together; one more is answered at once. */
static void test_streams_of_all(void)
{
	enum { STREAMS = 1024, EACH = 100, ROOMS = STREAMS / EACH + 1 };
	static struct room r[ROOMS];
	struct room *last = &r[ROOMS - 1];
	struct rig_frame *f;
	struct rig_open o;
	struct leg *l;
	uint32_t first = 0;
	char told[32];

	for (int i = 0; i < STREAMS; i++) {
		struct room *on = &r[i / EACH];

		if (i % EACH == 0) {
			room_start(on, 65535, 1 << 20);
			room_settle(on);
		}
		room_ask(on, &(struct ask){0});
		o = rig_expect_open(&rig);
		first = first ? first : o.m.stream;
		rig_open_done(&o);
	}
	l = room_ask(last, &(struct ask){0});
	snprintf(told, sizeof(told), "[%u 503 ", l->id);
	check(room_told(last, told));
	check(rig_recv(&rig, 50) == NULL);
	rig_answer(&rig, first, "x");
	check(room_told(r, "{1 NO_ERROR}"));
	room_ask(last, &(struct ask){0});
	o = rig_expect_open(&rig);
	rig_open_done(&o);
	for (int i = 0; i < ROOMS; i++)
		room_stop(&r[i]);
	while ((f = rig_recv(&rig, 500)))
		free(f);
}

/* Answers that are complete for the broker, and that the room does not read: who has most of them
 * is cut off, and nobody else. */
static void test_unread(void)
{
	static char filler[NET_MAX_DATA];
	enum { PIECES = 3, ONE_TOO_MANY = UNREAD / (PIECES * NET_MAX_DATA) };
	struct room modest, hog;
	struct rig_open o;

	room_start(&modest, 0, 1 << 20);
	room_start(&hog, 0, 1 << 20);
	for (int i = 0; i <= ONE_TOO_MANY; i++) {
		room_ask(i == 0 ? &modest : &hog, &(struct ask){0});
		o = rig_expect_open(&rig);
		rig_head(&rig, NET_HEAD,
			&(struct net_response){
				.stream = o.m.stream, .status = 200, .body = NET_BODY_STREAM},
			"");
		for (int k = 0; k < PIECES; k++)
			rig_data(&rig, o.m.stream, str_make(filler, sizeof(filler)));
		if (i < ONE_TOO_MANY)
			rig_end(&rig, o.m.stream, "");
		rig_open_done(&o);
	}
	check(strstr(rig_expect_event(&rig, NET_EVENT_LIMIT), "answers|"));
	/* Its last answer has not ended. */
	check_int(rig_expect_reset(&rig, o.m.stream), NET_RESET_CANCELLED);
	check(client_expect_end(&hog.c, 5000));
	room_ask(&modest, &(struct ask){.method = "HEAD"});
	o = rig_expect_open(&rig);
	rig_answer(&rig, o.m.stream, "");
	check(room_told(&modest, "{3 NO_ERROR}"));
	rig_open_done(&o);
	room_stop(&modest);
	room_stop(&hog);
}

/* More exchanges than a connection may have. */
static void test_exchanges(void)
{
	struct rig_open o[3];
	struct room r;

	room_start(&r, 65535, 1 << 20);
	room_settle(&r);
	for (int i = 0; i < 2; i++) {
		room_ask(&r, &(struct ask){0});
		o[i] = rig_expect_open(&rig);
	}
	room_ask(&r, &(struct ask){0});
	check(room_told(&r, "{5 REFUSED_STREAM}"));
	rig_answer(&rig, o[0].m.stream, "x");
	check(room_told(&r, "{1 NO_ERROR}"));
	room_ask(&r, &(struct ask){0});
	o[2] = rig_expect_open(&rig);
	for (int i = 0; i < 3; i++)
		rig_open_done(&o[i]);
	room_stop(&r);
}

/* Requests that come at once, when no more may wait for the broker. */
static void test_broker_full(void)
{
	struct rig_open o;
	struct room r;

	room_start(&r, 65535, 1 << 20);
	room_settle(&r);
	room_prepare(&r, &(struct ask){0});
	room_ask(&r, &(struct ask){0});
	check(room_told(&r, "[3 503 "));
	o = rig_expect_open(&rig);
	rig_answer(&rig, o.m.stream, "x");
	check(room_told(&r, "{1 NO_ERROR}"));
	rig_open_done(&o);
	room_stop(&r);
}

static void start_with(const struct gateway_limits *limits)
{
	rig_start(&rig, &(struct rig_config){.limits = limits});
	rig.h2 = true;
}

int main(void)
{
	struct gateway_limits limits = gateway_limits_default;

	clock_hold();
	rig_start(&rig, &(struct rig_config){0});
	rig.h2 = true;
	run_test(test_slow_head);
	run_test(test_slow_body);
	run_test(test_calls_take_their_time);
	run_test(test_nothing_moves);
	run_test(test_answered_early);
	run_test(test_streams_of_all);
	check(rig_stop(&rig));
	limits.unread = UNREAD;
	start_with(&limits);
	run_test(test_unread);
	check(rig_stop(&rig));
	limits.h2_exchanges = 2;
	start_with(&limits);
	run_test(test_exchanges);
	check(rig_stop(&rig));
	limits.broker_full = 0;
	start_with(&limits);
	run_test(test_broker_full);
	check(rig_stop(&rig));
	return tap_done();
}
