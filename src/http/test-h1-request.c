/* SPDX-License-Identifier: Apache-2.0 */
#include "http/test-support.h"
#include "tap.h"

#include <ctype.h>
#include <stdint.h>

#define S(lit)                                                                                     \
	{                                                                                          \
		lit, sizeof(lit) - 1                                                               \
	}
#define H "Host: a\r\n"
#define GET "GET / HTTP/1.1\r\n"
#define POST "POST / HTTP/1.1\r\n" H

static struct outcome got;

static void expect_error(struct str in, enum h1_error want)
{
	parse_all(&got, in, true, 0);
	if (got.result != H1_ERROR || got.error != want)
		tap_fail("\"%.*s\": got %s %s, want %s", STR_FMT(str_prefix(in, 200)),
			got.result == H1_DONE ? "done" : "", error_names[got.error],
			error_names[want]);
	/* No prefix of a refused head is a whole head. */
	check(h1_error_status(want) >= 400 && h1_error_text(want)[0] != '\0');
}

static void expect_line(struct str in, const char *want)
{
	parse_all(&got, in, true, 0);
	if (got.result != H1_DONE || strcmp(got.line, want) != 0)
		tap_fail("\"%.*s\": got %s \"%s\", want \"%s\"", STR_FMT(str_prefix(in, 200)),
			error_names[got.error], got.line, want);
}

struct accepted {
	struct str in;
	const char *line;
};

