/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1 through a gateway in a process of its own; see testing.h. */
#include "gateway/testing.h"
#include "tap.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static struct rig rig;

#define GET(target) "GET " target " HTTP/1.1\r\nHost: a.test\r\n\r\n"

/* Sends text on a new plain connection and returns the status of the answer. */
static unsigned status_of(const char *text)
{
	struct client c;
	struct response p;
	unsigned status;

	client_connect(&c, &rig);
	client_send(&c, text);
	status = client_response(&c, &p, 0);
	response_done(&p);
	client_close(&c);
	return status;
}

static void test_keep_alive_over_tls(void)
{
	struct client c;
	struct response p;

	must(client_connect_tls(&c, &rig, "a.test"));
	for (int i = 0; i < 3; i++) {
		struct rig_open o;

		client_send(&c, "GET /x?y=1 HTTP/1.1\r\nHost: A.test.\r\nX-Own: 1\r\n"
				"Connection: keep-alive\r\n\r\n");
		o = rig_expect_open(&rig);
		check_str(o.m.host, "a.test");
		check_str(o.m.method, "GET");
		check_str(o.m.target, "/x?y=1");
		check(o.m.scheme == NET_HTTPS && o.m.body == NET_BODY_NONE);
		check(o.m.http1 && o.m.keep_alive);
		check_int(o.m.port, rig.port);
		check_z(o.fields, "X-Own: 1\n");
		rig_answer(&rig, o.m.stream, "hello");
		check_int(client_response(&c, &p, 0), 200);
		check_str(buf_str(&p.body), "hello");
		check(p.head.flags & HTTP_KEEP_ALIVE);
		response_done(&p);
		rig_open_done(&o);
	}
	client_close(&c);
	/* The certificate is kept. */
	must(client_connect_tls(&c, &rig, "a.test"));
	check_int(rig.minted, 1);
	client_close(&c);
}

/* Many clients of HTTP/1.1 take another interim answer than 100 for the answer (103: RFC 8297,
 * section 3). */
static void test_interim(void)
{
	struct net_response m = {.status = 103};
	struct rig_open o;
	struct client c;
	struct response p;

	client_connect(&c, &rig);
	client_send(&c, GET("/hints"));
	o = rig_expect_open(&rig);
	check(o.m.http1 && !o.m.keep_alive);
	m.stream = o.m.stream;
	rig_head(&rig, NET_INTERIM, &m, "link: </a>\n");
	m.status = 102;
	rig_head(&rig, NET_INTERIM, &m, NULL);
	rig_answer(&rig, o.m.stream, "hello");
	check_int(client_response(&c, &p, 0), 200);
	check_str(buf_str(&p.body), "hello");
	response_done(&p);
	rig_open_done(&o);
	client_close(&c);
}

static void test_bodies_both_ways(void)
{
	_cleanup_(buf_donep) struct buf body = BUF_INIT(1 << 20);
	_cleanup_(buf_donep) struct buf trailers = BUF_INIT(4096);
	const struct net_response stream = {.status = 201, .body = NET_BODY_STREAM};
	struct net_response m = stream;
	struct rig_open o;
	struct client c;
	struct response p;

	client_connect(&c, &rig);
	client_send(&c, "POST /up HTTP/1.1\r\nHost: a.test\r\nTE: trailers\r\n"
			"Transfer-Encoding: chunked\r\nConnection: TE\r\n\r\n"
			"5\r\nhello\r\n6\r\n world\r\n0\r\nX-Sum: 11\r\nContent-Length: 3\r\n\r\n");
	o = rig_expect_open(&rig);
	check(o.m.body == NET_BODY_STREAM);
	check_z(o.fields, "");
	rig_expect_body(&rig, o.m.stream, &body, &trailers);
	check_str(buf_str(&body), "hello world");
	check_str(buf_str(&trailers), "X-Sum: 11\n");
	m.stream = o.m.stream;
	rig_head(&rig, NET_HEAD, &m, "X-A: b\n");
	rig_data(&rig, m.stream, STR("one"));
	rig_data(&rig, m.stream, STR("two"));
	rig_end(&rig, m.stream, "X-Check: ok\n");
	check_int(client_response(&c, &p, 0), 201);
	check(p.complete && p.head.body == HTTP_BODY_CHUNKED);
	check_str(buf_str(&p.body), "onetwo");
	check_str(http_fields_get(&p.trailers, STR("X-Check")), "ok");
	response_done(&p);
	rig_open_done(&o);

	/* Lengths, on the same connection; 304 and HEAD tell a length and send nothing. */
	client_send(&c, "HEAD /h HTTP/1.1\r\nHost: a.test\r\n\r\n");
	o = rig_expect_open(&rig);
	rig_answer(&rig, o.m.stream, "not sent");
	check_int(client_response(&c, &p, H1_TO_HEAD), 200);
	check_int(p.head.content_length, 8);
	response_done(&p);
	rig_open_done(&o);
	client_send(&c, GET("/n"));
	o = rig_expect_open(&rig);
	m = (struct net_response){.stream = o.m.stream, .status = 204};
	rig_head(&rig, NET_HEAD, &m, NULL);
	rig_end(&rig, o.m.stream, NULL);
	check_int(client_response(&c, &p, 0), 204);
	response_done(&p);
	rig_open_done(&o);
	client_close(&c);
}

