/* SPDX-License-Identifier: Apache-2.0 */
/* What a hostile peer sends, frame by frame, and what it gets for it. */
#include "base/clock.h"
#include "test-h2.h"

#include <malloc.h>

enum {
	DATA,
	HEADERS,
	PRIORITY,
	RST_STREAM,
	SETTINGS,
	PUSH_PROMISE,
	PING,
	GOAWAY,
	WINDOW_UPDATE,
	CONTINUATION
};
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4 };

static struct side s;
static struct buf in; /* to be fed */
static bool alive;    /* h2_feed() has not failed */

/* What was answered. */
static struct {
	unsigned resets, acks;
	int32_t reset, goaway; /* codes, -1: none */
	uint32_t reset_id;
} seen;

static void u8(struct buf *b, unsigned v)
{
	must(buf_add_char(b, (char)v) == 0);
}

static void u32(struct buf *b, uint32_t v)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		u8(b, v >> shift & 255);
}

static void frame(unsigned type, unsigned flags, uint32_t id, struct str payload)
{
	u8(&in, (unsigned)payload.n >> 16);
	u8(&in, payload.n >> 8 & 255);
	u8(&in, payload.n & 255);
	u8(&in, type);
	u8(&in, flags);
	u32(&in, id);
	must(buf_add_str(&in, payload) == 0);
}

static void frame_u32(unsigned type, uint32_t id, uint32_t v)
{
	char p[4] = {(char)(v >> 24), (char)(v >> 16), (char)(v >> 8), (char)v};

	frame(type, 0, id, str_make(p, 4));
}

/* RFC 7541 5.1 and 5.2, without Huffman coding. */
static void text(struct buf *b, struct str s_)
{
	size_t n = s_.n;

	if (n < 127) {
		u8(b, (unsigned)n);
	} else {
		u8(b, 127);
		for (n -= 127; n >= 128; n /= 128)
			u8(b, (n & 127) | 128);
		u8(b, (unsigned)n);
	}
	must(buf_add_str(b, s_) == 0);
}

/* "name value" pairs up to a NULL; '=' stands before names that are indexed as they are. */
static void pairs(struct buf *b, const char *const *p)
{
	for (; *p; p += 2) {
		u8(b, 0);
		text(b, str_from(p[0]));
		text(b, str_from(p[1]));
	}
}

static uint32_t next_id;

static void request_with(unsigned flags, const char *const *p)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(1024 * 1024);

	next_id += 2;
	pairs(&b, p);
	frame(HEADERS, END_HEADERS | flags, next_id, buf_str(&b));
}

#define request(flags, ...) request_with(flags, (const char *const[]){__VA_ARGS__, NULL})
#define GOOD ":method", "GET", ":scheme", "https", ":authority", "a.test", ":path", "/"
#define POST ":method", "POST", ":scheme", "https", ":authority", "a.test", ":path", "/"

static uint32_t get_u32(const char *p)
{
	const uint8_t *u = (const uint8_t *)p;

	return (uint32_t)u[0] << 24 | (uint32_t)u[1] << 16 | (uint32_t)u[2] << 8 | u[3];
}

static void see(struct buf *out)
{
	while (buf_len(out) >= 9) {
		const char *p = buf_data(out);
		size_t n = get_u32(p) >> 8;
		unsigned type = (uint8_t)p[3];

		must(buf_len(out) >= 9 + n);
		if (type == RST_STREAM) {
			seen.resets++;
			seen.reset = (int32_t)get_u32(p + 9);
			seen.reset_id = get_u32(p + 5);
		} else if (type == GOAWAY) {
			seen.goaway = (int32_t)get_u32(p + 13);
		} else if (type == PING) {
			seen.acks++;
		}
		buf_consume(out, 9 + n);
	}
}

/* Feeds what was built, in pieces of at most n bytes, and reads the answers. */
static void play_cut(size_t n)
{
	while (buf_len(&in) > 0 && alive) {
		size_t take = MIN(n, buf_len(&in));
		char *piece = malloc(take);

		must(piece);
		memcpy(piece, buf_data(&in), take);
		alive = h2_feed(s.h, str_make(piece, take)) == 0;
		free(piece);
		buf_consume(&in, take);
		do {
			check_int(h2_output(s.h, &s.out, OUT_ENOUGH), 0);
			see(&s.out);
		} while (h2_wants_output(s.h));
		if (h2_is_done(s.h))
			alive = false;
	}
	buf_clear(&in);
}

static void play(void)
{
	play_cut(1000);
}

