/* SPDX-License-Identifier: Apache-2.0 */
/* What is no HTTP/2, or no request, frame by frame, and what a peer gets for it. */
#include "tap.h"
#include "test-h2-frames.h"

static void test_heads(void)
{
	REFUSED(NULL, GOOD, "Upper", "x");
	REFUSED(NULL, GOOD, "connection", "close");
	REFUSED(NULL, GOOD, "transfer-encoding", "chunked");
	REFUSED(NULL, GOOD, "keep-alive", "1");
	REFUSED(NULL, GOOD, "proxy-connection", "1");
	REFUSED(NULL, GOOD, "upgrade", "websocket");
	REFUSED(NULL, GOOD, "te", "gzip");
	REFUSED(NULL, GOOD, "a b", "x");
	REFUSED(NULL, GOOD, "a:b", "x");
	REFUSED(NULL, GOOD, "", "x");
	REFUSED(NULL, GOOD, "x", "a\rb");
	REFUSED(NULL, GOOD, "x", "a\nb");
	REFUSED(NULL, GOOD, "x", " a");
	REFUSED(NULL, GOOD, "x", "a ");
	REFUSED(NULL, GOOD, ":path", "/2");
	REFUSED(NULL, GOOD, ":extra", "x");
	REFUSED(NULL, "x", "y", GOOD);
	REFUSED(NULL, ":method", "GET", GOOD);
	REFUSED(NULL, ":status", "200", GOOD);
	REFUSED(NULL, ":method", "GET", ":scheme", "https", ":authority", "a.test");
	REFUSED(NULL, ":method", "GET", ":path", "/", ":authority", "a.test");
	REFUSED(NULL, ":scheme", "https", ":path", "/", ":authority", "a.test");
	REFUSED(NULL, ":method", "GET", ":scheme", "https", ":path", "/");
	REFUSED(NULL, GOOD, "content-length", "5");
	REFUSED(NULL, GOOD, "content-length", "+0");
	REFUSED(NULL, GOOD, "content-length", "0", "content-length", "0");
	REFUSED("Host is not :authority", GOOD, "host", "b.test");
	REFUSED("Host is not :authority", GOOD, "host", "a.test:444");
	REFUSED(NULL, GOOD, "host", "a.test", "host", "a.test");
}

#define WITH_PATH(path) ":method", "GET", ":scheme", "https", ":authority", "a.test", ":path", path
#define WITH_HOST(host) ":method", "GET", ":scheme", "https", ":authority", host, ":path", "/"
#define WITH_METHOD(method)                                                                        \
	":method", method, ":scheme", "https", ":authority", "a.test", ":path", "/"

static void test_targets(void)
{
	REFUSED(NULL, WITH_PATH(""));
	REFUSED(NULL, WITH_PATH("a"));
	REFUSED(NULL, WITH_PATH("*"));
	REFUSED(NULL, WITH_PATH("/ HTTP/1.1"));
	REFUSED(NULL, WITH_PATH("/\r\nHost: b"));
	REFUSED("malformed :path", WITH_PATH("/#x"));
	REFUSED(NULL, WITH_PATH("/\xc3\xa4"));
	REFUSED(NULL, WITH_PATH("/?\xe4"));
	REFUSED(NULL, WITH_PATH("http://b.test/"));
	REFUSED(NULL, WITH_HOST("a b"));
	REFUSED(NULL, WITH_HOST("u@a.test"));
	REFUSED(NULL, WITH_HOST("a.test/"));
	REFUSED(NULL, WITH_HOST("a..test"));
	REFUSED(NULL, WITH_HOST("a.test:0"));
	REFUSED(NULL, WITH_HOST(""));
	REFUSED(NULL, WITH_METHOD("G T"));
	REFUSED(NULL, WITH_METHOD(""));
	REFUSED("malformed :method", WITH_METHOD("ABCDEFGHIJKLMNOPQ"));
}

/* Not malformed, and marked for whoever judges. */
static unsigned flags_seen;

