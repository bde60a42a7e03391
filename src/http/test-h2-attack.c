/* SPDX-License-Identifier: Apache-2.0 */
/* What a hostile peer makes of the protocol to keep us busy, and how much of it it may. */
#include "base/clock.h"
#include "tap.h"
#include "test-h2-frames.h"

#include <malloc.h>

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

/* On a stream that is closed, if the library has nobody to tell. */
static void flood_closed(unsigned type, unsigned flags, struct str payload)
{
	begin();
	request(END_STREAM, GOOD);
	frame(RST_STREAM, 0, 1, STR("\0\0\0\x8"));
	for (unsigned i = 0; i < 100000; i++)
		frame(type, flags, 1, payload);
	play();
	if (alive)
		tap_fail("type %u", type);
	done();
}

static void test_floods_of_closed_streams(void)
{
	flood_closed(DATA, 0, STR(""));
	flood_closed(DATA, 0, STR("x"));
	flood_closed(WINDOW_UPDATE, 0, STR("\0\0\0\1"));
	flood_closed(RST_STREAM, 0, STR("\0\0\0\x8"));
	flood_closed(PRIORITY, 0, STR("\0\0\0\0\1"));
	flood_closed(HEADERS, END_HEADERS | END_STREAM, STR("\x82\x84\x87"));
}

static void test_floods(void)
{
	uint64_t start = clock_mono_usec();

	flood(PING, 0, 0, STR("12345678"));
	flood(SETTINGS, 0, 0, STR(""));
	flood(PRIORITY, 0, 1, STR("\0\0\0\0\1"));
	flood(DATA, 0, 1, STR(""));
	flood(WINDOW_UPDATE, 0, 0, STR("\0\0\0\1"));
	flood(0x77, 0, 0, STR(""));
	flood(0x77, 0xff, 1, STR("12345678"));
	flood(0xa, 0, 0, STR("\0\1ah3"));      /* ALTSVC */
	flood(0x10, 0, 0, STR("\0\0\0\1u=1")); /* PRIORITY_UPDATE */
	flood(DATA, 0, 1, STR("x"));
	flood(DATA, 0, 1, STR("fifteen bytes.."));
	printf("# floods: %llu ms\n", (unsigned long long)(clock_mono_usec() - start) / 1000);
}

/* Messages of a few bytes, and frames that nobody knows between requests, are none. */
static void test_small_is_no_flood(void)
{
	begin();
	request(0, POST);
	for (unsigned i = 0; i < HTTP_PIECES_BURST; i++)
		frame(DATA, 0, 1, STR("x"));
	frame(DATA, END_STREAM, 1, STR("x"));
	for (unsigned i = 0; i + 10 < H2_CONTROL_BURST; i++)
		frame(0x0a + i % 0xf0, 0, 0, STR("grease"));
	play();
	check(alive);
	check_int(s.legs_n, 1);
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
	run_test(test_rapid_reset);
	run_test(test_made_you_reset);
	run_test(test_continuation_flood);
	run_test(test_compression_bomb);
	run_test(test_too_many_fields);
	run_test(test_floods);
	run_test(test_floods_of_closed_streams);
	run_test(test_small_is_no_flood);
	run_test(test_pings_with_work);
	run_test(test_zero_window);
	run_test(test_window_is_kept);
	run_test(test_idle_memory);
	return tap_done();
}
