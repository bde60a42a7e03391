/* SPDX-License-Identifier: Apache-2.0 */
/* WebSockets and tunnels as a gateway asks for them, also one that has been taken over. */
#include "broker/testing.h"
#include "http/ws.h"
#include "tls/testing.h"

#include <stdio.h>
#include <sys/wait.h>
#include <tap.h>
#include <unistd.h>

#define BYTES(literal) literal, sizeof(literal) - 1
/* RFC 6455 5.7. */
#define HELLO_MASKED "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"

static struct test_ca *ca;

struct origin {
	bool refuses; /* answers 200 and no 101 */
	bool closes;  /* sends a close frame first */
	struct buf head, rest;
};

static size_t end_of_head(const struct buf *b)
{
	return str_find(buf_str(b), STR("\r\n\r\n"));
}

static void take(struct test_conn *c, struct buf *to, bool head)
{
	char bytes[4096];
	long n = 1;

	while (n > 0 && !(head && end_of_head(to) < buf_len(to))) {
		n = test_conn_read(c, bytes, sizeof(bytes));
		if (n > 0)
			test_need(buf_add(to, bytes, (size_t)n) == 0);
	}
}

/* What came behind the head stands in o->rest when the connection has ended. */
static void serve(struct test_conn *c, void *arg)
{
	struct origin *o = arg;
	char accept[WS_ACCEPT_LEN + 1], answer[256];
	size_t key, end;

	take(c, &o->head, true);
	end = end_of_head(&o->head) + 4;
	test_need(buf_add_str(&o->rest, str_from_index(buf_str(&o->head), end)) == 0);
	key = str_find(buf_str(&o->head), STR("Sec-WebSocket-Key: ")) + 19;
	ws_accept(str_prefix(str_from_index(buf_str(&o->head), key), WS_KEY_LEN), accept);
	snprintf(answer, sizeof(answer),
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
		"Connection: upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
		accept);
	test_conn_write_z(
		c, o->refuses ? "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno" : answer);
	if (o->closes)
		test_conn_write(c, BYTES("\x88\x02\x03\xe8"));
	take(c, &o->rest, false);
}

/* A plain one: answers what came when the other side has ended. */
static void serve_tunnel(struct test_conn *c, void *arg)
{
	struct origin *o = arg;

	take(c, &o->rest, false);
	test_conn_write_z(c, "after the end");
}

struct setting {
	struct rig g;
	struct origin o;
	struct test_origin *server;
};

static void start(struct setting *s, bool tunnel)
{
	const struct test_cert cert = {.ca = ca, .dns = "ws.test"};
	struct test_origin_config config = {.cert = tunnel ? NULL : &cert,
		.serve = tunnel ? serve_tunnel : serve,
		.arg = &s->o};
	struct buf pem = BUF_INIT(8192);

	s->o.head = s->o.rest = BUF_INIT(1 << 20);
	rig_start(&s->g);
	s->server = test_origin_start(&config);
	test_ca_add_pem(ca, &pem);
	must(chan_send(&s->g.conf, NETCONF_UPSTREAM_CA, buf_str(&pem), NULL, 0) == 0);
	buf_done(&pem);
	rig_allow(&s->g, "url_prefixes:\n  - host: ws.test\n  - host: pinned.test\n"
			 "    tunnel: true\n");
	rig_connect_to(&s->g, tunnel ? "pinned.test" : "ws.test", 443, test_origin_port(s->server));
	rig_serve(&s->g);
}

/* Also waits for the origin, so that what it has seen may be looked at. */
static void stop(struct setting *s)
{
	int status = rig_stop(&s->g);

	must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	test_origin_stop(s->server);
}

static void done(struct setting *s)
{
	buf_done(&s->o.head);
	buf_done(&s->o.rest);
}

static void forget(struct got *r)
{
	got_done(r);
	*r = (struct got){0};
}

static uint32_t open_websocket(struct rig *g, bool more)
{
	return rig_open(g, &(struct ask){.kind = NET_KIND_WEBSOCKET,
				   .scheme = NET_HTTPS,
				   .host = "ws.test",
				   .target = "/ws",
				   .body = NET_BODY_STREAM,
				   .more = more});
}

/* The room's mask does not reach the origin, what it masks does. */
static void test_frames_are_written_anew(void)
{
	struct setting s = {0};
	struct ws_reader r = ws_reader(WS_FROM_CLIENT);
	struct str in, piece;
	struct got got = {0};
	uint32_t id;

	start(&s, false);
	id = open_websocket(&s.g, false);
	rig_collect(&s.g, id, &got, 500);
	check_int(got.status, 101);
	check(!got.ended && !got.reset);
	forget(&got);
	rig_data(&s.g, id,
		BYTES(HELLO_MASKED "\x88\x80"
				   "mask"));
	rig_end(&s.g, id);
	rig_collect(&s.g, id, &got, 200);
	stop(&s);
	forget(&got);
	check_int(buf_len(&s.o.rest), sizeof(HELLO_MASKED) - 1 + 6);
	check(str_find(buf_str(&s.o.rest), STR("\x37\xfa\x21\x3d")) == buf_len(&s.o.rest));
	in = buf_str(&s.o.rest);
	must(ws_read(&r, &in, &piece) == WS_HEAD && r.frame.length == 5);
	must(ws_read(&r, &in, &piece) == WS_DATA);
	ws_mask((char *)(uintptr_t)piece.p, piece.n, r.frame.mask, 0);
	check_str(piece, "Hello");
	done(&s);
}