static void see_flags(struct leg *l, struct http_head *h)
{
	(void)l;
	flags_seen = h->flags;
}

static void test_methods_that_are_never_sent(void)
{
	begin();
	s.on_head = see_flags;
	request(0, ":method", "CONNECT", ":authority", "b.test:443");
	play();
	check(flags_seen & HTTP_CONNECT);
	check_z(side_log(&s), "[1 CONNECT ://b.test:443b.test:443 body2]");
	request(END_STREAM, WITH_METHOD("TRACE"));
	play();
	check(flags_seen & HTTP_TRACE);
	done();
	/* RFC 8441 was not offered. */
	REFUSED(NULL, WITH_METHOD("CONNECT"), ":protocol", "websocket");
}

static void test_cookies_and_hosts(void)
{
	begin();
	request(END_STREAM, GOOD, "cookie", "a=1", "x", "y", "cookie", "b=2", "te", "trailers",
		"host", "A.test:443");
	request(END_STREAM, ":method", "OPTIONS", ":scheme", "https", ":path", "*", "host",
		"c.test");
	play();
	check_z(side_log(&s),
		"[1 GET https://a.test:0/ body0 te|x:y|host:A.test:443|cookie:a=1; b=2](1 end 0)"
		"[3 OPTIONS https://c.test:0* body0|host:c.test](3 end 0)");
	done();
}

/* What was announced is what comes. */
static void test_lengths(void)
{
	begin();
	request(0, POST, "content-length", "5");
	frame(DATA, 0, 1, STR("abc"));
	frame(DATA, END_STREAM, 1, STR("def"));
	play();
	check_int(seen.reset, H2_PROTOCOL_ERROR);
	check(s.legs[0].gone && !s.legs[0].ended);
	check_int(s.legs[0].received, 3);
	done();
	begin();
	request(0, POST, "content-length", "5");
	frame(DATA, END_STREAM, 1, STR("abc"));
	play();
	check_int(seen.reset, H2_PROTOCOL_ERROR);
	check(s.legs[0].gone && !s.legs[0].ended);
	done();
}

static void test_trailers(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(1000);

	begin();
	request(0, POST);
	pairs(&b, (const char *const[]){":path", "/2", NULL});
	frame(HEADERS, END_HEADERS | END_STREAM, 1, buf_str(&b));
	play();
	check_int(seen.reset, H2_PROTOCOL_ERROR);
	check(s.legs[0].gone && !s.legs[0].ended);
	done();
	begin();
	request(0, POST);
	buf_clear(&b);
	pairs(&b, (const char *const[]){"x", "1", NULL});
	frame(HEADERS, END_HEADERS, 1, buf_str(&b)); /* not the end */
	play();
	check_int(seen.reset, H2_PROTOCOL_ERROR);
	check(s.legs[0].gone && !s.legs[0].ended);
	done();
}

/* These break the connection at once. */
static void test_broken_connections(void)
{
	begin();
	request(0, POST);
	frame_u32(WINDOW_UPDATE, 1, 0);
	play();
	check(seen.goaway > 0 || seen.reset > 0);
	done();
	begin();
	request(END_STREAM, GOOD);
	frame(DATA, 0, 1, STR("more"));
	play();
	check(seen.goaway > 0 || seen.reset == H2_STREAM_CLOSED);
	check_int(s.legs[0].received, 0);
	done();
	begin();
	frame(DATA, 0, 99, STR("x"));
	play();
	check(!alive && seen.goaway > 0);
	done();
	begin();
	frame(PUSH_PROMISE, END_HEADERS, 1, STR("\0\0\0\2"));
	play();
	check(!alive && seen.goaway > 0);
	done();
	begin();
	frame(HEADERS, END_HEADERS, 1, STR("\x7f\xff\xff\xff\xff\xff\xff\xff")); /* no such entry */
	play();
	check(!alive && seen.goaway == H2_COMPRESSION_ERROR);
	done();
	begin();
	frame(SETTINGS, ACK, 0, STR(""));
	frame(SETTINGS, ACK, 0, STR("")); /* of what? */
	play();
	check(!alive && seen.goaway > 0);
	done();
	begin();
	frame(SETTINGS, 0, 0, STR("12345"));
	play();
	check(!alive && seen.goaway == H2_FRAME_SIZE_ERROR);
	done();
}

