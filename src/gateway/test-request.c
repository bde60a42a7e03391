/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/request.h"
#include "http/h1.h"
#include "tap.h"

static struct http_head head;
static struct request_via via;
static struct request request;

static void judge(const char *text)
{
	struct h1_parser p;
	size_t used;

	h1_parser_request(&p, &head);
	must(h1_parse(&p, str_from(text), &used) == H1_DONE);
	request_judge(&head, &via, &request);
}

#define STATUS(want, text)                                                                         \
	do {                                                                                       \
		judge(text);                                                                       \
		check_int(request.refusal.status, want);                                           \
	} while (0)

static void test_all_names_agree(void)
{
	via = (struct request_via){.tls = true, .port = 443};
	must(host_parse(STR("a.test"), &via.host) == 0);
	STATUS(0, "GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n");
	check_str(request.open.host, "a.test");
	check_str(request.open.target, "/x");
	STATUS(0, "GET /x HTTP/1.1\r\nHost: A.TEST.:443\r\n\r\n");
	check_str(request.open.host, "a.test");
	STATUS(0, "GET https://a.test/y HTTP/1.1\r\nHost: a.test\r\n\r\n");
	check_str(request.open.target, "/y");
	STATUS(421, "GET / HTTP/1.1\r\nHost: b.test\r\n\r\n");
	STATUS(421, "GET / HTTP/1.1\r\nHost: a.test:444\r\n\r\n");
	STATUS(421, "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n");
	STATUS(400, "GET / HTTP/1.1\r\nHost: 0x7f.1\r\n\r\n");
	STATUS(400, "GET / HTTP/1.1\r\nHost: 2130706433\r\n\r\n");
	STATUS(400, "GET / HTTP/1.1\r\nHost: [::ffff:169.254.169.254]\r\n\r\n");
}

static void test_plain_host(void)
{
	via = (struct request_via){.port = 80};
	must(host_parse(STR("198.18.0.9"), &via.dest) == 0);
	judge("GET / HTTP/1.1\r\nHost: c.test\r\n\r\n");
	check_str(request.open.host, "c.test");
	check(request.open.scheme == NET_HTTP);
}

static void test_bodies(void)
{
	STATUS(0, "POST / HTTP/1.1\r\nHost: c.test\r\nContent-Length: 7\r\n\r\n");
	check(request.open.body == NET_BODY_LENGTH && request.open.length == 7);
	STATUS(0, "POST / HTTP/1.1\r\nHost: c.test\r\nTransfer-Encoding: chunked\r\n\r\n");
	check(request.open.body == NET_BODY_STREAM);
	STATUS(0, "POST / HTTP/1.1\r\nHost: c.test\r\nContent-Length: 0\r\n\r\n");
	check(request.open.body == NET_BODY_NONE);
	STATUS(0, "PUT / HTTP/1.1\r\nHost: c.test\r\nContent-Length: 7\r\n"
		  "Expect: 100-continue\r\n\r\n");
	check(request.open.expect_continue);
}

#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define ASK " / HTTP/1.1\r\nHost: c.test\r\nConnection: upgrade\r\nUpgrade: WebSocket\r\n"
#define V13 "Sec-WebSocket-Version: 13\r\n"

static void test_websocket(void)
{
	STATUS(0, "GET" ASK KEY V13 "\r\n");
	check(request.open.kind == NET_KIND_WEBSOCKET && request.open.body == NET_BODY_STREAM);
	STATUS(400, "GET" ASK V13 "\r\n");
	STATUS(400, "GET" ASK KEY "\r\n");
	STATUS(400, "GET" ASK KEY KEY V13 "\r\n");
	STATUS(400, "GET" ASK KEY V13 V13 "\r\n");
	STATUS(400, "GET" ASK KEY "Sec-WebSocket-Version: 8\r\n\r\n");
	STATUS(400, "GET" ASK "Sec-WebSocket-Key: AAAA\r\n" V13 "\r\n");
	STATUS(400, "POST" ASK KEY V13 "\r\n");
	STATUS(400, "GET" ASK KEY V13 "Content-Length: 5\r\n\r\n");
	STATUS(400, "GET" ASK KEY V13 "Transfer-Encoding: chunked\r\n\r\n");
	/* Of two protocols one is not ours. */
	STATUS(501, "GET" ASK "Upgrade: tls\r\n" KEY V13 "\r\n");
	/* Without its Connection it is a field like another. */
	STATUS(0, "GET / HTTP/1.1\r\nHost: c.test\r\nUpgrade: websocket\r\n\r\n");
	check(request.open.kind == NET_KIND_HTTP);
}

static void test_only_end_to_end_fields(void)
{
	struct chan c = {.fd = -1, .max_send = NET_MAX_PAYLOAD, .out = BUF_INIT(1 << 20)};
	struct net_fields_out out;
	struct net_open m;
	struct wire_in in;
	struct str name, value;

	STATUS(0, "GET / HTTP/1.1\r\nHost: c.test\r\nAuthorization: x\r\nKeep-Alive: 5\r\n"
		  "X-Hop: 1\r\nConnection: close, X-Hop\r\nTE: trailers\r\nProxy-Connection: a\r\n"
		  "Upgrade: h2c\r\nHTTP2-Settings: AA\r\nCookie: a=b\r\nContent-Length: 1\r\n\r\n");
	out = net_begin_open(&c, &request.open);
	request_add_fields(&head, &out);
	must(net_end_fields(&out) == 0);
	must(net_get_open(str_from_index(buf_str(&c.out), CHAN_HEADER), &m, &in));
	check_int(m.fields_n, 2);
	must(net_next_field(&in, &name, &value));
	check_str(name, "Authorization");
	must(net_next_field(&in, &name, &value));
	check_str(name, "Cookie");
	check(wire_ok(&in));
	buf_done(&c.out);
}

int main(void)
{
	head = HTTP_HEAD_INIT;
	run_test(test_all_names_agree);
	run_test(test_plain_host);
	run_test(test_bodies);
	run_test(test_websocket);
	run_test(test_only_end_to_end_fields);
	http_head_done(&head);
	return tap_done();
}
