/* SPDX-License-Identifier: Apache-2.0 */
/* How long a room may take, and for what (docs/design/limits.md): to the bound, in time that the
 * test moves; see testing.h. */
#include "base/clock.h"
#include "clockwork.h"
#include "gateway/testing.h"
#include "http/limits.h"
#include "tap.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

enum { PATIENCE_MS = 20000, MOMENT_MS = 50, BODY_MIN = 30 * 1024 };

#define SEC USEC_PER_SEC
#define HOUR (3600 * SEC)
#define GET "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"

static struct rig rig;
static const char bytes[1 << 20];

static void pass(uint64_t usec)
{
	clock_pass(rig.pid, usec);
}

static void exchange_on(struct client *c)
{
	struct rig_open o;
	struct response p;

	client_send(c, GET);
	o = rig_expect_open(&rig);
	rig_answer(&rig, o.m.stream, "ok");
	check_int(client_response(c, &p, 0), 200);
	response_done(&p);
	rig_open_done(&o);
}

/* Whatever was sent before is known to the gateway after it. */
static void exchange(void)
{
	struct client c;

	client_connect(&c, &rig);
	exchange_on(&c);
	client_close(&c);
}

/* Nothing was said to it, and it stands. */
static bool is_left_alone(struct client *c)
{
	(void)client_read(c, 1);
	return !c->ended && buf_len(&c->in) == 0;
}

/* Until right before so much time has passed c is left alone. */
static void check_may_take(struct client *c, uint64_t usec)
{
	pass(usec - USEC_PER_MSEC);
	exchange();
	check(is_left_alone(c));
	pass(USEC_PER_MSEC);
}

static void check_response(struct client *c, unsigned status)
{
	struct response p;

	check_int(client_response(c, &p, 0), status);
	response_done(&p);
	check(client_expect_end(c, PATIENCE_MS));
}

static void test_first_byte(void)
{
	struct client c;

	client_connect(&c, &rig);
	exchange();
	check_may_take(&c, 15 * SEC);
	check(client_expect_end(&c, PATIENCE_MS));
	check(strstr(rig_expect_event(&rig, NET_EVENT_TCP), "|client waits for the server"));
	client_close(&c);
}

static void test_hello(void)
{
	struct client c;

	client_connect(&c, &rig);
	client_send_str(&c, STR("\26\3\1\2\0\1"));
	exchange();
	check_may_take(&c, 5 * SEC);
	check(client_expect_end(&c, PATIENCE_MS));
	check(strstr(rig_expect_event(&rig, NET_EVENT_TLS), "|no ClientHello in time|"));
	client_close(&c);
}

/* Sends a ClientHello and no more. */
static void say_hello(struct client *c)
{
	struct cloche_err err = {0};
	struct tls_client *tls;

	client_connect(c, &rig);
	must(tls_client_new(rig.trust, c->fd, STR("a.test"), rig.port, &tls, &err) == 0);
	must(tls_client_handshake(tls) == TLS_IO_READ);
	tls_client_free(tls);
}

static void test_handshake(void)
{
	struct client c;

	say_hello(&c);
	exchange();
	check(client_read(&c, PATIENCE_MS)); /* the server's part of it */
	buf_clear(&c.in);
	check_may_take(&c, 15 * SEC);
	check(client_expect_end(&c, PATIENCE_MS));
	check(strstr(rig_expect_event(&rig, NET_EVENT_TLS), "|handshake took too long|"));
	client_close(&c);
}

/* It is absolute: what comes does not buy more. */
static void test_head(void)
{
	struct client c;

	client_connect(&c, &rig);
	client_send(&c, "GET / HTTP/1.1\r\n");
	exchange();
	for (int i = 0; i < 14; i++) {
		pass(SEC);
		client_send(&c, "X: y\r\n");
		exchange();
	}
	check_may_take(&c, SEC);
	check_response(&c, 408);
	check(strstr(rig_expect_event(&rig, NET_EVENT_MALFORMED), "head took too long"));
	client_close(&c);
}