/* Chunks that come together go on together. */
static void test_small_chunks(void)
{
	enum { CHUNKS = 5000, FEW = 20, PATIENCE_MS = 20000 };
	_cleanup_(buf_donep) struct buf text = BUF_INIT(6 * CHUNKS);
	unsigned frames = 0;
	struct rig_open o;
	struct client c;
	size_t n = 0;

	client_connect(&c, &rig);
	client_send(&c, "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n");
	o = rig_expect_open(&rig);
	for (unsigned i = 0; i < CHUNKS; i++)
		must(buf_printf(&text, "1\r\n%c\r\n", 'a' + i % 26) == 0);
	client_send_str(&c, buf_str(&text));
	while (n < CHUNKS) {
		struct rig_frame *f = rig_recv(&rig, PATIENCE_MS);
		struct str data;
		uint32_t id;

		must(f && f->type == NET_DATA &&
			net_get_data(str_make(f->payload, f->n), &id, &data));
		for (size_t i = 0; i < data.n; i++)
			must(data.p[i] == (char)('a' + n++ % 26));
		frames++;
		free(f);
	}
	check_int(n, CHUNKS);
	check(frames <= FEW);
	client_close(&c);
	check_int(rig_expect_reset(&rig, o.m.stream), NET_RESET_CANCELLED);
	rig_open_done(&o);
}

static void test_every_split(void)
{
	static const char text[] =
		"POST /s HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\nabcd"
		"POST /t HTTP/1.1\r\nHost: a.test\r\n"
		"Transfer-Encoding: chunked\r\n\r\n3\r\nxyz\r\n0\r\n\r\n";

	for (size_t cut = 1; cut < sizeof(text) - 1; cut++) {
		_cleanup_(buf_donep) struct buf body = BUF_INIT(4096);
		struct rig_open o;
		struct client c;
		struct response p;

		client_connect(&c, &rig);
		client_send_str(&c, str_make(text, cut));
		usleep(200);
		client_send_str(&c, str_make(text + cut, sizeof(text) - 1 - cut));
		for (int i = 0; i < 2; i++) {
			o = rig_expect_open(&rig);
			rig_expect_body(&rig, o.m.stream, &body, NULL);
			rig_answer(&rig, o.m.stream, "ok");
			check_int(client_response(&c, &p, 0), 200);
			response_done(&p);
			rig_open_done(&o);
		}
		check_str(buf_str(&body), "abcdxyz");
		client_close(&c);
	}
}

static void test_pipeline_is_one_deep(void)
{
	struct rig_open first, second;
	struct client c;
	struct response p;

	client_connect(&c, &rig);
	client_send(&c, GET("/1") GET("/2"));
	first = rig_expect_open(&rig);
	check(rig_recv(&rig, 100) == NULL);
	rig_answer(&rig, first.m.stream, "one");
	second = rig_expect_open(&rig);
	check_str(second.m.target, "/2");
	rig_answer(&rig, second.m.stream, "two");
	check_int(client_response(&c, &p, 0), 200);
	check_str(buf_str(&p.body), "one");
	response_done(&p);
	check_int(client_response(&c, &p, 0), 200);
	check_str(buf_str(&p.body), "two");
	response_done(&p);
	rig_open_done(&first);
	rig_open_done(&second);
	client_close(&c);
}

