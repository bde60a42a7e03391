/* SPDX-License-Identifier: Apache-2.0 */
#include "http/test-support.h"
#include "tap.h"

#define S(lit)                                                                                     \
	{                                                                                          \
		lit, sizeof(lit) - 1                                                               \
	}
#define OK "HTTP/1.1 200 OK\r\n"

static struct outcome got;

struct accepted {
	struct str in;
	unsigned opt;
	const char *line;
};

static const struct accepted accepted[] = {
	{S(OK "\r\n"), 0, "200 OK 11 close "},
	{S("HTTP/1.1 200 \r\n\r\n"), 0, "200  11 close "},
	{S("HTTP/1.1 200\r\n\r\n"), 0, "200  11 close "},
	{S("HTTP/1.1 404 Not\tFound \xff\r\n\r\n"), 0, "404 Not\tFound \xff 11 close "},
	{S("HTTP/1.0 200 OK\r\n\r\n"), 0, "200 OK 10 close "},
	{S(OK "Content-Length: 5\r\n\r\n"), 0, "200 OK 11 length=5 KL"},
	{S(OK "Content-Length: 0\r\n\r\n"), 0, "200 OK 11 none=0 KL"},
	{S(OK "Content-Length: 5\r\nContent-Length: 5\r\n\r\n"), 0, "200 OK 11 length=5 KL"},
	{S("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n"), 0, "200 OK 10 length=5 L"},
	{S("HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n"), 0,
		"200 OK 10 length=5 KL"},
	{S(OK "Content-Length: 5\r\nConnection: close\r\n\r\n"), 0, "200 OK 11 length=5 L"},
	{S(OK "Transfer-Encoding: chunked\r\n\r\n"), 0, "200 OK 11 chunked K"},
	/* Both: the encoding counts, the connection is not used again. */
	{S(OK "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"), 0, "200 OK 11 chunked "},
	{S(OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"), 0, "200 OK 11 chunked "},
	/* No body, whatever the fields say. */
	{S(OK "Content-Length: 5\r\n\r\n"), H1_TO_HEAD, "200 OK 11 none=5 KLH"},
	{S(OK "Transfer-Encoding: chunked\r\n\r\n"), H1_TO_HEAD, "200 OK 11 none KH"},
	{S(OK "\r\n"), H1_TO_HEAD, "200 OK 11 none KH"},
	{S("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"), 0, "204 No Content 11 none "},
	{S("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n"), 0,
		"204 No Content 11 none "},
	{S("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"), 0, "204 No Content 11 none K"},
	{S("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"), 0,
		"304 Not Modified 11 none=5 KL"},
	{S("HTTP/1.1 304 Not Modified\r\n\r\n"), 0, "304 Not Modified 11 none K"},
	{S("HTTP/1.1 100 Continue\r\n\r\n"), 0, "100 Continue 11 none K"},
	{S("HTTP/1.1 103 Early Hints\r\nLink: x\r\nContent-Length: 7\r\n\r\n"), 0,
		"103 Early Hints 11 none "},
	{S("HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"), H1_UPGRADE_ASKED,
		"101 S 11 none KUW"},
	{S("HTTP/1.1 599 x\r\nContent-Length: 1\r\n\r\n"), 0, "599 x 11 length=1 KL"},
	{S("HTTP/1.1 999 Denied\r\nContent-Length: 1\r\n\r\n"), 0, "999 Denied 11 length=1 KL"},
	/* One value, said more than once (RFC 9110 8.6). */
	{S(OK "Content-Length: 5, 5\r\n\r\n"), 0, "200 OK 11 length=5 KL"},
	{S(OK "Content-Length: 5 ,5,\t5\r\nContent-Length: 5 ,5,\t5\r\n\r\n"), 0,
		"200 OK 11 length=5 KL"},
	/* LF alone (RFC 9112 2.2). */
	{S("HTTP/1.1 200 OK\nContent-Length: 5\n\n"), 0, "200 OK 11 length=5 KL"},
	{S(OK "Content-Length: 5\n\r\n"), 0, "200 OK 11 length=5 KL"},
};

static void responses_that_are_accepted(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(accepted); i++) {
		parse_all(&got, accepted[i].in, false, accepted[i].opt);
		if (got.result != H1_DONE || strcmp(got.line, accepted[i].line) != 0)
			tap_fail("\"%.*s\": got %s \"%s\", want \"%s\"", STR_FMT(accepted[i].in),
				error_names[got.error], got.line, accepted[i].line);
	}
}

struct refused {
	struct str in;
	enum h1_error error;
};

static const struct refused refused[] = {
	{S("\r\n" OK "\r\n"), H1_E_STATUS_LINE},
	{S(" HTTP/1.1 200 OK\r\n\r\n"), H1_E_STATUS_LINE},
	{S("HTTP/1.1  200 OK\r\n\r\n"), H1_E_STATUS_LINE},
	{S("HTTP/1.1 200OK\r\n\r\n"), H1_E_STATUS_LINE},
	{S("HTTP/1.1 20 OK\r\n\r\n"), H1_E_STATUS_LINE},
	{S("HTTP/1.1 2000 OK\r\n\r\n"), H1_E_STATUS_LINE},
	{S("HTTP/1.1 099 OK\r\n\r\n"), H1_E_STATUS_LINE},
	{S("HTTP/1.1 1000 OK\r\n\r\n"), H1_E_STATUS_LINE},
	{S("HTTP/1.1 -20 OK\r\n\r\n"), H1_E_STATUS_LINE},
	{S("HTTP/1.1 2x0 OK\r\n\r\n"), H1_E_STATUS_LINE},
	{S("HTTP/1.1\r\n\r\n"), H1_E_STATUS_LINE},
	{S("HTTP/1.1 \r\n\r\n"), H1_E_STATUS_LINE},
	{S("HTTP/1.2 200 OK\r\n\r\n"), H1_E_STATUS_LINE},
	{S("HTTP/2.0 200 OK\r\n\r\n"), H1_E_STATUS_LINE},
	{S("HTTP/2 200 OK\r\n\r\n"), H1_E_STATUS_LINE},
	{S("http/1.1 200 OK\r\n\r\n"), H1_E_STATUS_LINE},
	{S("ICY 200 OK\r\n\r\n"), H1_E_STATUS_LINE},
	{S("<html>"), H1_E_STATUS_LINE},
	{S("SSH-2.0-x\r\n"), H1_E_STATUS_LINE},
	{S("HTTP/1.1 200 O\0K\r\n\r\n"), H1_E_STATUS_LINE},
	{S("HTTP/1.1 200 O\rK\r\n\r\n"), H1_E_STATUS_LINE},
	{S(OK "X: y\r\r\n\r\n"), H1_E_FIELD_VALUE},
	{S(OK "X: y\rz\n\n"), H1_E_FIELD_VALUE},
	{S(OK "X: a\rb\r\n\r\n"), H1_E_FIELD_VALUE},
	{S(OK "X: a\0b\r\n\r\n"), H1_E_FIELD_VALUE},
	{S(OK "X : a\r\n\r\n"), H1_E_FIELD_NAME},
	{S(OK "X\r\n\r\n"), H1_E_FIELD_NAME},
	{S(OK ": a\r\n\r\n"), H1_E_FIELD_NAME},
	{S(OK "Content-Length: -1\r\n\r\n"), H1_E_LENGTH},
	{S(OK "Content-Length: 5, 6\r\n\r\n"), H1_E_TWO_LENGTHS},
	{S(OK "Content-Length: 5 5\r\n\r\n"), H1_E_LENGTH},
	{S(OK "Content-Length: 5, 5\r\nContent-Length: 6, 6\r\n\r\n"), H1_E_TWO_LENGTHS},
	{S(OK "Content-Length: ,\r\n\r\n"), H1_E_TWO_LENGTHS},
	{S(OK "Content-Length: +5\r\n\r\n"), H1_E_LENGTH},
	{S(OK "Content-Length: x\r\nTransfer-Encoding: chunked\r\n\r\n"), H1_E_LENGTH},
	{S(OK "Content-Length: 5\r\nContent-Length: 6\r\n\r\n"), H1_E_TWO_LENGTHS},
	{S(OK "Content-Length: 5\r\nContent-Length: 05\r\n\r\n"), H1_E_TWO_LENGTHS},
	{S(OK "Content-Length: 5\r\nX: y\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"),
		H1_E_TWO_LENGTHS},
	{S(OK "Transfer-Encoding: gzip\r\n\r\n"), H1_E_ENCODING},
	{S(OK "Transfer-Encoding: gzip, chunked\r\n\r\n"), H1_E_ENCODING},
	{S(OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"), H1_E_ENCODING},
	{S("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), H1_E_ENCODING_10},
	{S("HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"), H1_E_SWITCHING},
	{S(OK " X: y\r\n\r\n"), H1_E_FOLD},
	{S(OK "Content-Length: 5\r\n 6\r\n\r\n"), H1_E_FOLD},
	{S(OK "Transfer-Encoding: chunked\r\n\t\r\n\r\n"), H1_E_FOLD},
	{S(OK "Connection: x\r\n close\r\n\r\n"), H1_E_FOLD},
	{S(OK "X: y\r\n a\0b\r\n\r\n"), H1_E_FIELD_VALUE},
	{S(OK "Connection: content-length\r\n\r\n"), H1_E_NOMINATION},
};

static void responses_that_are_refused(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		parse_all(&got, refused[i].in, false, 0);
		if (got.result != H1_ERROR || got.error != refused[i].error)
			tap_fail("\"%.*s\": got %s, want %s", STR_FMT(refused[i].in),
				error_names[got.error], error_names[refused[i].error]);
	}
}

static void switching_needs_the_question_and_the_answer(void)
{
	parse_all(&got, STR("HTTP/1.1 101 S\r\n\r\n"), false, H1_UPGRADE_ASKED);
	check_int(got.error, H1_E_SWITCHING);
	parse_all(
		&got, STR("HTTP/1.1 101 S\r\nUpgrade: websocket\r\n\r\n"), false, H1_UPGRADE_ASKED);
	check_int(got.error, H1_E_SWITCHING);
}

static void folded_lines_become_one(void)
{
	static const struct {
		struct str in;
		const char *fields;
	} cases[] = {
		{S(OK "X: a\r\n b\r\n\r\n"), "|X:a   b"},
		{S(OK "X: a \r\n\tb\t\r\n\r\n"), "|X:a    b"},
		{S(OK "X: a\r\n b\r\n  c\r\nY: d\r\n\r\n"), "|X:a   b    c|Y:d"},
		{S(OK "X:\r\n a\r\n\r\n"), "|X:a"},
		{S(OK "X: a\r\n \r\n\r\n"), "|X:a"},
		{S(OK "X: a\r\n \t\r\n b\r\n\r\n"), "|X:a       b"},
		{S(OK "X:\r\n \r\n\r\n"), "|X:"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		parse_all(&got, cases[i].in, false, 0);
		check_int(got.result, H1_DONE);
		check_z(got.fields, cases[i].fields);
	}
}

static void a_folded_value_has_a_limit(void)
{
	_cleanup_(buf_donep) struct buf in = BUF_INIT(1000000);

	show(&in, OK "X: %020000d\r\n %020000d\r\n\r\n", 1, 1);
	parse_all(&got, buf_str(&in), false, 0);
	check_int(got.error, H1_E_LINE_TOO_LONG);
}

static void a_long_reason_is_refused(void)
{
	for (int over = 0; over <= 1; over++) {
		_cleanup_(buf_donep) struct buf in = BUF_INIT(1000000);

		show(&in, "HTTP/1.1 200 %0*d\r\n\r\n", HTTP_REASON_MAX + over, 1);
		parse_all(&got, buf_str(&in), false, 0);
		check_int(got.error, over ? H1_E_STATUS_LINE : H1_E_OK);
	}
}

static void interim_answers_are_counted(void)
{
	_cleanup_(http_head_donep) struct http_head head = HTTP_HEAD_INIT;
	struct h1_parser p;
	size_t used;
	int n = 0;

	h1_parser_response(&p, &head, 0);
	while (h1_parse(&p, STR("HTTP/1.1 100 Continue\r\n\r\n"), &used) == H1_DONE && n < 1000) {
		check_int(head.status, 100);
		h1_parser_next(&p);
		n++;
	}
	check_int(n, HTTP_INTERIM_MAX + 1);
	check_int(p.error, H1_E_TOO_MANY_INTERIM);

	h1_parser_response(&p, &head, H1_TO_HEAD);
	check_int(h1_parse(&p, STR("HTTP/1.1 103 x\r\nLink: y\r\n\r\n"), &used), H1_DONE);
	h1_parser_next(&p);
	check_int(h1_parse(&p, STR(OK "Content-Length: 9\r\n\r\n"), &used), H1_DONE);
	check_int(head.fields.n, 1);
	check_int(head.body, HTTP_BODY_NONE);
	check_int(head.content_length, 9);
}

int main(void)
{
	run_test(responses_that_are_accepted);
	run_test(responses_that_are_refused);
	run_test(switching_needs_the_question_and_the_answer);
	run_test(folded_lines_become_one);
	run_test(a_folded_value_has_a_limit);
	run_test(a_long_reason_is_refused);
	run_test(interim_answers_are_counted);
	return tap_done();
}
