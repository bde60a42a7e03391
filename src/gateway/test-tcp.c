/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that a rule passes as plain TCP: before anything is read, and only to ports that the
 * broker has named; see testing.h. */
#include "gateway/testing.h"
#include "tap.h"

#include <stdlib.h>

enum { TCP_PATIENCE_MS = 20000, TCP_MOMENT_MS = 100 };

#define GET "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"

static struct rig rig;

static void tcp_only_port(uint16_t port)
{
	uint8_t bits[NET_PORT_BYTES] = {0};

	bits[port / 8] = (uint8_t)(1U << port % 8);
	must(net_send_ports(&rig.broker, &(struct net_ports){str_make(bits, sizeof(bits))}) == 0);
	must(chan_flush_wait(&rig.broker, TCP_PATIENCE_MS) == 0);
}

/* The next frame has to be the OPEN of plain TCP. */
static uint32_t tcp_expect_open(void)
{
	struct rig_open o = rig_expect_open(&rig);
	uint32_t stream = o.m.stream;

	check(o.m.kind == NET_KIND_TUNNEL && o.m.scheme == NET_TCP);
	check(o.m.body == NET_BODY_STREAM && o.m.method.n == 0 && o.m.target.n == 0);
	check_str(o.m.host, "127.0.0.1");
	check_int(o.m.port, rig.port);
	rig_open_done(&o);
	return stream;
}

static void tcp_accept(uint32_t stream)
{
	const struct net_response m = {.stream = stream, .status = 200, .body = NET_BODY_STREAM};

	rig_head(&rig, NET_HEAD, &m, "");
}

static void tcp_expect_text(struct client *c, const char *text)
{
	struct str want = str_from(text);

	while (buf_len(&c->in) < want.n && client_read(c, TCP_PATIENCE_MS))
		continue;
	check_str(buf_str(&c->in), text);
	buf_clear(&c->in);
}

/* The server speaks first; each side ends by itself. */
static void test_both_ways(void)
{
	struct buf up = BUF_INIT(1 << 20);
	struct client c;
	uint32_t stream;

	tcp_only_port(rig.port);
	client_connect(&c, &rig);
	stream = tcp_expect_open();
	tcp_accept(stream);
	rig_data(&rig, stream, STR("220 first\r\n"));
	tcp_expect_text(&c, "220 first\r\n");
	client_send(&c, GET "and \x16\x03\x01 whatever");
	must(shutdown(c.fd, SHUT_WR) == 0);
	rig_expect_body(&rig, stream, &up, NULL);
	check_str(buf_str(&up), GET "and \x16\x03\x01 whatever");
	rig_data(&rig, stream, STR("last"));
	rig_end(&rig, stream, "");
	tcp_expect_text(&c, "last");
	check(client_expect_end(&c, TCP_PATIENCE_MS) && !c.cut);
	client_close(&c);
	buf_done(&up);
}

/* The client is told nothing that it could take for its server. */
static void test_refused(void)
{
	struct net_response m = {.status = 403, .body = NET_BODY_LENGTH, .length = 2};
	struct client c;

	client_connect(&c, &rig);
	m.stream = tcp_expect_open();
	rig_head(&rig, NET_HEAD, &m, "");
	check(client_expect_end(&c, TCP_PATIENCE_MS));
	check_int(buf_len(&c.in), 0);
	check(client_was_cut(&c));
	check_int(rig_expect_reset(&rig, m.stream), NET_RESET_CANCELLED);
	client_close(&c);
}

/* No rule is for this name: then it is what it always was. */
static void test_unlisted(void)
{
	struct response p;
	struct rig_open o;
	struct client c;

	client_connect(&c, &rig);
	client_send(&c, GET);
	rig_reset(&rig, tcp_expect_open(), NET_RESET_UNLISTED);
	o = rig_expect_open(&rig);
	check(o.m.kind == NET_KIND_HTTP && o.m.scheme == NET_HTTP);
	rig_answer(&rig, o.m.stream, "seen");
	check_int(client_response(&c, &p, 0), 200);
	response_done(&p);
	rig_open_done(&o);
	client_close(&c);
	client_connect(&c, &rig);
	client_send(&c, "SSH-2.0-x\r\n");
	rig_reset(&rig, tcp_expect_open(), NET_RESET_UNLISTED);
	check(strstr(rig_expect_event(&rig, NET_EVENT_TCP), "|SSH|"));
	check(client_expect_end(&c, TCP_PATIENCE_MS));
	client_close(&c);
}

static void test_another_port(void)
{
	struct response p;
	struct rig_open o;
	struct client c;

	tcp_only_port(rig.port == 1 ? 2 : 1);
	client_connect(&c, &rig);
	client_send(&c, GET);
	o = rig_expect_open(&rig);
	check(o.m.kind == NET_KIND_HTTP);
	rig_answer(&rig, o.m.stream, "seen");
	check_int(client_response(&c, &p, 0), 200);
	response_done(&p);
	rig_open_done(&o);
	client_close(&c);
}

/* Connections may come, and go, before the broker has said anything. */
static void test_early(void)
{
	struct client c, gone;
	struct rig_frame *f;
	uint32_t stream;

	rig_start(&rig, &(struct rig_config){.late_ports = true});
	client_connect(&c, &rig);
	client_send(&c, "what is not HTTP");
	client_connect(&gone, &rig);
	check(rig_recv(&rig, TCP_MOMENT_MS) == NULL);
	client_close(&gone);
	tcp_only_port(rig.port);
	stream = tcp_expect_open();
	tcp_accept(stream);
	while ((f = rig_recv(&rig, TCP_PATIENCE_MS)) && f->type != NET_DATA)
		free(f); /* of the other connection */
	must(f != NULL);
	check_str(str_make(f->payload + 4, f->n - 4), "what is not HTTP");
	free(f);
	client_close(&c);
	must(rig_stop(&rig));
}

static void test_malformed(void)
{
	rig_start(&rig, &(struct rig_config){.late_ports = true});
	must(net_send_ports(&rig.broker, &(struct net_ports){STR("123")}) == 0);
	must(chan_flush_wait(&rig.broker, TCP_PATIENCE_MS) == 0);
	check(rig_recv(&rig, TCP_PATIENCE_MS) == NULL); /* it has ended */
	check(!rig_stop(&rig));
}

int main(void)
{
	rig_start(&rig, &(struct rig_config){0});
	run_test(test_both_ways);
	run_test(test_refused);
	run_test(test_unlisted);
	run_test(test_another_port);
	must(rig_stop(&rig));
	run_test(test_early);
	run_test(test_malformed);
	return tap_done();
}
