/* SPDX-License-Identifier: Apache-2.0 */
#include "http/test-support.h"
#include "tap.h"

#include <errno.h>

static void init(struct http_body *b, enum http_framing framing, uint64_t length)
{
	struct http_head h = HTTP_HEAD_INIT;

	http_head_set_body(&h, framing, length);
	http_body_init(b, &h, NULL);
}

static void no_body(void)
{
	struct http_body b;
	struct str in = STR("next"), data;

	init(&b, HTTP_BODY_NONE, 0);
	check(http_body_is_done(&b));
	check_int(http_body_read(&b, &in, &data), HTTP_BODY_DONE);
	check_str(in, "next");
	check_int(http_body_eof(&b), 0);
	init(&b, HTTP_BODY_LENGTH, 0);
	check(http_body_is_done(&b));
}

static void a_length_is_kept_to_the_byte(void)
{
	for (size_t piece = 1; piece <= 12; piece++) {
		struct http_body b;
		struct str all = STR("helloworld++"), data;
		size_t taken = 0, at = 0;
		bool done = false;

		init(&b, HTTP_BODY_LENGTH, 10);
		while (!done && at < all.n) {
			struct str in = str_prefix(str_from_index(all, at), piece);
			size_t before = in.n;

			while (http_body_read(&b, &in, &data) == HTTP_BODY_DATA)
				taken += data.n;
			at += before - in.n;
			done = http_body_is_done(&b);
		}
		check_int(taken, 10);
		check_int(at, 10);
		check_int(http_body_eof(&b), 0);
	}
}

static void a_body_that_is_cut_off(void)
{
	struct http_body b;
	struct str in = STR("hell"), data, more = STR("o");

	init(&b, HTTP_BODY_LENGTH, 5);
	check_int(http_body_read(&b, &in, &data), HTTP_BODY_DATA);
	check_int(http_body_read(&b, &in, &data), HTTP_BODY_MORE);
	check_int(http_body_eof(&b), -EPROTO);
	check_int(http_body_read(&b, &more, &data), HTTP_BODY_BAD);
	check_z(http_body_error(&b), "connection ended within the body");

	in = STR("5\r\nhello\r\n0\r\n\r");
	init(&b, HTTP_BODY_CHUNKED, 0);
	check_int(http_body_read(&b, &in, &data), HTTP_BODY_DATA);
	check_int(http_body_read(&b, &in, &data), HTTP_BODY_MORE);
	check_int(http_body_eof(&b), -EPROTO);
	check_z(http_body_error(&b), "connection ended within a chunked body");
	http_body_done(&b);
	http_body_done(&b);
}

static void a_body_up_to_the_end_of_the_connection(void)
{
	struct http_body b;
	struct str in = STR("abc"), data;

	init(&b, HTTP_BODY_CLOSE, 0);
	check_int(http_body_read(&b, &in, &data), HTTP_BODY_DATA);
	check_int(http_body_read(&b, &in, &data), HTTP_BODY_MORE);
	check(!http_body_is_done(&b));
	check_int(http_body_eof(&b), 0);
	check(http_body_is_done(&b));
	in = STR("late");
	check_int(http_body_read(&b, &in, &data), HTTP_BODY_DONE);
}

/* Chunks that are in memory together come out together, whatever comes behind them. */
static void small_chunks_come_out_together(void)
{
	static const struct {
		const char *rest;
		enum http_body_result result;
		const char *left;
	} ends[] = {{"", HTTP_BODY_MORE, ""}, {"2\r", HTTP_BODY_MORE, ""},
		{"0\r\n\r\nGET", HTTP_BODY_DONE, "GET"}, {"x", HTTP_BODY_BAD, ""}};
	enum { N = 1000 };

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		_cleanup_(buf_donep) struct buf all = BUF_INIT(10 * N);
		char expected[N];
		struct http_body b;
		struct str in, data;

		for (size_t k = 0; k < N; k++) {
			expected[k] = (char)('a' + k % 26);
			must(buf_printf(&all, "1\r\n%c\r\n", expected[k]) == 0);
		}
		must(buf_add_str(&all, str_from(ends[i].rest)) == 0);
		in = buf_str(&all);
		init(&b, HTTP_BODY_CHUNKED, 0);
		check_int(http_body_read_all(&b, &in, &data), ends[i].result);
		check(str_eq(data, str_make(expected, N)));
		check_str(in, ends[i].left);
		http_body_done(&b);
	}
}

/* A large one goes out before the next is looked at, and stays where it is. */
static void large_chunks_are_not_moved(void)
{
	enum { LARGE = 16 * 1024 };
	_cleanup_(buf_donep) struct buf all = BUF_INIT(3 * LARGE);
	static const char large[LARGE];
	struct http_body b;
	struct str in, data;

	must(buf_printf(&all, "%x\r\n", LARGE) == 0);
	must(buf_add(&all, large, LARGE) == 0);
	must(buf_add_str(&all, STR("\r\n3\r\nabc\r\n")) == 0);
	in = buf_str(&all);
	init(&b, HTTP_BODY_CHUNKED, 0);
	check_int(http_body_read_all(&b, &in, &data), HTTP_BODY_DATA);
	check(data.n == LARGE && data.p == buf_data(&all) + strlen("4000\r\n"));
	check_int(http_body_read_all(&b, &in, &data), HTTP_BODY_MORE);
	check_str(data, "abc");
	http_body_done(&b);
}

