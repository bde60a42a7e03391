/* SPDX-License-Identifier: Apache-2.0 */
#include "http/h1_write.h"
#include "http/test-support.h"
#include "tap.h"

#include <errno.h>

static const char *request_error(struct http_head *h, unsigned flags)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(100000);
	static struct cloche_err err;

	err_clear(&err);
	must(buf_add_str(&out, STR("before")) == 0);
	check(h1_write_request(&out, h, flags, &err) < 0);
	check_str(buf_str(&out), "before");
	check_int(err.code, E_PROTOCOL);
	return err.message;
}

static void expect_request(struct http_head *h, unsigned flags, const char *want)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(100000);

	check_int(h1_write_request(&out, h, flags, NULL), 0);
	check_str(buf_str(&out), want);
}

static void expect_response(struct http_head *h, unsigned flags, const char *want)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(100000);

	check_int(h1_write_response(&out, h, flags), 0);
	check_str(buf_str(&out), want);
}

static void request(struct http_head *h, const char *method, const char *target)
{
	must(http_head_set_request(
		     h, str_from(method), STR_NULL, STR("a.example"), 0, str_from(target)) == 0);
}

static void requests(void)
{
	_cleanup_(http_head_donep) struct http_head h = HTTP_HEAD_INIT;

	request(&h, "GET", "/x?y");
	expect_request(&h, 0, "GET /x?y HTTP/1.1\r\nHost: a.example\r\n\r\n");
	expect_request(&h, H1_W_CLOSE,
		"GET /x?y HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n");
	expect_request(&h, H1_W_TRAILERS | H1_W_CLOSE,
		"GET /x?y HTTP/1.1\r\nHost: a.example\r\nTE: trailers\r\nConnection: close, "
		"TE\r\n\r\n");
	check_int(http_head_set_request(&h, STR("GET"), STR_NULL, STR("b"), 8080, STR("/")), 0);
	check_int(http_head_set_target(&h, STR("*")), 0);
	check_int(http_fields_add(&h.fields, STR("X"), STR("y")), 0);
	check_int(http_fields_add(&h.fields, STR("Empty"), STR_NULL), 0);
	http_head_set_body(&h, HTTP_BODY_LENGTH, 12345678901ULL);
	expect_request(&h, H1_W_EXPECT,
		"GET * HTTP/1.1\r\nHost: b:8080\r\nX: y\r\nEmpty: \r\nContent-Length: "
		"12345678901\r\n"
		"Expect: 100-continue\r\n\r\n");
	http_head_set_body(&h, HTTP_BODY_LENGTH, 0);
	expect_request(&h, H1_W_EXPECT,
		"GET * HTTP/1.1\r\nHost: b:8080\r\nX: y\r\nEmpty: \r\nContent-Length: 0\r\n\r\n");
	http_head_set_body(&h, HTTP_BODY_CHUNKED, 0);
	expect_request(&h, 0,
		"GET * HTTP/1.1\r\nHost: b:8080\r\nX: y\r\nEmpty: \r\nTransfer-Encoding: "
		"chunked\r\n\r\n");
}

/* Fields of the list never frame or route. */
static void a_parsed_head_is_written_from_the_model(void)
{
	_cleanup_(http_head_donep) struct http_head h = HTTP_HEAD_INIT;
	struct h1_parser p;
	size_t used;

	h1_parser_request(&p, &h);
	check_int(h1_parse(&p,
			  STR("POST http://A:80/p HTTP/1.1\r\nX: 1\r\nHost: a\r\nTE: trailers\r\n"
			      "Connection: keep-alive, Foo, Upgrade\r\nFoo: 2\r\nKeep-Alive: 5\r\n"
			      "Upgrade: h2c\r\nHTTP2-Settings: x\r\nContent-Length: 3\r\n"
			      "Expect: 100-continue\r\nProxy-Connection: y\r\nY: 3\r\n\r\n"),
			  &used),
		H1_DONE);
	expect_request(
		&h, 0, "POST /p HTTP/1.1\r\nHost: a\r\nX: 1\r\nY: 3\r\nContent-Length: 3\r\n\r\n");
	check_int(h.fields.n, 12);
	http_head_strip(&h);
	check_int(h.fields.n, 2);
	expect_request(
		&h, 0, "POST /p HTTP/1.1\r\nHost: a\r\nX: 1\r\nY: 3\r\nContent-Length: 3\r\n\r\n");
}

static void what_is_never_written(void)
{
	_cleanup_(http_head_donep) struct http_head h = HTTP_HEAD_INIT;
	struct h1_parser p;
	size_t used;

	h1_parser_request(&p, &h);
	check_int(h1_parse(&p, STR("CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n"), &used), H1_DONE);
	check_z(request_error(&h, 0), "refused to write a CONNECT or TRACE request");
	request(&h, "TRACE", "/");
	check_z(request_error(&h, 0), "refused to write a CONNECT or TRACE request");
	request(&h, "Connect", "/");
	check_z(request_error(&h, 0), "refused to write a CONNECT or TRACE request");
	request(&h, "GET", "/");
	h.body = HTTP_BODY_CLOSE;
	check_z(request_error(&h, 0), "refused to write a request whose body has no end");
	request(&h, "GET", "/");
	check_z(request_error(&h, H1_W_UPGRADE), "refused to write an upgrade to nothing");
	request(&h, "GET", "/");
	h.s_host.len = 0;
	check_z(request_error(&h, 0), "refused to write a malformed host");
	request(&h, "GET", "/");
	h.is_request = false;
	check_z(request_error(&h, 0), "refused to write a malformed method");
}

