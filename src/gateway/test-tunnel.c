/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that become something else than HTTP; see testing.h. */
#include "base/clock.h"
#include "clockwork.h"
#include "gateway/testing.h"
#include "http/ws.h"
#include "tap.h"

#include <unistd.h>

static struct rig rig;

#define UPGRADE                                                                                    \
	"GET /ws HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"        \
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
/* RFC 6455 5.7. */
#define HELLO_MASKED "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"
#define HELLO "\x81\x05Hello"
#define BYTES(literal) str_make(literal, sizeof(literal) - 1)

static void answer_101(uint32_t stream)
{
	const struct net_response m = {.stream = stream, .status = 101, .body = NET_BODY_STREAM};

	rig_head(&rig, NET_HEAD, &m, "Sec-WebSocket-Protocol: chat\nSec-WebSocket-Accept: wrong\n");
}

/* Asks, answers 101 and reads that. */
static uint32_t open_websocket(struct client *c)
{
	struct rig_open o;
	struct response p;
	uint32_t stream;

	must(client_connect_tls(c, &rig, "a.test"));
	client_send(c, UPGRADE);
	o = rig_expect_open(&rig);
	check(o.m.kind == NET_KIND_WEBSOCKET && o.m.body == NET_BODY_STREAM);
	stream = o.m.stream;
	answer_101(stream);
	check_int(client_response(c, &p, H1_UPGRADE_ASKED), 101);
	check_str(http_fields_get(&p.head.fields, STR("Upgrade")), "websocket");
	check_str(http_fields_get(&p.head.fields, STR("Sec-WebSocket-Accept")),
		"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
	check_str(http_fields_get(&p.head.fields, STR("Sec-WebSocket-Protocol")), "chat");
	response_done(&p);
	rig_open_done(&o);
	return stream;
}

/* The next frame has to be DATA of stream with these bytes. */
static void expect_data(uint32_t stream, struct str want)
{
	struct rig_frame *f = rig_recv(&rig, 5000);
	struct str bytes;
	uint32_t id;

	must(f && f->type == NET_DATA && net_get_data(str_make(f->payload, f->n), &id, &bytes));
	check_int(id, stream);
	check(str_eq(bytes, want));
	free(f);
}

static void expect_end(uint32_t stream)
{
	struct rig_frame *f = rig_recv(&rig, 5000);
	struct net_trailers m;
	struct wire_in fields;

	must(f && f->type == NET_END && net_get_trailers(str_make(f->payload, f->n), &m, &fields));
	check_int(m.stream, stream);
	free(f);
}

static void expect_bytes(struct client *c, struct str want)
{
	while (buf_len(&c->in) < want.n && client_read(c, 5000))
		;
	check(str_eq(str_prefix(buf_str(&c->in), want.n), want));
	buf_consume(&c->in, MIN(want.n, buf_len(&c->in)));
}

static void test_frames_both_ways(void)
{
	struct client c;
	uint32_t stream = open_websocket(&c);

	client_send_str(&c, BYTES(HELLO_MASKED));
	expect_data(stream, BYTES(HELLO_MASKED));
	rig_data(&rig, stream, BYTES(HELLO));
	expect_bytes(&c, BYTES(HELLO));
	/* A frame in pieces goes on in pieces; a control frame as a whole. */
	client_send_str(&c, BYTES("\x81\x85"
				  "mask"
				  "ab"));
	expect_data(stream, BYTES("\x81\x85"
				  "mask"
				  "ab"));
	client_send_str(&c, BYTES("cde\x89\x82"
				  "kkkk"
				  "p"));
	expect_data(stream, BYTES("cde"));
	client_send_str(&c, BYTES("q"));
	expect_data(stream, BYTES("\x89\x82"
				  "kkkk"
				  "pq"));
	/* The closing handshake. */
	client_send_str(&c, BYTES("\x88\x82"
				  "\0\0\0\0"
				  "\x03\xe8"
				  "behind it"));
	expect_data(stream, BYTES("\x88\x82"
				  "\0\0\0\0"
				  "\x03\xe8"));
	expect_end(stream);
	rig_data(&rig, stream, BYTES("\x88\x02\x03\xe8"));
	rig_end(&rig, stream, "");
	expect_bytes(&c, BYTES("\x88\x02\x03\xe8"));
	check(client_expect_end(&c, 2000));
	check(!c.cut);
	client_close(&c);
}

/* Case 12: only a 101 makes a tunnel; what was sent ahead is then frames, else a request. */
static void test_bytes_ahead(void)
{
	struct client c;
	struct response p;
	struct rig_open o;
	uint32_t stream;

	client_connect(&c, &rig);
	client_send(&c, UPGRADE "GET /hidden HTTP/1.1\r\nHost: b.test\r\n\r\n");
	o = rig_expect_open(&rig);
	check_z(o.fields, "Sec-WebSocket-Version: 13\n"
			  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n");
	stream = o.m.stream;
	check(rig_recv(&rig, 100) == NULL);
	rig_answer(&rig, stream, "no");
	rig_open_done(&o);
	check_int(client_response(&c, &p, 0), 200);
	response_done(&p);
	expect_end(stream);
	o = rig_expect_open(&rig);
	check_str(o.m.host, "b.test");
	check_str(o.m.target, "/hidden");
	check(o.m.kind == NET_KIND_HTTP);
	rig_answer(&rig, o.m.stream, "judged");
	rig_open_done(&o);
	check_int(client_response(&c, &p, 0), 200);
	response_done(&p);
	client_close(&c);

	client_connect(&c, &rig);
	client_send_str(&c, BYTES(UPGRADE HELLO_MASKED));
	o = rig_expect_open(&rig);
	stream = o.m.stream;
	check(rig_recv(&rig, 100) == NULL);
	answer_101(stream);
	rig_open_done(&o);
	expect_data(stream, BYTES(HELLO_MASKED));
	client_close(&c);
	check_int(rig_expect_reset(&rig, stream), NET_RESET_CANCELLED);
}

static void expect_broken(struct str bytes, struct str judged, const char *why, unsigned code)
{
	struct client c;
	uint32_t stream = open_websocket(&c);
	char close[4], event[128];

	client_send_str(&c, bytes);
	if (judged.n > 0)
		expect_data(stream, judged);
	snprintf(event, sizeof(event), "a.test|%s||0", why);
	check_z(rig_expect_event(&rig, NET_EVENT_MALFORMED), event);
	check_int(rig_expect_reset(&rig, stream), NET_RESET_MALFORMED);
	expect_bytes(&c, str_make(close, ws_write_close(close, (uint16_t)code)));
	check(client_expect_end(&c, 7000));
	client_close(&c);
}

static void test_broken_frames(void)
{
	expect_broken(BYTES(HELLO), STR(""), ws_error_text(WS_E_UNMASKED), 1002);
	expect_broken(BYTES("\xc1\x80"
			    "mask"),
		STR(""), ws_error_text(WS_E_RESERVED), 1002);
	expect_broken(BYTES(HELLO_MASKED "\x89\xfe\x00\x7e"), BYTES(HELLO_MASKED),
		ws_error_text(WS_E_CONTROL), 1002);
	expect_broken(BYTES("\x82\xff\0\0\0\0\x01\0\0\x01"
			    "mask"),
		STR(""), ws_error_text(WS_E_FRAME_SIZE), 1009);
}

/* No frame of ours stands within one of the origin's. */
static void test_broken_within_a_frame(void)
{
	struct client c;
	uint32_t stream = open_websocket(&c);

	rig_data(&rig, stream, BYTES("\x81\x05He"));
	expect_bytes(&c, BYTES("\x81\x05He"));
	client_send_str(&c, BYTES(HELLO));
	free(rig_recv(&rig, 5000));
	check_int(rig_expect_reset(&rig, stream), NET_RESET_MALFORMED);
	check(client_expect_end(&c, 7000));
	check(client_was_cut(&c) && buf_len(&c.in) == 0);
	client_close(&c);
}

static void test_reset_by_the_broker(void)
{
	struct client c;
	uint32_t stream = open_websocket(&c);

	rig_reset(&rig, stream, NET_RESET_UPSTREAM);
	check(client_expect_end(&c, 7000));
	check(client_was_cut(&c));
	client_close(&c);
}

/* The room sends no more than the broker takes. */
static void test_window(void)
{
	static char frame[WS_HEAD_MAX + 3 * NET_REQUEST_WINDOW];
	const struct ws_frame f = {
		.fin = true, .masked = true, .opcode = WS_BINARY, .length = 3 * NET_REQUEST_WINDOW};
	struct client c;
	uint32_t stream = open_websocket(&c);
	size_t sent = 0, total = ws_write_head(frame, &f) + 3 * NET_REQUEST_WINDOW, came = 0,
	       credit = 0;

	while (came < total) {
		struct rig_frame *got;
		struct str bytes;
		uint32_t id;

		sent += client_send_some(&c, str_make(frame + sent, total - sent));
		got = rig_recv(&rig, 200);
		if (got) {
			must(got->type == NET_DATA &&
				net_get_data(str_make(got->payload, got->n), &id, &bytes));
			came += bytes.n;
			must(came <= credit + NET_REQUEST_WINDOW);
			free(got);
			continue;
		}
		/* It has stopped near the end of the window. */
		check(came + NET_MAX_DATA > credit + NET_REQUEST_WINDOW);
		credit = came;
		must(net_send_credit(&rig.broker, stream,
			     (uint32_t)(came % NET_REQUEST_WINDOW ? came % NET_REQUEST_WINDOW
								  : NET_REQUEST_WINDOW)) == 0);
		must(chan_flush(&rig.broker) == 0);
	}
	check_int(came, total);
	client_close(&c);
	check_int(rig_expect_reset(&rig, stream), NET_RESET_CANCELLED);
}

/* Nothing moves: both sides are told. A frame of either side is worth an hour. */
static void test_idle(void)
{
	const uint64_t hour = 3600 * USEC_PER_SEC;
	struct client c;
	uint32_t stream = open_websocket(&c);
	char close[4];

	clock_pass(rig.pid, hour - USEC_PER_MSEC);
	client_send_str(&c, BYTES(HELLO_MASKED));
	expect_data(stream, BYTES(HELLO_MASKED));
	clock_pass(rig.pid, hour - USEC_PER_MSEC);
	rig_data(&rig, stream, BYTES(HELLO));
	expect_bytes(&c, BYTES(HELLO));
	clock_pass(rig.pid, hour);
	check_int(rig_expect_reset(&rig, stream), NET_RESET_LIMIT);
	expect_bytes(&c, str_make(close, ws_write_close(close, 1001)));
	check(client_expect_end(&c, 7000));
	check(!c.cut);
	client_close(&c);
}

int main(void)
{
	rig_start(&rig, &(struct rig_config){0});
	run_test(test_frames_both_ways);
	run_test(test_bytes_ahead);
	run_test(test_broken_frames);
	run_test(test_broken_within_a_frame);
	run_test(test_reset_by_the_broker);
	run_test(test_window);
	if (!rig_stop(&rig))
		return 1;
	clock_hold();
	rig_start(&rig, &(struct rig_config){0});
	run_test(test_idle);
	if (!rig_stop(&rig))
		return 1;
	return tap_done();
}