/* Sends so much of a body; it has come when this returns. */
static void take_body(uint32_t stream, size_t n)
{
	struct str taken;
	uint32_t id;

	while (n > 0) {
		struct rig_frame *f = rig_recv(&rig, PATIENCE_MS);

		must(f && f->type == NET_DATA);
		must(net_get_data(str_make(f->payload, f->n), &id, &taken) && id == stream);
		n -= taken.n;
		free(f);
	}
}

static void send_body(struct client *c, uint32_t stream, size_t n)
{
	client_send_str(c, str_make(bytes, n));
	take_body(stream, n);
}

/* Chunks of one byte, each in a record of its own: those of one record would be one piece. */
static void send_chunks(struct client *c, uint32_t stream, unsigned n)
{
	enum { ONCE = 500 };

	for (unsigned i = 0; i < n; i += ONCE) {
		for (unsigned k = 0; k < ONCE; k++)
			client_send(c, "1\r\nx\r\n");
		take_body(stream, ONCE);
	}
}

/* The bucket is the connection's, and what a second brings again suffices for any real stream. */
static void test_small_pieces(void)
{
	struct client c;
	struct rig_open o;

	must(client_connect_tls(&c, &rig, "a.test"));
	client_send(&c, "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n");
	o = rig_expect_open(&rig);
	send_chunks(&c, o.m.stream, HTTP_PIECES_BURST);
	pass(SEC);
	send_chunks(&c, o.m.stream, HTTP_PIECES_RATE);
	check(is_left_alone(&c));
	client_send(&c, "1\r\nx\r\n");
	check_response(&c, 429);
	check(strstr(rig_expect_event(&rig, NET_EVENT_MALFORMED), "too many pieces"));
	check_int(rig_expect_reset(&rig, o.m.stream), NET_RESET_MALFORMED);
	rig_open_done(&o);
	client_close(&c);
}

static void test_body(void)
{
	struct client c;
	struct rig_open o;

	client_connect(&c, &rig);
	client_send(&c, "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100000\r\n\r\n");
	o = rig_expect_open(&rig);
	send_body(&c, o.m.stream, BODY_MIN);
	pass(30 * SEC);
	exchange();
	check(is_left_alone(&c)); /* it was enough */
	send_body(&c, o.m.stream, BODY_MIN - 1);
	check_may_take(&c, 30 * SEC);
	check_response(&c, 408);
	check(strstr(rig_expect_event(&rig, NET_EVENT_MALFORMED), "body came too slowly"));
	check_int(rig_expect_reset(&rig, o.m.stream), NET_RESET_CANCELLED);
	rig_open_done(&o);
	client_close(&c);
}

static void test_idle(void)
{
	struct client c;

	client_connect(&c, &rig);
	exchange_on(&c);
	exchange();
	check_may_take(&c, 75 * SEC);
	check(client_expect_end(&c, PATIENCE_MS));
	client_close(&c);
	must(client_connect_tls(&c, &rig, "a.test"));
	exchange_on(&c);
	exchange();
	check_may_take(&c, 75 * SEC);
	check(client_expect_end(&c, PATIENCE_MS) && !c.cut);
	client_close(&c);
}

/* A refused request whose body is still to come: its connection is about to be closed. */
static void start_lingering(struct client *c)
{
	struct response p;

	client_connect(c, &rig);
	client_send(c, "POST / HTTP/1.1\r\nHost: a.test:1\r\nContent-Length: 9000000\r\n\r\n");
	check_int(client_response(c, &p, 0), 421);
	response_done(&p);
	(void)rig_expect_event(&rig, NET_EVENT_MISMATCH);
	check(client_expect_end(c, PATIENCE_MS) && !c->cut);
}

/* One byte more; false if the connection turns out to be gone within that time. */
static bool takes_more(const struct client *c, int ms)
{
	struct pollfd p = {.fd = c->fd};

	return send(c->fd, "x", 1, MSG_NOSIGNAL) == 1 && poll(&p, 1, ms) == 0;
}