/* Case 12: nothing that is sent ahead goes to an origin that has not switched. */
static void test_nothing_before_a_101(void)
{
	struct setting s = {.o = {.refuses = true}};
	struct got got = {0};
	uint32_t id;

	start(&s, false);
	id = open_websocket(&s.g, true);
	rig_data(&s.g, id, BYTES(HELLO_MASKED));
	rig_collect(&s.g, id, &got, 500);
	check_int(got.status, 200);
	check(got.ended && !got.close && got_has(&got, "no"));
	stop(&s);
	forget(&got);
	check_int(buf_len(&s.o.rest), 0);
	done(&s);
}

/* Frames that a whole gateway does not send. */
static void test_broken_frames(void)
{
	struct setting s = {0};
	struct got got = {0};
	uint32_t id;

	start(&s, false);
	id = open_websocket(&s.g, false);
	rig_collect(&s.g, id, &got, 500);
	check_int(got.status, 101);
	forget(&got);
	rig_data(&s.g, id,
		BYTES("\x81\x05"
		      "naked"));
	rig_collect(&s.g, id, &got, 2000);
	check(got.reset && !got.gone);
	stop(&s);
	forget(&got);
	check_int(buf_len(&s.o.rest), 0);
	done(&s);
}

/* The close frame stands in a record of its own behind the 101, and is not waited with. */
static void test_close_at_once(void)
{
	struct setting s = {.o = {.closes = true}};
	struct got got = {0};
	uint32_t id;

	start(&s, false);
	id = open_websocket(&s.g, false);
	rig_collect(&s.g, id, &got, 500);
	check_int(got.status, 101);
	check_int(got.bytes, 4);
	check(!got.ended);
	forget(&got);
	rig_data(&s.g, id, BYTES("\x88\x82\0\0\0\0\x03\xe8"));
	rig_end(&s.g, id);
	rig_collect(&s.g, id, &got, 2000);
	check(got.ended && !got.reset);
	stop(&s);
	forget(&got);
	check_int(buf_len(&s.o.rest), 8);
	done(&s);
}

static uint32_t open_tunnel(struct rig *g, const char *host)
{
	return rig_open(g, &(struct ask){.kind = NET_KIND_TUNNEL,
				   .scheme = NET_HTTPS,
				   .host = host,
				   .method = "",
				   .target = "",
				   .body = NET_BODY_STREAM});
}

static void test_tunnel_ends_each_side(void)
{
	struct setting s = {0};
	struct got got = {0};
	uint32_t id;
	char *log;

	start(&s, true);
	id = open_tunnel(&s.g, "pinned.test");
	rig_data(&s.g, id, BYTES("anything\0at all"));
	rig_collect(&s.g, id, &got, 300);
	check_int(got.status, 200);
	check(!got.ended && got.bytes == 0);
	forget(&got);
	rig_end(&s.g, id);
	rig_collect(&s.g, id, &got, 2000);
	check(got.ended && got_has(&got, "after the end"));
	log = rig_log(&s.g, false);
	check(strstr(log, "ALLOWED CONNECT pinned.test:443 -> 200 [tunnel]\n") != NULL);
	free(log);
	stop(&s);
	forget(&got);
	check(str_eq(buf_str(&s.o.rest), str_make(BYTES("anything\0at all"))));
	done(&s);
}

/* Policy is asked whatever the gateway thinks. */
static void test_tunnel_refused(void)
{
	struct setting s = {0};
	struct got got = {0};
	uint32_t id;

	start(&s, true);
	id = open_tunnel(&s.g, "ws.test");
	rig_collect(&s.g, id, &got, 1000);
	check(got.status == 403 && got.ended);
	forget(&got);
	stop(&s);
	check_int(buf_len(&s.o.rest), 0);
	done(&s);
}

/* --- plain TCP --- */

static uint32_t open_tcp(struct rig *g, const char *host, uint16_t port)
{
	return rig_open(g, &(struct ask){.kind = NET_KIND_TUNNEL,
				   .scheme = NET_TCP,
				   .host = host,
				   .port = port,
				   .method = "",
				   .target = "",
				   .body = NET_BODY_STREAM});
}

/* Speaks first. */
static void serve_first(struct test_conn *c, void *arg)
{
	test_conn_write_z(c, "220 first\n");
	serve_tunnel(c, arg);
}