static void test_not_http2(void)
{
	must(side_try(&s, H2_SERVER, 65536, 65536) == 0);
	check(h2_feed(s.h, STR("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")) < 0);
	side_done(&s);
}

/* The limit counts frames, not how they were cut. */
static void test_continuations_cut(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(1000);
	size_t at = 0;

	begin();
	pairs(&b, (const char *const[]){GOOD, NULL});
	frame(HEADERS, END_STREAM, 1, str_prefix(buf_str(&b), 5));
	for (at = 5; at < 5 + 7 * 5; at += 5)
		frame(CONTINUATION, 0, 1, str_prefix(str_from_index(buf_str(&b), at), 5));
	frame(CONTINUATION, END_HEADERS, 1, str_from_index(buf_str(&b), at));
	play_cut(1);
	check(alive);
	check_int(s.legs_n, 1);
	done();
}

/* RFC 9113 4.1 and 5.5: they cost no more than their bytes. */
static void test_unknown_frames(void)
{
	begin();
	for (unsigned i = 0; i < 1000; i++)
		frame(0x77, 255, i, STR("unknown"));
	request(END_STREAM, GOOD);
	play();
	check(alive);
	check_int(s.legs_n, 1);
	done();
}

/* Where a head stands, for whoever counts the time that it takes. */
static void test_within_head(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(1000);

	begin();
	check(!h2_is_within_head(s.h));
	pairs(&b, (const char *const[]){GOOD, NULL});
	frame(HEADERS, END_STREAM, 1, str_prefix(buf_str(&b), 20));
	play();
	check(h2_is_within_head(s.h));
	frame(CONTINUATION, END_HEADERS, 1, str_from_index(buf_str(&b), 20));
	play();
	check(!h2_is_within_head(s.h));
	check_int(s.legs_n, 1);
	frame(HEADERS, END_HEADERS | END_STREAM, 3, buf_str(&b));
	in.tail -= 3;
	play();
	check(h2_is_within_head(s.h));
	done();
}

static void after_reset(unsigned type, unsigned flags, struct str payload)
{
	begin();
	request(END_STREAM, GOOD);
	frame_u32(RST_STREAM, 1, H2_CANCEL);
	frame(type, flags, 1, payload);
	play();
	check(!alive && seen.goaway == H2_STREAM_CLOSED);
	done();
}

/* RFC 9113 section 5.1. A peer that cannot know yet that we have reset a stream is let off. */
static void test_closed_streams(void)
{
	after_reset(DATA, 0, STR("more"));
	after_reset(DATA, END_STREAM, STR(""));
	after_reset(HEADERS, END_HEADERS | END_STREAM, STR("\x82\x84\x87"));
	begin();
	request(0, POST);
	request(0, POST);
	play();
	h2_reset(s.legs[0].st, H2_CANCEL);
	frame(DATA, 0, 1, STR("on its way"));
	frame(DATA, 0, 3, STR("x"));
	play();
	frame(DATA, END_STREAM, 1, STR("still"));
	play();
	check(alive && seen.goaway < 0);
	check_int(s.legs[1].received, 1);
	done();
}

int main(void)
{
	run_test(test_heads);
	run_test(test_targets);
	run_test(test_methods_that_are_never_sent);
	run_test(test_cookies_and_hosts);
	run_test(test_lengths);
	run_test(test_trailers);
	run_test(test_broken_connections);
	run_test(test_closed_streams);
	run_test(test_not_http2);
	run_test(test_continuations_cut);
	run_test(test_unknown_frames);
	run_test(test_within_head);
	return tap_done();
}