static const struct accepted accepted[] = {
	{S(GET H "\r\n"), "GET a:0 / 11 none K"},
	{S("\r\n" GET H "\r\n"), "GET a:0 / 11 none K"},
	{S(GET "Host: a:8080\r\n\r\n"), "GET a:8080 / 11 none K"},
	{S(GET "Host: a:65535\r\n\r\n"), "GET a:65535 / 11 none K"},
	{S(GET "Host: a.b-c_d.example.\r\n\r\n"), "GET a.b-c_d.example.:0 / 11 none K"},
	{S(GET "Host: [::1]\r\n\r\n"), "GET [::1]:0 / 11 none K"},
	{S(GET "Host: [2001:db8::1]:443\r\n\r\n"), "GET [2001:db8::1]:443 / 11 none K"},
	{S(GET "Host: 127.0.0.1:80\r\n\r\n"), "GET 127.0.0.1:80 / 11 none K"},
	{S(GET "hOsT:a\r\n\r\n"), "GET a:0 / 11 none K"},
	{S(GET "Host:\t a \t\r\n\r\n"), "GET a:0 / 11 none K"},
	{S("GET /a/b?c=d&e HTTP/1.1\r\n" H "\r\n"), "GET a:0 /a/b?c=d&e 11 none K"},
	{S("GET //x/../y;z%2f%zz\\|\"<>^`{} HTTP/1.1\r\n" H "\r\n"),
		"GET a:0 //x/../y;z%2f%zz\\|\"<>^`{} 11 none K"},
	{S("M-SEARCH!#$%&'* / HTTP/1.1\r\n" H "\r\n"), "M-SEARCH!#$%&'* a:0 / 11 none K"},
	{S("ABCDEFGHIJKLMNOP / HTTP/1.1\r\n" H "\r\n"), "ABCDEFGHIJKLMNOP a:0 / 11 none K"},
	{S("get / HTTP/1.1\r\n" H "\r\n"), "get a:0 / 11 none K"},
	{S("OPTIONS * HTTP/1.1\r\n" H "\r\n"), "OPTIONS a:0 * 11 none K"},
	{S("TRACE / HTTP/1.1\r\n" H "\r\n"), "TRACE a:0 / 11 none KR"},
	{S("CONNECT b.example:443 HTTP/1.1\r\nHost: b.example:443\r\n\r\n"),
		"CONNECT b.example:443 b.example:443 11 none KC"},
	{S("CONNECT [::1]:22 HTTP/1.1\r\n" H "\r\n"), "CONNECT [::1]:22 [::1]:22 11 none KC"},
	/* Characters beyond ASCII in a query */
	{S("GET /a?q=\xc3\xa9&x=%C3\xe2\x82\xac HTTP/1.1\r\n" H "\r\n"),
		"GET a:0 /a?q=%C3%A9&x=%C3%E2%82%AC 11 none K"},
	{S("GET http://a?\xc3\xa9 HTTP/1.1\r\n" H "\r\n"), "GET a:0 /?%C3%A9 11 none KA"},
	/* Absolute form */
	{S("GET http://a/p?q HTTP/1.1\r\n" H "\r\n"), "GET a:0 /p?q 11 none KA"},
	{S("GET http://A/p HTTP/1.1\r\n" H "\r\n"), "GET a:0 /p 11 none KA"},
	{S("GET HTTP://a HTTP/1.1\r\n" H "\r\n"), "GET a:0 / 11 none KA"},
	{S("GET http://a?q=/ HTTP/1.1\r\n" H "\r\n"), "GET a:0 /?q=/ 11 none KA"},
	{S("GET http://a:80/ HTTP/1.1\r\n" H "\r\n"), "GET a:0 / 11 none KA"},
	{S("GET https://a/ HTTP/1.1\r\nHost: a:443\r\n\r\n"), "GET a:443 / 11 none KA"},
	{S("GET http://[::1]:8/x HTTP/1.1\r\nHost: [::1]:8\r\n\r\n"), "GET [::1]:8 /x 11 none KA"},
	{S("OPTIONS http://a HTTP/1.1\r\n" H "\r\n"), "OPTIONS a:0 * 11 none KA"},
	{S("OPTIONS http://a/ HTTP/1.1\r\n" H "\r\n"), "OPTIONS a:0 / 11 none KA"},
	{S("GET http://a//evil/ HTTP/1.1\r\n" H "\r\n"), "GET a:0 //evil/ 11 none KA"},
	/* Versions and connection */
	{S("GET / HTTP/1.0\r\n" H "\r\n"), "GET a:0 / 10 none "},
	{S("GET / HTTP/1.0\r\n" H "Connection: Keep-Alive\r\n\r\n"), "GET a:0 / 10 none K"},
	{S("GET / HTTP/1.0\r\n" H "Connection: keep-alive, close\r\n\r\n"), "GET a:0 / 10 none "},
	{S(GET H "Connection: close\r\n\r\n"), "GET a:0 / 11 none "},
	{S(GET H "Connection: CLOSE\r\n\r\n"), "GET a:0 / 11 none "},
	{S(GET H "Connection: ,, foo ,\tclose,\r\n\r\n"), "GET a:0 / 11 none "},
	{S(GET H "Connection: x\r\nConnection: close\r\n\r\n"), "GET a:0 / 11 none "},
	{S(GET H "Connection: closed\r\n\r\n"), "GET a:0 / 11 none K"},
	{S(GET H "Connection:\r\n\r\n"), "GET a:0 / 11 none K"},
	/* Framing */
	{S(POST "Content-Length: 5\r\n\r\n"), "POST a:0 / 11 length=5 KL"},
	{S(POST "content-length:  0012 \r\n\r\n"), "POST a:0 / 11 length=12 KL"},
	{S(POST "Content-Length: 0\r\n\r\n"), "POST a:0 / 11 none=0 KL"},
	{S(POST "Content-Length: 9223372036854775807\r\n\r\n"),
		"POST a:0 / 11 length=9223372036854775807 KL"},
	{S(POST "Transfer-Encoding: chunked\r\n\r\n"), "POST a:0 / 11 chunked K"},
	{S(POST "transfer-encoding:Chunked\r\n\r\n"), "POST a:0 / 11 chunked K"},
	{S(POST "TE: chunked\r\n\r\n"), "POST a:0 / 11 none K"},
	{S(GET H "Content-Length: 3\r\n\r\n"), "GET a:0 / 11 length=3 KL"},
	{S(POST "Content-Type: 5\r\nX-Content-Length: 7\r\n\r\n"), "POST a:0 / 11 none K"},
	/* Expectations, upgrades, trailers */
	{S(POST "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n"), "POST a:0 / 11 length=5 KLE"},
	{S(POST "Content-Length: 5\r\nExpect: 100-Continue\r\n\r\n"), "POST a:0 / 11 length=5 KLE"},
	{S(POST "Content-Length: 0\r\nExpect: 100-continue\r\n\r\n"), "POST a:0 / 11 none=0 KL"},
	{S("POST / HTTP/1.0\r\n" H "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n"),
		"POST a:0 / 10 length=5 L"},
	{S(POST "Expect: tea\r\n\r\n"), "POST a:0 / 11 none KX"},
	{S(POST "Content-Length: 5\r\nExpect: 100-continue\r\nExpect: 100-continue\r\n\r\n"),
		"POST a:0 / 11 length=5 KLX"},
	{S(GET H "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"), "GET a:0 / 11 none KUW"},
	{S(GET H "Connection: keep-alive, upgrade\r\nUpgrade: WebSocket\r\n\r\n"),
		"GET a:0 / 11 none KUW"},
	{S(GET H "Upgrade: websocket\r\n\r\n"), "GET a:0 / 11 none K"},
	{S(GET H "Connection: upgrade\r\n\r\n"), "GET a:0 / 11 none K"},
	{S(GET H "Connection: upgrade\r\nUpgrade: websocket, x\r\n\r\n"), "GET a:0 / 11 none KU"},
	{S(GET H "Connection: upgrade\r\nUpgrade: websocket\r\nUpgrade: x\r\n\r\n"),
		"GET a:0 / 11 none KU"},
	{S("GET / HTTP/1.0\r\n" H "Connection: upgrade\r\nUpgrade: websocket\r\n\r\n"),
		"GET a:0 / 10 none "},
	{S(GET H "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: "
		 "AAM\r\n\r\n"),
		"GET a:0 / 11 none KU2"},
	{S(GET H "HTTP2-Settings: AAM\r\n\r\n"), "GET a:0 / 11 none K2"},
	{S(GET H "Upgrade: x, H2C\r\n\r\n"), "GET a:0 / 11 none K2"},
	{S(GET H "TE: trailers\r\n\r\n"), "GET a:0 / 11 none KT"},
	{S(GET H "TE: gzip, Trailers\r\nConnection: TE\r\n\r\n"), "GET a:0 / 11 none KT"},
};