static void test_continue(void)
{
	static const char head[] = "PUT /c HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\n"
				   "Expect: 100-continue\r\n\r\n";
	struct net_response m = {.status = 100};
	_cleanup_(buf_donep) struct buf body = BUF_INIT(4096);
	struct rig_open o;
	struct client c;
	struct response p;

	client_connect(&c, &rig);
	client_send(&c, head);
	o = rig_expect_open(&rig);
	check(o.m.expect_continue && o.m.length == 2);
	check_z(o.fields, "");
	m.stream = o.m.stream;
	rig_head(&rig, NET_INTERIM, &m, NULL);
	check_int(client_response(&c, &p, 0), 100);
	response_done(&p);
	client_send(&c, "hi");
	rig_expect_body(&rig, o.m.stream, &body, NULL);
	rig_answer(&rig, o.m.stream, "done");
	check_int(client_response(&c, &p, 0), 200);
	response_done(&p);
	rig_open_done(&o);

	/* Refused instead: answered, and the connection ends because the body never came. */
	client_send(&c, head);
	o = rig_expect_open(&rig);
	m = (struct net_response){
		.stream = o.m.stream, .status = 403, .body = NET_BODY_LENGTH, .length = 2};
	rig_head(&rig, NET_HEAD, &m, NULL);
	rig_data(&rig, m.stream, STR("no"));
	rig_end(&rig, m.stream, NULL);
	check_int(client_response(&c, &p, 0), 403);
	check(p.complete && !(p.head.flags & HTTP_KEEP_ALIVE));
	check(rig_expect_reset(&rig, m.stream) == NET_RESET_CANCELLED);
	check(client_expect_end(&c, 2000) && !c.cut);
	response_done(&p);
	rig_open_done(&o);
	client_close(&c);
}

static void test_http10(void)
{
	struct net_response m = {.status = 200, .body = NET_BODY_STREAM};
	struct rig_open o;
	struct client c;
	struct response p;

	client_connect(&c, &rig);
	client_send(&c, "GET / HTTP/1.0\r\nHost: a.test\r\n\r\n");
	o = rig_expect_open(&rig);
	m.stream = o.m.stream;
	rig_head(&rig, NET_HEAD, &m, NULL);
	rig_data(&rig, m.stream, STR("until the end"));
	rig_end(&rig, m.stream, NULL);
	check_int(client_response(&c, &p, 0), 200);
	check(p.complete && p.head.body == HTTP_BODY_CLOSE);
	check_str(buf_str(&p.body), "until the end");
	response_done(&p);
	rig_open_done(&o);
	client_close(&c);
}

static void check_refused(const char *text, unsigned status, enum net_event_kind kind)
{
	unsigned got = status_of(text);

	if (got != status)
		tap_fail("got %u, want %u for: %s", got, status, text);
	(void)rig_expect_event(&rig, kind);
	check(rig.first == NULL);
}