/* INV-NO-RAW-BYTES: spoils each byte of a head's storage in turn, as a taken-over peer might:
 * whatever is still written has the same lines as before. */
static void no_byte_can_split_a_message(void)
{
	static const char bad[] = {'\r', '\n', '\0', ' ', ':', '\x7f', '\x80'};
	unsigned refused = 0, written = 0;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		for (size_t at = 0;; at++) {
			_cleanup_(http_head_donep) struct http_head h = HTTP_HEAD_INIT;
			_cleanup_(buf_donep) struct buf out = BUF_INIT(10000);
			size_t lines = 0;

			request(&h, "POST", "/target");
			must(http_fields_add(&h.fields, STR("Name"), STR("value")) == 0);
			if (at == h.fields.text.tail)
				break;
			h.fields.text.mem[at] = bad[i];
			if (h1_write_request(&out, &h, 0, NULL) < 0) {
				check_int(buf_len(&out), 0);
				refused++;
				continue;
			}
			written++;
			for (size_t k = 0; k < buf_len(&out); k++) {
				lines += buf_data(&out)[k] == '\n';
				check(buf_data(&out)[k] != '\n' || buf_data(&out)[k - 1] == '\r');
				check(buf_data(&out)[k] != '\0');
			}
			check_int(lines, 4);
		}
	}
	check(refused > 150 && written > 5);
}

static void responses(void)
{
	_cleanup_(http_head_donep) struct http_head h = HTTP_HEAD_INIT;

	check_int(http_head_set_response(&h, 404, STR_NULL), 0);
	expect_response(&h, 0, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
	http_head_set_body(&h, HTTP_BODY_LENGTH, 7);
	expect_response(&h, H1_W_CLOSE,
		"HTTP/1.1 404 Not Found\r\nContent-Length: 7\r\nConnection: close\r\n\r\n");
	expect_response(&h, H1_W_KEEP_ALIVE,
		"HTTP/1.1 404 Not Found\r\nContent-Length: 7\r\nConnection: keep-alive\r\n\r\n");
	http_head_set_body(&h, HTTP_BODY_CHUNKED, 0);
	expect_response(&h, 0, "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n");
	http_head_set_body(&h, HTTP_BODY_CLOSE, 0);
	expect_response(&h, 0, "HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n");
	check_int(http_head_set_response(&h, 204, STR("Gone fishing")), 0);
	expect_response(&h, 0, "HTTP/1.1 204 Gone fishing\r\n\r\n");
	check_int(http_head_set_response(&h, 100, STR_NULL), 0);
	expect_response(&h, 0, "HTTP/1.1 100 Continue\r\n\r\n");
	check_int(http_head_set_response(&h, 304, STR_NULL), 0);
	expect_response(&h, 0, "HTTP/1.1 304 Not Modified\r\n\r\n");
	check_int(http_head_set_response(&h, 599, STR_NULL), 0);
	expect_response(&h, 0, "HTTP/1.1 599 Unknown\r\nContent-Length: 0\r\n\r\n");
	check_int(http_head_set_response(&h, 101, STR_NULL), 0);
	check_int(http_fields_add(&h.fields, STR("Upgrade"), STR("websocket")), 0);
	expect_response(&h, H1_W_UPGRADE,
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: "
		"upgrade\r\n\r\n");
}

static void responses_that_are_not_written(void)
{
	_cleanup_(http_head_donep) struct http_head h = HTTP_HEAD_INIT;
	_cleanup_(buf_donep) struct buf out = BUF_INIT(1000), small = BUF_INIT(20);

	check_int(http_head_set_response(&h, 99, STR_NULL), -EINVAL);
	check_int(http_head_set_response(&h, 1000, STR_NULL), -EINVAL);
	check_int(http_head_set_response(&h, 200, STR("a\r\nb")), -EINVAL);
	check_int(http_head_set_response(&h, 101, STR_NULL), 0);
	check(h1_write_response(&out, &h, 0) < 0);
	check_int(http_head_set_response(&h, 204, STR_NULL), 0);
	http_head_set_body(&h, HTTP_BODY_LENGTH, 4);
	check(h1_write_response(&out, &h, 0) < 0);
	check_int(http_head_set_response(&h, 200, STR_NULL), 0);
	check_int(h1_write_response(&small, &h, 0), -E_LIMIT);
	check_int(buf_len(&small), 0);
	h.status = 1000;
	check(h1_write_response(&out, &h, 0) < 0);
	check_int(buf_len(&out), 0);
}

/* The answer to HEAD says what GET would have had. */
static void an_answer_to_head(void)
{
	_cleanup_(http_head_donep) struct http_head h = HTTP_HEAD_INIT;
	struct h1_parser p;
	size_t used;

	h1_parser_response(&p, &h, H1_TO_HEAD);
	check_int(
		h1_parse(&p, STR("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), &used), H1_DONE);
	expect_response(&h, 0, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
	h1_parser_response(&p, &h, H1_TO_HEAD);
	check_int(h1_parse(&p, STR("HTTP/1.1 200 OK\r\n\r\n"), &used), H1_DONE);
	expect_response(&h, 0, "HTTP/1.1 200 OK\r\n\r\n");
}

int main(void)
{
	run_test(requests);
	run_test(a_parsed_head_is_written_from_the_model);
	run_test(what_is_never_written);
	run_test(no_byte_can_split_a_message);
	run_test(responses);
	run_test(responses_that_are_not_written);
	run_test(an_answer_to_head);
	return tap_done();
}