static void test_lingering(void)
{
	struct client c;
	int more = 0;

	start_lingering(&c);
	pass(5 * SEC - USEC_PER_MSEC);
	exchange();
	check(takes_more(&c, MOMENT_MS));
	pass(USEC_PER_MSEC);
	exchange();
	check(!takes_more(&c, PATIENCE_MS));
	client_close(&c);

	start_lingering(&c);
	client_send_str(&c, str_make(bytes, sizeof(bytes) - 1));
	exchange();
	check(takes_more(&c, MOMENT_MS));
	while (takes_more(&c, 1) && more < PATIENCE_MS)
		more++;
	check(more < PATIENCE_MS);
	client_close(&c);
}

/* An answer that does not begin, and one that does not go on. */
static void test_nothing_moves(void)
{
	struct net_response m = {.status = 200, .body = NET_BODY_STREAM};
	struct client c;
	struct rig_open o;

	client_connect(&c, &rig);
	client_send(&c, GET);
	o = rig_expect_open(&rig);
	check_may_take(&c, HOUR);
	check_response(&c, 504);
	check_int(rig_expect_reset(&rig, o.m.stream), NET_RESET_CANCELLED);
	rig_open_done(&o);
	client_close(&c);

	client_connect(&c, &rig);
	client_send(&c, GET);
	o = rig_expect_open(&rig);
	m.stream = o.m.stream;
	rig_head(&rig, NET_HEAD, &m, NULL);
	for (int i = 0; i < 3; i++) {
		/* Each piece is worth an hour. */
		rig_data(&rig, m.stream, STR("piece"));
		while (str_find(buf_str(&c.in), STR("piece")) == buf_len(&c.in))
			must(client_read(&c, PATIENCE_MS));
		buf_clear(&c.in);
		pass(HOUR - USEC_PER_MSEC);
	}
	exchange();
	check(is_left_alone(&c));
	pass(USEC_PER_MSEC);
	check(client_expect_end(&c, PATIENCE_MS) && client_was_cut(&c));
	check_int(rig_expect_reset(&rig, m.stream), NET_RESET_CANCELLED);
	rig_open_done(&o);
	client_close(&c);
}

static void test_nothing_moves_in_a_tunnel(void)
{
	struct net_response m = {.status = 200, .body = NET_BODY_STREAM};
	struct client c;
	struct rig_open o;

	rig.tunnel = true;
	say_hello(&c);
	o = rig_expect_open(&rig);
	rig.tunnel = false;
	check_int(o.m.kind, NET_KIND_TUNNEL);
	m.stream = o.m.stream;
	rig_head(&rig, NET_HEAD, &m, NULL);
	free(rig_recv(&rig, PATIENCE_MS)); /* the hello */
	rig_data(&rig, m.stream, STR("piece"));
	check(client_read(&c, PATIENCE_MS));
	buf_clear(&c.in);
	check_may_take(&c, HOUR);
	check_int(rig_expect_reset(&rig, m.stream), NET_RESET_LIMIT);
	pass(5 * SEC); /* whatever was under way has arrived */
	check(client_expect_end(&c, PATIENCE_MS) && client_was_cut(&c));
	rig_open_done(&o);
	client_close(&c);
}

/* How a name goes on is asked again then, as is what may be otherwise soon. */
static void test_leaves(void)
{
	static const struct {
		uint64_t usec;
		bool offers_h2;
	} all[] = {{600 * SEC, false}, {60 * SEC, true}};
	struct client c;

	rig.h2_unknown = true;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		unsigned before = rig.minted;

		rig.h2 = all[i].offers_h2;
		for (int k = 0; k < 3; k++) {
			must(client_connect_tls(&c, &rig, "kept.test"));
			client_close(&c);
			check_int(rig.minted, before + (k < 2 ? 1 : 2));
			pass(k == 0 ? all[i].usec : USEC_PER_MSEC);
		}
	}
	rig.h2 = rig.h2_unknown = false;
}

int main(void)
{
	clock_hold();
	rig_start(&rig, &(struct rig_config){0});
	run_test(test_first_byte);
	run_test(test_hello);
	run_test(test_handshake);
	run_test(test_head);
	run_test(test_body);
	run_test(test_small_pieces);
	run_test(test_idle);
	run_test(test_lingering);
	run_test(test_nothing_moves);
	run_test(test_nothing_moves_in_a_tunnel);
	run_test(test_leaves);
	check(rig_stop(&rig));
	return tap_done();
}