static void a_whole_body_of_a_length(void)
{
	struct http_body b;
	struct str in = STR("hellonext"), data;

	init(&b, HTTP_BODY_LENGTH, 5);
	check_int(http_body_read_all(&b, &in, &data), HTTP_BODY_DONE);
	check_str(data, "hello");
	check_str(in, "next");
	check_int(http_body_read_all(&b, &in, &data), HTTP_BODY_DONE);
	check_str(data, "");
}

static void a_chunked_body(void)
{
	_cleanup_(http_fields_donep) struct http_fields trailers = HTTP_FIELDS_INIT;
	struct http_head h = HTTP_HEAD_INIT;
	struct http_body b;
	struct str in = STR("3\r\nabc\r\n2\r\nde\r\n0\r\nX: y\r\n\r\nGET"), data;

	http_head_set_body(&h, HTTP_BODY_CHUNKED, 0);
	check_int(http_fields_add(&trailers, STR("old"), STR("one")), 0);
	http_body_init(&b, &h, &trailers);
	check_int(http_body_read(&b, &in, &data), HTTP_BODY_DATA);
	check_str(data, "abc");
	check_int(http_body_read(&b, &in, &data), HTTP_BODY_DATA);
	check_str(data, "de");
	check_int(http_body_read(&b, &in, &data), HTTP_BODY_DONE);
	check_str(in, "GET");
	check_int(trailers.n, 1);
	check_str(http_fields_get(&trailers, STR("x")), "y");
	check_int(http_body_eof(&b), 0);
	http_body_done(&b);

	in = STR("3\r\nabcX");
	http_body_init(&b, &h, NULL);
	check_int(http_body_read(&b, &in, &data), HTTP_BODY_DATA);
	check_int(http_body_read(&b, &in, &data), HTTP_BODY_BAD);
	check_z(http_body_error(&b), "CR LF missing in chunk framing");
	check_int(http_body_eof(&b), -EPROTO);
	check_z(http_body_error(&b), "CR LF missing in chunk framing");
	http_body_done(&b);
}

static void test_messages(void)
{
	static const struct {
		const char *type;
		struct str bytes;
		const char *ends; /* for each byte */
	} rows[] = {
		{"application/grpc", STR("\0\0\0\0\2xy\1\0\0\0\0\0\0\0\0\1z\0"),
			"0000001000010000010"},
		{"Application/gRPC-Web+proto", STR("\x80\0\0\0\1x\0"), "0000010"},
		{"application/connect+json", STR("\2\0\0\0\1x"), "000001"},
		{"application/connect", STR("\0\0\0\0\1x"), "000000"},
		{"text/plain", STR("\0\0\0\0\1x"), "000000"},
		{"application/grpc", STR("\4\0\0\0\1x\0\0\0\0\0"), "00000000000"},
		{"application/grpc", STR("\0\0\0\0\1x{\0\0\0\0\0"), "000001000000"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(http_fields_donep) struct http_fields f = HTTP_FIELDS_INIT;
		struct http_messages m;

		must(http_fields_add(&f, STR("content-type"), str_from(rows[i].type)) == 0);
		/* However many come at once, what counts is where they end. */
		for (size_t step = 1; step < 12; step++) {
			m = http_messages(&f);
			for (size_t at = 0; at + step <= rows[i].bytes.n; at += step)
				check_int(
					http_messages_end(&m, str_make(rows[i].bytes.p + at, step)),
					rows[i].ends[at + step - 1] == '1');
		}
	}
}

static void grpc_is_told_by_its_type(void)
{
	static const struct {
		const char *type;
		bool is;
	} types[] = {{"application/grpc", true}, {"Application/gRPC+proto", true},
		{"application/grpc; x=y", true}, {"application/grpc-web", false},
		{"application/grpc-web+proto", false}, {"application/json", false},
		{"application/grp", false}, {"", false}};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct http_fields f = HTTP_FIELDS_INIT;

		must(http_fields_add(&f, STR("content-type"), str_from(types[i].type)) == 0);
		if (http_is_grpc(&f) != types[i].is)
			tap_fail("%s", types[i].type);
		http_fields_done(&f);
	}
}

int main(void)
{
	run_test(no_body);
	run_test(a_length_is_kept_to_the_byte);
	run_test(a_body_that_is_cut_off);
	run_test(a_body_up_to_the_end_of_the_connection);
	run_test(a_chunked_body);
	run_test(small_chunks_come_out_together);
	run_test(large_chunks_are_not_moved);
	run_test(a_whole_body_of_a_length);
	run_test(test_messages);
	run_test(grpc_is_told_by_its_type);
	return tap_done();
}