static void begin(void)
{
	must(side_try(&s, H2_SERVER, 128 * 1024, 1024 * 1024) == 0);
	in = BUF_INIT(64 * 1024 * 1024);
	alive = true;
	next_id = (uint32_t)-1;
	memset(&seen, 0, sizeof(seen));
	seen.reset = seen.goaway = -1;
	must(buf_add_str(&in, STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")) == 0);
	frame(SETTINGS, 0, 0, STR(""));
	play();
	check(alive);
}

static void done(void)
{
	buf_done(&in);
	side_done(&s);
}

/* Every head that is wrong costs its stream, and nobody hears of it. */
static void refused(const char *why, const char *const *p)
{
	begin();
	request_with(END_STREAM, p);
	play_cut(1);
	check_int(seen.reset, H2_PROTOCOL_ERROR);
	check_int(s.legs_n, 0);
	check(s.why[0]);
	if (why)
		check_z(s.why, why);
	if (seen.reset < 0 || s.legs_n > 0)
		tap_fail("%s %s", p[0], p[1]);
	/* The connection is as good as before. */
	request(END_STREAM, GOOD);
	play();
	check_int(s.legs_n, 1);
	check_z(side_log(&s), "[3 GET https://a.test:0/ body0](3 end 0)");
	done();
}

#define REFUSED(why, ...) refused(why, (const char *const[]){__VA_ARGS__, NULL})

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

static void calmed(void)
{
	check(!alive);
	check_int(seen.goaway, H2_ENHANCE_YOUR_CALM);
	check(h2_error_text(s.h)[0]);
	check(h2_is_calmed(s.h));
	check_int(h2_feed(s.h, STR("x")) < 0, 1);
	done();
}

static void test_rapid_reset(void)
{
	begin();
	for (unsigned i = 0; i < 10000; i++) {
		request(END_STREAM, GOOD);
		frame_u32(RST_STREAM, next_id, H2_CANCEL);
	}
	play();
	check(s.legs_n <= H2_RESETS_BURST + 50);
	calmed();
}

/* CVE-2025-8671: the peer makes us reset. */
static void test_made_you_reset(void)
{
	begin();
	for (unsigned i = 0; i < 10000; i++) {
		request(0, POST, "content-length", "1");
		frame(DATA, 0, next_id, STR("12"));
	}
	play();
	check(seen.resets <= H2_GLITCHES_BURST + 50);
	calmed();
	begin();
	for (unsigned i = 0; i < 10000; i++) {
		request(END_STREAM, GOOD);
		frame_u32(WINDOW_UPDATE, next_id, 0x7fffffff);
	}
	play();
	check(seen.resets <= H2_GLITCHES_BURST + 50);
	calmed();
	begin();
	for (unsigned i = 0; i < 10000; i++)
		request(END_STREAM, GOOD, "Upper", "x");
	play();
	check(seen.resets <= H2_GLITCHES_BURST + 50);
	calmed();
	begin(); /* streams above the limit */
	for (unsigned i = 0; i < 10000; i++)
		request(0, POST);
	play();
	check(s.legs_n <= H2_STREAMS_MAX);
	calmed();
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

static void test_continuation_flood(void)
{
	begin();
	frame(HEADERS, END_STREAM, 1, STR("\x82"));
	for (unsigned i = 0; i < 10000; i++)
		frame(CONTINUATION, 0, 1, STR("\0\1x\1y"));
	play();
	check_int(s.legs_n, 0);
	calmed();
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

/* One entry of 4 KB in the table, named again and again: 64 MB from some thousand bytes. */
static void test_compression_bomb(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(1024 * 1024);
	static char value[3900];
	size_t before;

	begin();
	memset(value, 'v', sizeof(value));
	pairs(&b, (const char *const[]){GOOD, NULL});
	u8(&b, 0x40);
	text(&b, STR("x"));
	text(&b, str_make(value, sizeof(value)));
	for (unsigned i = 0; i < 12000; i++)
		u8(&b, 0x80 | 62);
	before = (size_t)mallinfo2().uordblks;
	frame(HEADERS, END_HEADERS | END_STREAM, 1, buf_str(&b));
	play();
	check((size_t)mallinfo2().uordblks < before + 512 * 1024);
	check_int(s.legs_n, 0);
	check_int(seen.reset, H2_PROTOCOL_ERROR);
	check_z(s.why, "the head is too large");
	done();
}

static void test_too_many_fields(void)
{
	const char *p[8 + 2 * 200 + 1] = {GOOD};

	for (unsigned i = 0; i < 200; i++) {
		p[8 + 2 * i] = "x";
		p[9 + 2 * i] = "y";
	}
	refused("the head is too large", p);
}

static void flood(unsigned type, unsigned flags, uint32_t id, struct str payload)
{
	begin();
	request(0, POST);
	for (unsigned i = 0; i < 100000; i++)
		frame(type, flags, id, payload);
	play();
	if (alive)
		tap_fail("type %u", type);
	calmed();
}

static void test_floods(void)
{
	uint64_t start = clock_mono_usec();

	flood(PING, 0, 0, STR("12345678"));
	flood(SETTINGS, 0, 0, STR(""));
	flood(PRIORITY, 0, 1, STR("\0\0\0\0\1"));
	flood(DATA, 0, 1, STR(""));
	flood(WINDOW_UPDATE, 0, 0, STR("\0\0\0\1"));
	printf("# floods: %llu ms\n", (unsigned long long)(clock_mono_usec() - start) / 1000);
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

/* Pings beside work that is done are no flood. */
static void test_pings_with_work(void)
{
	begin();
	for (unsigned i = 0; i < 5000; i++) {
		request(END_STREAM, GOOD);
		frame(PING, 0, 0, STR("12345678"));
		frame(WINDOW_UPDATE, 0, 0, STR("\0\0\0\1"));
		play();
		if (i >= 90) {
			s.legs_n = 0; /* forgotten ones are answered below */
			break;
		}
	}
	check(alive);
	check_int(seen.acks, 91);
	done();
}

/* A peer that takes nothing: what waits stays with the caller, and nothing piles up here. */
static void test_zero_window(void)
{
	_cleanup_(http_head_donep) struct http_head h = HTTP_HEAD_INIT;
	size_t before;

	begin();
	frame(SETTINGS, 0, 0, STR("\0\4\0\0\0\0"));
	for (unsigned i = 0; i < 50; i++)
		request(END_STREAM, GOOD);
	play();
	check_int(s.legs_n, 50);
	before = (size_t)mallinfo2().uordblks;
	for (unsigned i = 0; i < 50; i++) {
		char *at;

		must(http_head_set_response(&h, 200, STR_NULL) == 0);
		check_int(h2_respond(s.legs[i].st, &h, 0), 0);
		must(buf_reserve(&s.legs[i].out, 1000, &at) == 0);
		memset(at, 0, 1000);
		buf_commit(&s.legs[i].out, 1000);
		h2_wake(s.legs[i].st);
	}
	check_int(h2_output(s.h, &s.out, OUT_ENOUGH), 0);
	check(!h2_wants_output(s.h));
	check((size_t)mallinfo2().uordblks < before + 50 * (2 * 1024 + 512) + 64 * 1024);
	for (unsigned i = 0; i < 50; i++)
		check_int(s.legs[i].sent, 0);
	done();
}

/* A peer that sends more than its window. */
static void test_window_is_kept(void)
{
	static char bytes[16384];

	begin();
	s.keeps = true;
	frame(SETTINGS, ACK, 0, STR(""));
	request(0, POST);
	for (unsigned i = 0; i < 20; i++)
		frame(DATA, 0, 1, str_make(bytes, sizeof(bytes)));
	play();
	check(s.legs[0].received <= 128 * 1024);
	check(seen.reset == H2_FLOW_CONTROL_ERROR || seen.goaway == H2_FLOW_CONTROL_ERROR);
	done();
}

/* One that is idle is small. */
static void test_idle_memory(void)
{
	enum { N = 50 };
	static struct side many[N];
	size_t before = (size_t)mallinfo2().uordblks, each;

	for (unsigned i = 0; i < N; i++) {
		must(side_try(&many[i], H2_SERVER, 128 * 1024, 1024 * 1024) == 0);
		must(h2_output(many[i].h, &many[i].out, OUT_ENOUGH) == 0);
		buf_done(&many[i].out);
	}
	each = ((size_t)mallinfo2().uordblks - before) / N;
	printf("# an idle connection has %zu bytes\n", each);
	check(each < 28 * 1024);
	for (unsigned i = 0; i < N; i++)
		side_done(&many[i]);
}

int main(void)
{
	run_test(test_heads);
	run_test(test_targets);
	run_test(test_methods_that_are_never_sent);
	run_test(test_cookies_and_hosts);
	run_test(test_lengths);
	run_test(test_trailers);
	run_test(test_rapid_reset);
	run_test(test_made_you_reset);
	run_test(test_broken_connections);
	run_test(test_not_http2);
	run_test(test_continuation_flood);
	run_test(test_continuations_cut);
	run_test(test_compression_bomb);
	run_test(test_too_many_fields);
	run_test(test_floods);
	run_test(test_unknown_frames);
	run_test(test_within_head);
	run_test(test_pings_with_work);
	run_test(test_zero_window);
	run_test(test_window_is_kept);
	run_test(test_idle_memory);
	return tap_done();
}
