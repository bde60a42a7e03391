/* SPDX-License-Identifier: Apache-2.0 */
/* What a room can and cannot take from the gateway by HTTP/2: time and memory. */
#include "gateway/test-room.h"

#include <unistd.h>

enum { UNREAD = 1 << 20 /* see test_unread() */ };

static void test_times(void)
{
	/* HEADERS without END_HEADERS, behind the preface and empty settings. */
	static const char head[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
				   "\0\0\0\4\0\0\0\0\0"
				   "\0\0\1\1\0\0\0\0\1\x82";
	struct client c;
	struct rig_open o;
	struct room r;

	must(client_connect_tls(&c, &rig, "a.test"));
	client_send_str(&c, str_make(head, sizeof(head) - 1));
	check(strstr(rig_expect_event(&rig, NET_EVENT_MALFORMED), "head took too long"));
	check(client_expect_end(&c, 2000));
	client_close(&c);

	/* A body that does not come costs its stream, and later the connection its idleness. */
	room_start(&r, 65535, 1 << 20);
	room_ask(&r, &(struct ask){.method = "POST", .goes_on = true, .body = "x"});
	room_ask(&r, &(struct ask){0});
	o = rig_expect_open(&rig);
	rig_open_done(&o);
	free(rig_recv(&rig, 1000));
	o = rig_expect_open(&rig);
	check(strstr(rig_expect_event(&rig, NET_EVENT_MALFORMED), "too slowly|"));
	check_int(rig_expect_reset(&rig, o.m.stream - 1), NET_RESET_CANCELLED);
	check(room_told(&r, "{1 NO_ERROR}"));
	check(has(&r.s.log, "[1 408 "));
	/* The other one waits for the broker, and may do so. */
	usleep(600 * 1000);
	rig_answer(&rig, o.m.stream, "late");
	check(room_told(&r, "{3 NO_ERROR}"));
	check(has(&r.s.log, "[3 200 "));
	check(room_told(&r, "<goaway NO_ERROR>"));
	check(client_expect_end(&r.c, 2000));
	rig_open_done(&o);
	room_stop(&r);
}

/* Who makes a call may say something now and then. */
static void test_calls_take_their_time(void)
{
	struct rig_open o;
	struct room r;

	room_start(&r, 65535, 1 << 20);
	room_ask(&r, &(struct ask){.method = "POST",
			     .goes_on = true,
			     .body = "x",
			     .fields = "content-type: application/grpc"});
	o = rig_expect_open(&rig);
	free(rig_recv(&rig, 1000)); /* the body so far */
	usleep(600 * 1000);
	rig_answer(&rig, o.m.stream, "");
	check(room_told(&r, "{1 NO_ERROR}"));
	check(has(&r.s.log, "[1 200 "));
	rig_open_done(&o);
	room_stop(&r);
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
		rig_end(&rig, o.m.stream, "");
		rig_open_done(&o);
	}
	check(strstr(rig_expect_event(&rig, NET_EVENT_LIMIT), "answers|"));
	check(client_expect_end(&hog.c, 5000));
	room_ask(&modest, &(struct ask){.method = "HEAD"});
	o = rig_expect_open(&rig);
	rig_answer(&rig, o.m.stream, "");
	check(room_told(&modest, "{3 NO_ERROR}"));
	rig_open_done(&o);
	room_stop(&modest);
	room_stop(&hog);
}

int main(void)
{
	struct gateway_limits limits = gateway_limits_default;
	const struct rig_config quick = {.limits = &limits};

	limits.head_usec = limits.body_window_usec = limits.idle_usec = 300 * 1000;
	limits.linger_usec = 300 * 1000;
	rig_start(&rig, &quick);
	rig.h2 = true;
	run_test(test_times);
	run_test(test_calls_take_their_time);
	check(rig_stop(&rig));
	limits = gateway_limits_default;
	limits.unread = UNREAD;
	rig_start(&rig, &quick);
	rig.h2 = true;
	run_test(test_unread);
	check(rig_stop(&rig));
	return tap_done();
}