static void check_tcp_log(struct rig *g)
{
	char *log = rig_log(g, false);

	check(strstr(log, "ALLOWED CONNECT db.test:5432 -> 200 [tcp: 15/23 bytes]\n"));
	check(!strstr(log, "other.test"));
	check(strstr(log, "BLOCKED CONNECT shut.test:5432 -> 403"));
	free(log);
}

static void test_tcp(void)
{
	struct origin o = {.rest = BUF_INIT(1 << 20)};
	struct test_origin_config config = {.serve = serve_first, .arg = &o};
	struct test_origin *server;
	struct got got = {0};
	struct rig g;
	uint32_t id;

	rig_start(&g);
	server = test_origin_start(&config);
	must(chan_send(&g.conf, NETCONF_ALLOW, STR("tcp://db.test:5432"), NULL, 0) == 0);
	must(chan_send(&g.conf, NETCONF_ALLOW, STR("tcp://shut.test:5432"), NULL, 0) == 0);
	must(chan_send(&g.conf, NETCONF_ALLOW, STR("!shut.test"), NULL, 0) == 0);
	rig_connect_to(&g, "db.test", 5432, test_origin_port(server));
	rig_serve(&g);
	id = open_tcp(&g, "db.test", 5432);
	rig_collect(&g, id, &got, 300);
	check_int(got.status, 200);
	check(!got.ended && got_has(&got, "220 first\n"));
	forget(&got);
	rig_data(&g, id, BYTES("anything\0at all"));
	rig_end(&g, id);
	rig_collect(&g, id, &got, 2000);
	check(got.ended && got_has(&got, "after the end"));
	forget(&got);
	/* Not named: it may be something else, so nothing is logged. */
	for (int i = 0; i < 2; i++) {
		id = open_tcp(&g, i ? "db.test" : "other.test", i ? 22 : 5432);
		rig_collect(&g, id, &got, 2000);
		check(got.reset && got.status == 0);
		forget(&got);
	}
	id = open_tcp(&g, "shut.test", 5432);
	rig_collect(&g, id, &got, 2000);
	check(got.status == 403 && got.ended);
	forget(&got);
	check_tcp_log(&g);
	check(rig_stop(&g) == 0);
	test_origin_stop(server);
	check(str_eq(buf_str(&o.rest), str_make(BYTES("anything\0at all"))));
	buf_done(&o.rest);
}

/* INV-ADDRESS-CHECKED holds for it as for a request. */
static void test_tcp_addresses(void)
{
	struct origin o = {.rest = BUF_INIT(1 << 20)};
	struct test_origin *server;
	struct got got = {0};
	struct rig g;
	char yaml[256], line[128], *log;
	uint16_t port;
	uint32_t id;

	rig_start(&g);
	server = test_origin_start(&(struct test_origin_config){.serve = serve_first, .arg = &o});
	port = test_origin_port(server);
	snprintf(yaml, sizeof(yaml),
		"url_prefixes:\n"
		"- {host: inner.test, schemes: [tcp], ports: [%u]}\n"
		"- {host: open.test, schemes: [tcp], ports: [%u], allow_private: true}\n",
		port, port);
	rig_allow(&g, yaml);
	rig_serve(&g);
	rig_hosts(&g, "127.0.0.1 inner.test open.test\n");
	rig_collect(&g, open_tcp(&g, "inner.test", port), &got, 2000);
	check_int(got.status, 403);
	forget(&got);
	id = open_tcp(&g, "open.test", port);
	rig_end(&g, id);
	rig_collect(&g, id, &got, 2000);
	check(got.status == 200 && got_has(&got, "220 first\n"));
	forget(&got);
	log = rig_log(&g, false);
	snprintf(line, sizeof(line),
		"BLOCKED CONNECT inner.test:%u -> 403 (inner.test resolves to ", port);
	check(strstr(log, line));
	free(log);
	check(rig_stop(&g) == 0);
	test_origin_stop(server);
	buf_done(&o.rest);
}

/* Requests never come as plain TCP: that ends the network. */
static void test_tcp_is_no_request(void)
{
	struct rig g;

	rig_start(&g);
	rig_allow(&g, "domains: [db.test]\n");
	rig_serve(&g);
	(void)rig_open(
		&g, &(struct ask){.scheme = NET_TCP, .host = "db.test", .port = 80, .target = "/"});
	check(rig_ended(&g));
	(void)rig_stop(&g);
}

int main(void)
{
	ca = test_ca_new("Test root");
	run_test(test_frames_are_written_anew);
	run_test(test_nothing_before_a_101);
	run_test(test_broken_frames);
	run_test(test_close_at_once);
	run_test(test_tunnel_ends_each_side);
	run_test(test_tunnel_refused);
	run_test(test_tcp);
	run_test(test_tcp_addresses);
	run_test(test_tcp_is_no_request);
	test_ca_free(ca);
	return tap_done();
}