static void requests_that_are_accepted(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(accepted); i++)
		expect_line(accepted[i].in, accepted[i].line);
}

struct refused {
	struct str in;
	enum h1_error error;
};

/* INV-UNDECIDABLE: what two programs could read in two ways. */
static const struct refused refused[] = {
	/* Line ends */
	{S("GET / HTTP/1.1\n" H "\r\n"), H1_E_LINE_END},
	{S(GET "Host: a\n\r\n"), H1_E_LINE_END},
	{S(GET H "\n"), H1_E_LINE_END},
	{S(GET H "X: y\n\r\n"), H1_E_LINE_END},
	{S(GET H "X: y\r\r\n\r\n"), H1_E_FIELD_VALUE},
	{S(GET H "X: a\rb\r\n\r\n"), H1_E_FIELD_VALUE},
	{S(GET H "X: a\rSmuggled: b\r\n\r\n"), H1_E_FIELD_VALUE},
	{S(GET H "\r\r\n\r\n"), H1_E_FIELD_NAME},
	{S(GET H "\rX\r\n\r\n"), H1_E_FIELD_NAME},
	{S("GET / HTTP/1.1\r\r\n" H "\r\n"), H1_E_REQUEST_LINE},
	{S("GET /\rx HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET},
	{S("\r\n\r\n" GET H "\r\n"), H1_E_EMPTY_LINES},
	{S("\n" GET H "\r\n"), H1_E_METHOD},
	{S("\rGET / HTTP/1.1\r\n" H "\r\n"), H1_E_LINE_END},
	{S(" " GET H "\r\n"), H1_E_METHOD},
	/* Request line */
	{S("GET\r\n" H "\r\n"), H1_E_METHOD},
	{S("GET \r\n" H "\r\n"), H1_E_REQUEST_LINE},
	{S("GET /\r\n" H "\r\n"), H1_E_REQUEST_LINE},
	{S("GET / \r\n" H "\r\n"), H1_E_REQUEST_LINE},
	{S("GET  / HTTP/1.1\r\n" H "\r\n"), H1_E_REQUEST_LINE},
	{S("GET /  HTTP/1.1\r\n" H "\r\n"), H1_E_REQUEST_LINE},
	{S("GET / HTTP/1.1 \r\n" H "\r\n"), H1_E_REQUEST_LINE},
	{S("GET /a b HTTP/1.1\r\n" H "\r\n"), H1_E_REQUEST_LINE},
	{S("GET\t/ HTTP/1.1\r\n" H "\r\n"), H1_E_METHOD},
	{S("GET /\tHTTP/1.1\r\n" H "\r\n"), H1_E_REQUEST_LINE},
	{S("G\0T / HTTP/1.1\r\n" H "\r\n"), H1_E_METHOD},
	{S("G(T / HTTP/1.1\r\n" H "\r\n"), H1_E_METHOD},
	{S("G:T / HTTP/1.1\r\n" H "\r\n"), H1_E_METHOD},
	{S("ABCDEFGHIJKLMNOPQ / HTTP/1.1\r\n" H "\r\n"), H1_E_METHOD_TOO_LONG},
	{S("GET / http/1.1\r\n" H "\r\n"), H1_E_REQUEST_LINE},
	{S("GET / HTTP/1\r\n" H "\r\n"), H1_E_REQUEST_LINE},
	{S("GET / HTTP/11\r\n" H "\r\n"), H1_E_REQUEST_LINE},
	{S("GET / HTTP/1.11\r\n" H "\r\n"), H1_E_REQUEST_LINE},
	{S("GET / HTTP/1,1\r\n" H "\r\n"), H1_E_REQUEST_LINE},
	{S("GET / HTTP/x.1\r\n" H "\r\n"), H1_E_REQUEST_LINE},
	{S("GET / HTTPS/1.1\r\n" H "\r\n"), H1_E_REQUEST_LINE},
	{S("GET / ICY/1.1\r\n" H "\r\n"), H1_E_REQUEST_LINE},
	{S("GET / HTTP/1.2\r\n" H "\r\n"), H1_E_VERSION},
	{S("GET / HTTP/0.9\r\n" H "\r\n"), H1_E_VERSION},
	{S("GET / HTTP/2.0\r\n" H "\r\n"), H1_E_VERSION},
	{S("GET / HTTP/3.0\r\n" H "\r\n"), H1_E_VERSION},
	{S("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), H1_E_H2_PREFACE},
	{S("PRI * HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET_FORM},
	/* Not HTTP */
	{S("\x16\x03\x01\x02\x00\x01\x00"), H1_E_METHOD},
	{S("\x05\x01\x00"), H1_E_METHOD},
	{S("\x04\x01\x00\x50"), H1_E_METHOD},
	{S("SSH-2.0-OpenSSH_9.2p1 Debian\r\n"), H1_E_METHOD_TOO_LONG},
	{S("EHLO me\r\n"), H1_E_REQUEST_LINE},
	{S("\0\0\0\0"), H1_E_METHOD},
	/* Targets */
	{S("GET x HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET_FORM},
	{S("GET * HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET_FORM},
	{S("OPTIONS *x HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET_FORM},
	{S("GET ?x HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET_FORM},
	{S("GET a:80 HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET_FORM},
	{S("GET a.b HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET_FORM},
	{S("GET ftp://a/ HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET_FORM},
	{S("GET http:/a/ HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET_FORM},
	{S("GET http:a HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET_FORM},
	{S("GET http:///x HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET},
	{S("GET http://u@a/ HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET},
	{S("GET http://a:b@a/ HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET},
	{S("GET http://a:/ HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET},
	{S("GET http://a:0/ HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET},
	{S("GET http://a\\b/ HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET},
	{S("GET http://evil/ HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET_HOST},
	{S("GET http://a:81/ HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET_HOST},
	{S("GET https://a:80/ HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET_HOST},
	{S("GET http://a./ HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET_HOST},
	{S("GET http://a/ HTTP/1.1\r\nHost: a:443\r\n\r\n"), H1_E_TARGET_HOST},
	{S("GET http://a#b/ HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET},
	{S("GET /#x HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET},
	{S("GET /\x80 HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET},
	{S("GET /\xc3\xa9 HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET},
	{S("GET /\xc3\xa9?\xc3\xa9 HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET},
	{S("GET /?\xe9 HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET},
	{S("GET /?\xed\xa0\x80 HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET},
	{S("GET /?\xc3\xa9#x HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET},
	{S("GET \xc3\xa9?\xc3\xa9 HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET},
	{S("GET /\x7f HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET},
	{S("GET /\0 HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET},
	{S("CONNECT / HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET_FORM},
	{S("CONNECT a HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET_FORM},
	{S("CONNECT a:0 HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET_FORM},
	{S("CONNECT http://a:1/ HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET_FORM},
	{S("CONNECT * HTTP/1.1\r\n" H "\r\n"), H1_E_TARGET_FORM},
	/* Field lines */
	{S(GET H ": x\r\n\r\n"), H1_E_FIELD_NAME},
	{S(GET H "X\r\n\r\n"), H1_E_FIELD_NAME},
	{S(GET H "X y: z\r\n\r\n"), H1_E_FIELD_NAME},
	{S(GET H "X : y\r\n\r\n"), H1_E_FIELD_NAME},
	{S(GET H "X\t: y\r\n\r\n"), H1_E_FIELD_NAME},
	{S(GET H "X\0Y: z\r\n\r\n"), H1_E_FIELD_NAME},
	{S(GET H "X[]: z\r\n\r\n"), H1_E_FIELD_NAME},
	{S(GET H "X\x80: z\r\n\r\n"), H1_E_FIELD_NAME},
	{S(GET H "Content-Length : 5\r\n\r\n"), H1_E_FIELD_NAME},
	{S(GET " X: y\r\n" H "\r\n"), H1_E_FOLD},
	{S(GET "\tX: y\r\n" H "\r\n"), H1_E_FOLD},
	{S(GET H "X: a\r\n b\r\n\r\n"), H1_E_FOLD},
	{S(GET H "X: a\r\n\tb\r\n\r\n"), H1_E_FOLD},
	{S(GET H " \r\n\r\n"), H1_E_FOLD},
	{S(GET H "X: a\0b\r\n\r\n"), H1_E_FIELD_VALUE},
	{S(GET H "X: a\x01\r\n\r\n"), H1_E_FIELD_VALUE},
	{S(GET H "X: a\x7f\r\n\r\n"), H1_E_FIELD_VALUE},
	{S(GET H "X: a\x0b\r\n\r\n"), H1_E_FIELD_VALUE},
	/* Host */
	{S(GET "\r\n"), H1_E_NO_HOST},
	{S("GET / HTTP/1.0\r\n\r\n"), H1_E_NO_HOST},
	{S("GET http://a/ HTTP/1.1\r\n\r\n"), H1_E_NO_HOST},
	{S(GET H H "\r\n"), H1_E_TWO_HOSTS},
	{S(GET H "hosT: b\r\n\r\n"), H1_E_TWO_HOSTS},
	{S(GET "Host:\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: \t\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: a,b\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: a b\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: a@b\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: a/b\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: a\\b\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: a?b\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: a#b\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: a%2fb\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: a%00b\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: a:b\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: a:\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: a:0\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: a:080\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: a:+80\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: a:65536\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: a:80:80\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: :80\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: .a\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: a..b\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: a..\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: .\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: [::1\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: [::1]x\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: [::1%25eth0]\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: [v1.x]\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: []\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: ::1\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: http://a\r\n\r\n"), H1_E_HOST},
	{S(GET "Host: \xc3\xa4.example\r\n\r\n"), H1_E_HOST},
	/* Content-Length and Transfer-Encoding */
	{S(POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"),
		H1_E_LENGTH_AND_ENCODING},
	{S(POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"),
		H1_E_LENGTH_AND_ENCODING},
	{S(POST "Transfer-Encoding: identity\r\nContent-Length: 5\r\n\r\n"),
		H1_E_LENGTH_AND_ENCODING},
	{S(POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n"), H1_E_TWO_LENGTHS},
	{S(POST "Content-Length: 5\r\ncontent-length: 6\r\n\r\n"), H1_E_TWO_LENGTHS},
	{S(POST "Content-Length: 5, 5\r\n\r\n"), H1_E_LENGTH},
	{S(POST "Content-Length: 5,\r\n\r\n"), H1_E_LENGTH},
	{S(POST "Content-Length:\r\n\r\n"), H1_E_LENGTH},
	{S(POST "Content-Length: +5\r\n\r\n"), H1_E_LENGTH},
	{S(POST "Content-Length: -5\r\n\r\n"), H1_E_LENGTH},
	{S(POST "Content-Length: 0x5\r\n\r\n"), H1_E_LENGTH},
	{S(POST "Content-Length: 5_0\r\n\r\n"), H1_E_LENGTH},
	{S(POST "Content-Length: 5 0\r\n\r\n"), H1_E_LENGTH},
	{S(POST "Content-Length: 5.0\r\n\r\n"), H1_E_LENGTH},
	{S(POST "Content-Length: 1e3\r\n\r\n"), H1_E_LENGTH},
	{S(POST "Content-Length: \"5\"\r\n\r\n"), H1_E_LENGTH},
	{S(POST "Content-Length: 9223372036854775808\r\n\r\n"), H1_E_LENGTH},
	{S(POST "Content-Length: 18446744073709551616\r\n\r\n"), H1_E_LENGTH},
	{S(POST "Content-Length: 18446744073709551621\r\n\r\n"), H1_E_LENGTH},
	{S(POST "Content-Length: 5\x0b\r\n\r\n"), H1_E_FIELD_VALUE},
	{S(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"), H1_E_ENCODING},
	{S(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n"),
		H1_E_ENCODING},
	{S(POST "Transfer-Encoding: chunked, identity\r\n\r\n"), H1_E_ENCODING},
	{S(POST "Transfer-Encoding: identity, chunked\r\n\r\n"), H1_E_ENCODING},
	{S(POST "Transfer-Encoding: chunked, chunked\r\n\r\n"), H1_E_ENCODING},
	{S(POST "Transfer-Encoding: gzip, chunked\r\n\r\n"), H1_E_ENCODING},
	{S(POST "Transfer-Encoding: xchunked\r\n\r\n"), H1_E_ENCODING},
	{S(POST "Transfer-Encoding: chunkedx\r\n\r\n"), H1_E_ENCODING},
	{S(POST "Transfer-Encoding: chunked;q=1\r\n\r\n"), H1_E_ENCODING},
	{S(POST "Transfer-Encoding: \"chunked\"\r\n\r\n"), H1_E_ENCODING},
	{S(POST "Transfer-Encoding: ,chunked\r\n\r\n"), H1_E_ENCODING},
	{S(POST "Transfer-Encoding: chunked,\r\n\r\n"), H1_E_ENCODING},
	{S(POST "Transfer-Encoding:\r\n\r\n"), H1_E_ENCODING},
	{S(POST "Transfer-Encoding: identity\r\n\r\n"), H1_E_ENCODING},
	{S(POST "Transfer-Encoding: \x0b"
		"chunked\r\n\r\n"),
		H1_E_FIELD_VALUE},
	{S(POST "Transfer-Encoding : chunked\r\n\r\n"), H1_E_FIELD_NAME},
	{S(POST "Transfer-Encoding: \xa0"
		"chunked\r\n\r\n"),
		H1_E_ENCODING},
	{S("POST / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n"), H1_E_ENCODING_10},
	/* Connection */
	{S(GET H "Connection: Host\r\n\r\n"), H1_E_NOMINATION},
	{S(GET H "Connection: close, authorization\r\n\r\n"), H1_E_NOMINATION},
	{S(GET H "Connection: X-Amz-Date\r\n\r\n"), H1_E_NOMINATION},
	{S(GET H "Connection: Content-Length\r\n\r\n"), H1_E_NOMINATION},
	{S(GET H "Connection: Content-Type\r\n\r\n"), H1_E_NOMINATION},
	{S(GET H "Connection: Transfer-Encoding\r\n\r\n"), H1_E_NOMINATION},
	{S(GET H "Connection: Cookie\r\n\r\n"), H1_E_NOMINATION},
	{S(GET H "Connection: Date\r\n\r\n"), H1_E_NOMINATION},
	{S(GET H "Connection: Expect\r\n\r\n"), H1_E_NOMINATION},
	{S(GET H "Connection: Trailer\r\n\r\n"), H1_E_NOMINATION},
	{S(GET H "Connection: Proxy-Authorization\r\n\r\n"), H1_E_NOMINATION},
	{S(GET H "Connection: a b\r\n\r\n"), H1_E_CONNECTION},
	{S(GET H "Connection: close;x\r\n\r\n"), H1_E_CONNECTION},
	{S(GET H "Connection: \"close\"\r\n\r\n"), H1_E_CONNECTION},
};

static void requests_that_are_refused(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		expect_error(refused[i].in, refused[i].error);
}

/* What follows the head is left where it is, and no proper prefix of a head is complete. */
static void the_head_ends_exactly(void)
{
	static const char head[] = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n";
	static const char with_more[] = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: "
					"5\r\n\r\nhelloGET / HTTP/1.1\r\n\r\n";

	parse_all(&got, str_from(with_more), true, 0);
	check_int(got.result, H1_DONE);
	check_int(got.used, sizeof(head) - 1);
	for (size_t n = 0; n < sizeof(head) - 1; n++) {
		parse_all(&got, str_make(head, n), true, 0);
		check_int(got.result, H1_MORE);
		check_int(got.used, n);
	}
}

static bool is_tchar(unsigned char c)
{
	return c < 0x80 && (isalnum(c) || (c && strchr("!#$%&'*+-.^_`|~", c)));
}

/* Puts each of the 256 bytes between two parts and compares with the grammar. */
static void every_byte_in_every_place(void)
{
	static const struct {
		const char *before, *after;
		char place;
	} places[] = {
		{"G", "T / HTTP/1.1\r\nHost: a\r\n\r\n", 'm'},
		{"GET /x", "y HTTP/1.1\r\nHost: a\r\n\r\n", 't'},
		{"GET / HTTP/1.1\r\nHost: a\r\nX", "Y: z\r\n\r\n", 'n'},
		{"GET / HTTP/1.1\r\nHost: a\r\nX: y", "z\r\n\r\n", 'v'},
		{"GET / HTTP/1.1\r\nHost: a", "b\r\n\r\n", 'h'},
		{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1", "2\r\n\r\n", 'l'},
	};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		for (unsigned c = 0; c < 256; c++) {
			_cleanup_(buf_donep) struct buf in = BUF_INIT(1000);
			char place = places[i].place;
			bool want = false;

			must(buf_add_str(&in, str_from(places[i].before)) == 0);
			must(buf_add_char(&in, (char)c) == 0);
			must(buf_add_str(&in, str_from(places[i].after)) == 0);
			if (place == 'm')
				want = is_tchar((unsigned char)c);
			else if (place == 't')
				want = c > 0x20 && c < 0x7f && c != '#';
			else if (place == 'n')
				want = is_tchar((unsigned char)c) || c == ':';
			else if (place == 'v')
				want = c == '\t' || (c >= 0x20 && c != 0x7f);
			else if (place == 'h')
				want = c < 0x80 && c && (isalnum((int)c) || strchr("-._", (int)c));
			else
				want = c >= '0' && c <= '9';
			parse_all(&got, buf_str(&in), true, 0);
			if ((got.result == H1_DONE) != want)
				tap_fail("byte 0x%02x at place %c: %s", c, place,
					error_names[got.error]);
		}
	}
}

/* A head with a target of t bytes, n more fields whose names are `name` and values `value` long. */
static void build(struct buf *b, size_t t, unsigned n, size_t name, size_t value)
{
	show(b, "GET /");
	for (size_t i = 1; i < t; i++)
		must(buf_add_char(b, 'x') == 0);
	show(b, " HTTP/1.1\r\nHost: a\r\n");
	for (unsigned i = 0; i < n; i++) {
		for (size_t k = 0; k < name; k++)
			must(buf_add_char(b, 'n') == 0);
		must(buf_add_char(b, ':') == 0);
		for (size_t k = 0; k < value; k++)
			must(buf_add_char(b, 'v') == 0);
		show(b, "\r\n");
	}
	show(b, "\r\n");
}

static void limits_hold_to_the_byte(void)
{
	static const struct {
		size_t target;
		unsigned fields;
		size_t name, value;
		enum h1_error error;
	} cases[] = {
		{HTTP_TARGET_MAX, 0, 0, 0, H1_E_OK},
		{HTTP_TARGET_MAX + 1, 0, 0, 0, H1_E_TARGET_TOO_LONG},
		{HTTP_TARGET_MAX + 100, 0, 0, 0, H1_E_TARGET_TOO_LONG},
		{100000, 0, 0, 0, H1_E_TARGET_TOO_LONG},
		{1, 1, HTTP_NAME_MAX, 1, H1_E_OK},
		{1, 1, HTTP_NAME_MAX + 1, 1, H1_E_FIELD_NAME_TOO_LONG},
		{1, 1, 1, HTTP_LINE_MAX - 2, H1_E_OK},
		{1, 1, 1, HTTP_LINE_MAX - 1, H1_E_LINE_TOO_LONG},
		{1, 1, 1, HTTP_LINE_MAX, H1_E_LINE_TOO_LONG},
		{1, 1, 1, 1000000, H1_E_LINE_TOO_LONG},
		{1, HTTP_FIELDS_MAX - 1, 4, 4, H1_E_OK},
		{1, HTTP_FIELDS_MAX, 4, 4, H1_E_TOO_MANY_FIELDS},
		{1, 10000, 4, 4, H1_E_TOO_MANY_FIELDS},
		/* 16 + 9 + 100 * 653 + 9 + 2 = 65536 with values of 640 */
		{2, 100, 10, 640, H1_E_OK},
		{100, 100, 10, 650, H1_E_HEAD_TOO_LARGE},
		{1, 3, 1, HTTP_LINE_MAX - 2, H1_E_HEAD_TOO_LARGE},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(buf_donep) struct buf in = BUF_INIT(4000000);

		build(&in, cases[i].target, cases[i].fields, cases[i].name, cases[i].value);
		parse_all(&got, buf_str(&in), true, 0);
		if (got.error != cases[i].error)
			tap_fail("limit %zu: got %s, want %s", i, error_names[got.error],
				error_names[cases[i].error]);
	}
}

/* The whole head may have HTTP_HEAD_MAX bytes and not one more. */
static void the_head_limit_is_exact(void)
{
	for (int over = -1; over <= 1; over++) {
		_cleanup_(buf_donep) struct buf in = BUF_INIT(4000000);
		size_t first = sizeof("GET / HTTP/1.1\r\nHost: a\r\n") - 1, left;

		left = HTTP_HEAD_MAX - first - 2 - (20000 + 4) * 3;
		show(&in, "GET / HTTP/1.1\r\nHost: a\r\n");
		for (int i = 0; i < 3; i++)
			show(&in, "n:%0*d\r\n", 20000, 1);
		show(&in, "n:%0*d\r\n\r\n", (int)left - 4 + over, 1);
		check_int(buf_len(&in), HTTP_HEAD_MAX + over);
		parse_all(&got, buf_str(&in), true, 0);
		check_int(got.error, over > 0 ? H1_E_HEAD_TOO_LARGE : H1_E_OK);
	}
}

static void an_endless_line_is_cut_off_early(void)
{
	_cleanup_(http_head_donep) struct http_head head = HTTP_HEAD_INIT;
	struct h1_parser p;
	size_t used, fed = 0;

	h1_parser_request(&p, &head);
	check_int(h1_parse(&p, STR("GET / HTTP/1.1\r\nX: "), &used), H1_MORE);
	while (fed < 1000000 && h1_parse(&p, STR("xxxxxxxxxxxxxxxx"), &used) == H1_MORE)
		fed += 16;
	check(fed <= HTTP_LINE_MAX + 16);
	check_int(p.error, H1_E_LINE_TOO_LONG);
	check(head.fields.text.cap <= 2 * HTTP_HEAD_MAX);
}

static void fields_are_kept_as_they_came(void)
{
	parse_all(&got,
		str_from("GET / HTTP/1.1\r\nHost: a\r\nX-One:  1 \r\nx-one:2\r\nEmpty:\r\n"
			 "Connection: Foo, keep-alive\r\nfoo: 3\r\nKeep-Alive: 5\r\nTE: x\r\n"
			 "Proxy-Connection: x\r\nUpgrade: y\r\nObs: \xff\x80\r\nA: b\tc  d\r\n"
			 "Authorization: Bearer x\r\nProxy-Authorization: y\r\n\r\n"),
		true, 0);
	check_z(got.fields, "|Host:a|X-One:1|x-one:2|Empty:|[Connection:Foo, keep-alive]|[foo:3]"
			    "|[Keep-Alive:5]|[TE:x]|[Proxy-Connection:x]|[Upgrade:y]|Obs:\xff\x80"
			    "|A:b\tc  d|Authorization:Bearer x|Proxy-Authorization:y");
}

/* One head and one parser for many requests: nothing is left over, nothing grows. */
static void a_head_is_used_again(void)
{
	_cleanup_(http_head_donep) struct http_head head = HTTP_HEAD_INIT;
	struct h1_parser p;
	struct str in = STR("POST /1 HTTP/1.1\r\nHost: a\r\nX: y\r\nContent-Length: 4\r\n\r\n"),
		   in2 = STR("GET /2 HTTP/1.1\r\nHost: b\r\n\r\n");
	const char *mem;
	size_t used;

	h1_parser_request(&p, &head);
	check_int(h1_parse(&p, str_prefix(in, 3), &used), H1_MORE);
	check_int(h1_parse(&p, str_from_index(in, 3), &used), H1_DONE);
	check_int(h1_parse(&p, in, &used), H1_DONE);
	check_int(used, 0);
	mem = head.fields.text.mem;
	for (int i = 0; i < 1000; i++) {
		h1_parser_request(&p, &head);
		check_int(h1_parse(&p, i % 2 ? in : in2, &used), H1_DONE);
	}
	check(head.fields.text.mem == mem);
	h1_parser_request(&p, &head);
	check_int(h1_parse(&p, in2, &used), H1_DONE);
	check_int(head.fields.n, 1);
	check_int(head.body, HTTP_BODY_NONE);
	check_str(http_head_host(&head), "b");
}

static void what_was_understood_is_there_for_the_log(void)
{
	_cleanup_(http_head_donep) struct http_head head = HTTP_HEAD_INIT;
	struct h1_parser p;
	size_t used;

	h1_parser_request(&p, &head);
	check_int(h1_parse(&p, STR("PUT /x?y HTTP/1.1\r\nBad Name: z\r\n"), &used), H1_ERROR);
	check_str(http_head_method(&head), "PUT");
	check_str(http_head_target(&head), "/x?y");
	check_int(h1_parse(&p, STR("GET / HTTP/1.1\r\n"), &used), H1_ERROR);
	check_int(used, 0);
}

int main(void)
{
	run_test(requests_that_are_accepted);
	run_test(requests_that_are_refused);
	run_test(the_head_ends_exactly);
	run_test(every_byte_in_every_place);
	run_test(limits_hold_to_the_byte);
	run_test(the_head_limit_is_exact);
	run_test(an_endless_line_is_cut_off_early);
	run_test(fields_are_kept_as_they_came);
	run_test(a_head_is_used_again);
	run_test(what_was_understood_is_there_for_the_log);
	return tap_done();
}
