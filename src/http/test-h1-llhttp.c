/* SPDX-License-Identifier: Apache-2.0 */
/* Compares with another parser, as testing-llhttp.h says. Messages are made from a grammar whose
 * rules are broken now and then. */
#include "http/test-support.h"

#include <stdio.h>

#ifdef HAVE_LLHTTP
#include "http/testing-llhttp.h"
#include "tap.h"

#define MESSAGES 60000

static const char *pick(const char *const *from, size_t n)
{
	return from[test_random((unsigned)n)];
}

#define PICK(...)                                                                                  \
	pick((const char *const[]){__VA_ARGS__},                                                   \
		sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))
/* The first ten times of eleven. */
#define MOSTLY(usual, ...) (test_random(11) ? (usual) : PICK(__VA_ARGS__))

static void make_fields(struct buf *b, bool request)
{
	unsigned n = test_random(6);

	if (request)
		show(b, "Host%s%s%s", MOSTLY(": ", ":", ":\t", " : ", ""),
			MOSTLY("a", "a:80", "[::1]", "", "a,b", "a b"), MOSTLY("\r\n", "\n", "\r"));
	for (unsigned i = 0; i < n; i++)
		show(b, "%s%s%s%s",
			PICK("X", "Accept", "X-Very-Long-Name-Indeed", "Connection", "TE",
				"Trailer", "Content-Type", "X_y", "!#$%&'*+-.^_`|~", "Upgrade",
				"Expect", "Proxy-Connection", "Transfer-Encodin",
				"Content-Lengthx"),
			MOSTLY(": ", ":", ":  \t", " :", "", ": :"),
			PICK("close", "keep-alive", "x", "", "a, b", "upgrade", "websocket", "h2c",
				"100-continue", "trailers", "\"q\"", "\xff\x80", "a\tb", "a\rb",
				"a  b ", "keep-alive, close", "text/plain; q=\"1\\\"\""),
			MOSTLY("\r\n", "\n", "\r\r\n", "\r\n ", "\n\r"));
}

/* Returns which framing the fields claim: 0 none, 1 length, 2 chunked. */
static unsigned make_framing(struct buf *b)
{
	unsigned framing = test_random(3);

	if (framing == 1)
		show(b, "%s%s%s\r\n", MOSTLY("Content-Length", "content-length", "Content-Length "),
			MOSTLY(": ", ":", ":\t"),
			MOSTLY("5", "0", "05", "5 ", "+5", "0x5", "5,5", "5 5", "-5", "", "5\t",
				"99999999999999999999", "5\r\nContent-Length: 5",
				"5\r\nTransfer-Encoding: chunked"));
	else if (framing == 2)
		show(b, "%s%s%s\r\n",
			MOSTLY("Transfer-Encoding", "transfer-encoding", "Transfer-Encoding "),
			MOSTLY(": ", ":", ":\t"),
			MOSTLY("chunked", "Chunked", "chunked ", "chunked, identity", "identity",
				"gzip, chunked", "xchunked", "chunked\r\nTransfer-Encoding: x",
				"\"chunked\"", ",chunked", "chunked;x"));
	return framing;
}

static void make_body(struct buf *b, unsigned framing)
{
	if (framing == 1)
		show(b, "%s", MOSTLY("hello", "hell", "helloG", ""));
	if (framing != 2)
		return;
	for (unsigned n = test_random(4); n; n--)
		show(b, "%s%s%s%s",
			MOSTLY("3", "03", "00000003", "000000003", "0x3", "+3", "3 ", "g"),
			MOSTLY("\r\n", "\n", "\r", ";x\r\n", ";x=\"y\"\r\n", ";\r\n"),
			MOSTLY("abc", "ab", "abcd", "\r\n0"),
			MOSTLY("\r\n", "\n", "", "\r", "\n\r"));
	show(b, "%s%s%s%s", MOSTLY("0", "00", "00000000", "000000000", "-0"),
		MOSTLY("\r\n", "\n", ";x\r\n"),
		MOSTLY("", "X: y\r\n", "Host: b\r\n", "X: y\n", "X:y\r\n", "X : y\r\n", "X\r\n"),
		MOSTLY("\r\n", "\n", "\r\nG", "", "\r"));
}

static void make_message(struct buf *b, bool request)
{
	static const char *const statuses[] = {"200", "204", "304", "404", "500", "599"};
	unsigned framing;

	buf_clear(b);
	if (request)
		show(b, "%s%s%s%s%s%s", MOSTLY("", "\r\n", "\n"),
			PICK("GET", "POST", "PUT", "OPTIONS", "HEAD", "DELETE", "PATCH", "M-SEARCH",
				"CONNECT", "PROPFIND"),
			MOSTLY(" ", "  ", "\t"),
			PICK("/", "/a?b=c", "*", "http://a/", "http://a", "http://a?x", "a:80",
				"/\\|{}^`", "/%41%", "//a", "/?a?b", "/a;b=c,d", "http://b/", "x",
				"/#f"),
			MOSTLY(" ", "  ", "\t"),
			MOSTLY("HTTP/1.1\r\n", "HTTP/1.0\r\n", "HTTP/1.1\n", "HTTP/1.2\r\n",
				"HTTP/1.1 \r\n", "http/1.1\r\n"));
	else
		show(b, "%s%s%s%s", MOSTLY("HTTP/1.1 ", "HTTP/1.0 ", "HTTP/1.1  ", "HTTP/2.0 "),
			pick(statuses, ARRAY_SIZE(statuses)),
			MOSTLY(" OK", " ", "", " Not\tHere \xff", "x"),
			MOSTLY("\r\n", "\n", "\r\r\n"));
	make_fields(b, request);
	framing = make_framing(b);
	if (test_random(4) == 0)
		make_fields(b, false);
	show(b, "%s", MOSTLY("\r\n", "\n", "", "\r"));
	make_body(b, framing);
	/* One byte of it is something else, now and then. */
	if (test_random(4) == 0 && buf_len(b))
		buf_data(b)[test_random((unsigned)buf_len(b))] =
			"\r\n\0 \t:;,/x0\x7f\xff"[test_random(13)];
}

static void differential(bool request)
{
	_cleanup_(buf_donep) struct buf in = BUF_INIT(100000);
	unsigned accepted = 0, complete = 0;

	for (unsigned i = 0; i < MESSAGES; i++) {
		const char *what = "";
		bool keep_alive;
		size_t end;

		make_message(&in, request);
		switch (llhttp_compare(buf_str(&in), request, 0, &end, &keep_alive, &what)) {
		case LLHTTP_NO_CLAIM:
		case LLHTTP_SAME_SO_FAR:
			break;
		case LLHTTP_SAME_MESSAGE:
			complete++;
			accepted++;
			break;
		case LLHTTP_SAME_HEAD:
			accepted++;
			break;
		case LLHTTP_DIFFERS:
			tap_fail("llhttp differs, \"%s\", for: %.*s", what, STR_FMT(buf_str(&in)));
		}
	}
	printf("# %u messages, %u heads accepted, %u bodies complete\n", (unsigned)MESSAGES,
		accepted, complete);
	check(accepted > MESSAGES / 20 && complete > MESSAGES / 40);
}

static void requests_mean_the_same(void)
{
	differential(true);
}

static void responses_mean_the_same(void)
{
	differential(false);
}

int main(void)
{
	run_test(requests_mean_the_same);
	run_test(responses_mean_the_same);
	return tap_done();
}
#else
int main(void)
{
	printf("1..0 # SKIP llhttp is not installed (Debian package node-llhttp)\n");
	return 0;
}
#endif