static void test_refused(void)
{
	static const struct {
		unsigned status;
		const char *text;
	} malformed[] = {
		{400, "GET / HTTP/1.1\nHost: a.test\n\n"},
		{400, "GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n"},
		{400, "GET / HTTP/1.1\r\nHost : a.test\r\n\r\n"},
		{400, "GET / HTTP/1.1\r\nHost: a.test\r\n folded\r\n\r\n"},
		{400, "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\n"
		      "Transfer-Encoding: chunked\r\n\r\n"},
		{400, "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\n"
		      "Content-Length: 1\r\n\r\n"},
		{400, "GET / HTTP/1.1\r\nHost: 127.1\r\n\r\n"},
		{400, "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Host\r\n\r\n"},
		{400, "GET http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"},
		{505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
		{417, "GET / HTTP/1.1\r\nHost: a.test\r\nExpect: 200-ok\r\n\r\n"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(malformed); i++)
		check_refused(malformed[i].text, malformed[i].status, NET_EVENT_MALFORMED);
	check_refused(
		"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n", 403, NET_EVENT_CONNECT);
	check_refused("TRACE / HTTP/1.1\r\nHost: a.test\r\n\r\n", 405, NET_EVENT_METHOD);
	check_refused("GET / HTTP/1.1\r\nHost: a.test:9\r\n\r\n", 421, NET_EVENT_MISMATCH);
	check_refused(
		"GET https://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 421, NET_EVENT_MISMATCH);
}

static void test_mismatch_over_tls(void)
{
	struct rig_open o;
	struct client c;
	struct response p;

	must(client_connect_tls(&c, &rig, "a.test"));
	client_send(&c, "GET / HTTP/1.1\r\nHost: b.test\r\n\r\n");
	check_int(client_response(&c, &p, 0), 421);
	check(str_find(buf_str(&p.body), STR("host_mismatch")) < buf_len(&p.body));
	check_z(rig_expect_event(&rig, NET_EVENT_MISMATCH), "a.test|b.test|host|421");
	response_done(&p);
	/* The connection is still good for what it was made for. */
	client_send(&c, GET("/"));
	o = rig_expect_open(&rig);
	rig_answer(&rig, o.m.stream, "ok");
	check_int(client_response(&c, &p, 0), 200);
	response_done(&p);
	rig_open_done(&o);
	client_close(&c);
}

static void test_upgrade_is_never_a_tunnel(void)
{
	struct rig_open o;
	struct client c;
	struct response p;

	client_connect(&c, &rig);
	client_send(&c, "GET /ws HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\n"
			"Upgrade: tls/1.3\r\n\r\n" GET("/next"));
	check_int(client_response(&c, &p, 0), 501);
	check_z(rig_expect_event(&rig, NET_EVENT_UPGRADE), "a.test|tls/1.3||501");
	response_done(&p);
	o = rig_expect_open(&rig);
	check_str(o.m.target, "/next");
	rig_answer(&rig, o.m.stream, "judged");
	check_int(client_response(&c, &p, 0), 200);
	response_done(&p);
	rig_open_done(&o);

	/* h2c is an offer that may be ignored. */
	client_send(&c, "GET /h HTTP/1.1\r\nHost: a.test\r\nUpgrade: h2c\r\n"
			"HTTP2-Settings: AAMAAABk\r\n"
			"Connection: Upgrade, HTTP2-Settings\r\n\r\n");
	o = rig_expect_open(&rig);
	check_z(o.fields, "");
	rig_answer(&rig, o.m.stream, "ok");
	check_int(client_response(&c, &p, 0), 200);
	response_done(&p);
	rig_open_done(&o);
	client_close(&c);
}

/* A response that breaks off must not look complete, whatever its framing. */
static void test_broken_off(void)
{
	static const enum net_body framings[] = {NET_BODY_STREAM, NET_BODY_LENGTH};

	for (int tls = 0; tls < 2; tls++) {
		for (size_t i = 0; i < ARRAY_SIZE(framings) + 1; i++) {
			bool http10 = i == ARRAY_SIZE(framings);
			struct net_response m = {.status = 200, .length = 100};
			struct rig_open o;
			struct client c;
			struct response p;

			m.body = http10 ? NET_BODY_STREAM : framings[i];
			if (tls)
				must(client_connect_tls(&c, &rig, "a.test"));
			else
				client_connect(&c, &rig);
			client_send(
				&c, http10 ? "GET / HTTP/1.0\r\nHost: a.test\r\n\r\n" : GET("/"));
			o = rig_expect_open(&rig);
			m.stream = o.m.stream;
			rig_head(&rig, NET_HEAD, &m, NULL);
			rig_data(&rig, m.stream, STR("part"));
			rig_reset(&rig, m.stream, NET_RESET_UPSTREAM);
			check_int(client_response(&c, &p, 0), 200);
			/* A captured connection has no reset that could say so. */
			check(!p.complete || (rig.captured && http10 && !tls));
			check_str(buf_str(&p.body), "part");
			check(client_was_cut(&c));
			response_done(&p);
			rig_open_done(&o);
			client_close(&c);
		}
	}
}

/* A client that has not read anything yet gets all that came before the break. */
static void test_broken_off_behind(void)
{
	static char piece[32 * 1024];
	const int few = 4096;

	memset(piece, 'x', sizeof(piece));
	for (int tls = 0; tls < 2; tls++) {
		struct net_response m = {.status = 200, .body = NET_BODY_LENGTH, .length = 1 << 20};
		struct rig_frame *f;
		struct rig_open o;
		struct client c;
		struct response p;

		if (tls)
			must(client_connect_tls(&c, &rig, "a.test"));
		else
			client_connect(&c, &rig);
		must(setsockopt(c.fd, SOL_SOCKET, SO_RCVBUF, &few, sizeof(few)) == 0);
		client_send(&c, GET("/"));
		o = rig_expect_open(&rig);
		m.stream = o.m.stream;
		rig_head(&rig, NET_HEAD, &m, NULL);
		for (size_t sent = 0; sent < NET_WINDOW; sent += sizeof(piece))
			rig_data(&rig, m.stream, str_make(piece, sizeof(piece)));
		rig_reset(&rig, m.stream, NET_RESET_UPSTREAM);
		usleep(50000); /* a gateway that does not wait would have ended it by now */
		check_int(client_response(&c, &p, 0), 200);
		check(!p.complete);
		check_int(buf_len(&p.body), NET_WINDOW);
		check(client_was_cut(&c));
		while ((f = rig_recv(&rig, 0))) { /* credit for what left before the reset came */
			check(f->type == NET_CREDIT);
			free(f);
		}
		response_done(&p);
		rig_open_done(&o);
		client_close(&c);
	}
}

static void test_reset_before_head(void)
{
	struct rig_open o;
	struct client c;
	struct response p;

	client_connect(&c, &rig);
	client_send(&c, GET("/"));
	o = rig_expect_open(&rig);
	rig_reset(&rig, o.m.stream, NET_RESET_UPSTREAM);
	check_int(client_response(&c, &p, 0), 502);
	check(p.complete && client_expect_end(&c, 2000));
	response_done(&p);
	rig_open_done(&o);
	client_close(&c);
}

static void test_client_breaks_off(void)
{
	struct net_response m = {.status = 200, .body = NET_BODY_STREAM};
	struct rig_open o;
	struct rig_frame *f;
	struct client c;

	/* In the middle of a body. */
	client_connect(&c, &rig);
	client_send(&c, "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 9\r\n\r\nabc");
	o = rig_expect_open(&rig);
	f = rig_recv(&rig, 2000);
	check(f && f->type == NET_DATA);
	free(f);
	client_close(&c);
	check(rig_expect_reset(&rig, o.m.stream) == NET_RESET_CANCELLED);
	rig_open_done(&o);

	/* With a broken chunk. */
	client_connect(&c, &rig);
	client_send(&c, "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n"
			"0x3\r\nabc");
	o = rig_expect_open(&rig);
	(void)rig_expect_event(&rig, NET_EVENT_MALFORMED);
	check(rig_expect_reset(&rig, o.m.stream) == NET_RESET_MALFORMED);
	client_close(&c);
	rig_open_done(&o);

	/* While it waits for the answer: over TLS that is seen at once. */
	must(client_connect_tls(&c, &rig, "a.test"));
	client_send(&c, GET("/"));
	o = rig_expect_open(&rig);
	m.stream = o.m.stream;
	rig_head(&rig, NET_HEAD, &m, NULL);
	client_close(&c);
	check(rig_expect_reset(&rig, o.m.stream) == NET_RESET_CANCELLED);
	rig_open_done(&o);
}

/* A plain client may end its side and still wait for the answer. */
static void test_half_close(void)
{
	struct rig_open o;
	struct client c;
	struct response p;

	client_connect(&c, &rig);
	client_send(&c, GET("/"));
	must(shutdown(c.fd, SHUT_WR) == 0);
	o = rig_expect_open(&rig);
	usleep(50000);
	rig_answer(&rig, o.m.stream, "still there");
	check_int(client_response(&c, &p, 0), 200);
	check_str(buf_str(&p.body), "still there");
	check(client_expect_end(&c, 2000));
	response_done(&p);
	rig_open_done(&o);
	client_close(&c);
}

int main(void)
{
	rig_start(&rig, &(struct rig_config){0});
	run_test(test_keep_alive_over_tls);
	run_test(test_interim);
	run_test(test_bodies_both_ways);
	run_test(test_small_chunks);
	run_test(test_every_split);
	run_test(test_pipeline_is_one_deep);
	run_test(test_continue);
	run_test(test_http10);
	run_test(test_refused);
	run_test(test_mismatch_over_tls);
	run_test(test_upgrade_is_never_a_tunnel);
	run_test(test_broken_off);
	run_test(test_broken_off_behind);
	run_test(test_reset_before_head);
	run_test(test_client_breaks_off);
	run_test(test_half_close);
	if (!rig_stop(&rig))
		return 1;
	return tap_done();
}
