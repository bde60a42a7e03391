/* SPDX-License-Identifier: Apache-2.0 */
#include "http/h1_write.h"
#include "http/test-support.h"
#include "tap.h"

#include <errno.h>

#define S(lit)                                                                                     \
	{                                                                                          \
		lit, sizeof(lit) - 1                                                               \
	}

struct decoded {
	enum chunked_result result;
	enum chunked_error error;
	enum h1_error trailer_error;
	size_t used;
	char data[70000], trailers[40000];
};

static bool extensions; /* what decode_all() tolerates */

static void decode_cut(struct decoded *o, struct str in, bool keep, unsigned how)
{
	_cleanup_(http_fields_donep) struct http_fields trailers = HTTP_FIELDS_INIT;
	_cleanup_(buf_donep) struct buf shown = BUF_INIT(sizeof(o->trailers) - 1);
	struct chunked_decoder d;
	size_t n_data = 0;

	memset(o, 0, offsetof(struct decoded, data));
	o->data[0] = o->trailers[0] = '\0';
	chunked_init(&d, keep ? &trailers : NULL, extensions);
	while (o->result == CHUNKED_MORE && o->used < in.n) {
		size_t n = cut(how, in.n - o->used);
		_cleanup_(freep) char *piece = malloc(n);
		struct str rest = str_make(piece, n), data = STR_NULL;

		must(piece);
		memcpy(piece, in.p + o->used, n);
		while ((o->result = chunked_read(&d, &rest, &data)) == CHUNKED_DATA) {
			check(data.n > 0 && n_data + data.n < sizeof(o->data));
			memcpy(o->data + n_data, data.p, data.n);
			n_data += data.n;
		}
		o->used += n - rest.n;
		check(o->result != CHUNKED_MORE || rest.n == 0);
	}
	o->data[n_data] = '\0';
	o->error = d.error;
	o->trailer_error = d.trailer_error;
	if (o->result == CHUNKED_ERROR) {
		struct str more = STR("0\r\n\r\n"), data;

		check_int(chunked_read(&d, &more, &data), CHUNKED_ERROR);
	}
	show_fields(&shown, &trailers);
	memcpy(o->trailers, buf_cstr(&shown), buf_len(&shown) + 1);
	chunked_done(&d);
}

static struct decoded got;

static void decode_all(struct str in, bool keep)
{
	static struct decoded other;

	decode_cut(&got, in, keep, CUT_WHOLE);
	for (unsigned i = 0; i < 1 + RANDOM_CUTS; i++) {
		decode_cut(&other, in, keep, i == 0 ? CUT_BYTES : CUT_RANDOM);
		if (other.result != got.result || other.error != got.error ||
			other.trailer_error != got.trailer_error ||
			strcmp(other.data, got.data) != 0 ||
			strcmp(other.trailers, got.trailers) != 0 ||
			(got.result == CHUNKED_DONE && other.used != got.used))
			tap_fail("cut %u of \"%.*s\" differs", i, STR_FMT(str_prefix(in, 100)));
	}
}

static void bodies_that_are_accepted(void)
{
	static const struct {
		struct str in;
		const char *data, *trailers;
	} cases[] = {
		{S("0\r\n\r\n"), "", ""},
		{S("00000000\r\n\r\n"), "", ""},
		{S("5\r\nhello\r\n0\r\n\r\n"), "hello", ""},
		{S("00000005\r\nhello\r\n0\r\n\r\n"), "hello", ""},
		{S("a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n"), "01234567890123456789", ""},
		{S("1\r\n\r\r\n1\r\n\n\r\n0\r\n\r\n"), "\r\n", ""},
		{S("7\r\n0\r\n\r\n0\r\r\n0\r\n\r\n"), "0\r\n\r\n0\r", ""},
		{S("0\r\nX: y\r\n\r\n"), "", "|X:y"},
		{S("2\r\nhi\r\n0\r\ngrpc-status: 0\r\nGrpc-Message:  a b\t\r\n\r\n"), "hi",
			"|grpc-status:0|Grpc-Message:a b"},
		{S("0\r\nX-Amz-Checksum-Crc32c: x==\r\n\r\n"), "", "|X-Amz-Checksum-Crc32c:x=="},
		/* Dropped */
		{S("0\r\nContent-Length: 5\r\nHost: b\r\nX: y\r\n\r\n"), "", "|X:y"},
		{S("0\r\nauthorization: x\r\nTransfer-Encoding: chunked\r\nCookie: a\r\n\r\n"), "",
			""},
		{S("0\r\nContent-Type: x\r\nSet-Cookie: a\r\nIf-Match: *\r\nRange: x\r\n"
		   "Cache-Control: x\r\nAccept: x\r\nWWW-Authenticate: x\r\nConnection: x\r\n"
		   "Proxy-Foo: x\r\nTE: x\r\nTrailer: x\r\nUpgrade: x\r\nExpect: x\r\n\r\n"),
			"", ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		decode_all(cases[i].in, true);
		check_int(got.result, CHUNKED_DONE);
		check_int(got.used, cases[i].in.n);
		check_z(got.data, cases[i].data);
		check_z(got.trailers, cases[i].trailers);
		decode_all(cases[i].in, false);
		check_int(got.result, CHUNKED_DONE);
		check_z(got.trailers, "");
	}
}

static void bodies_that_are_refused(void)
{
	static const struct {
		struct str in;
		enum chunked_error error;
		enum h1_error trailer;
	} cases[] = {
		{S("\r\n"), CHUNKED_E_SIZE, 0},
		{S("x\r\n"), CHUNKED_E_SIZE, 0},
		{S("g\r\n"), CHUNKED_E_SIZE, 0},
		{S("-1\r\n"), CHUNKED_E_SIZE, 0},
		{S("+1\r\n"), CHUNKED_E_SIZE, 0},
		{S(" 5\r\nhello\r\n"), CHUNKED_E_SIZE, 0},
		{S("5 \r\nhello\r\n"), CHUNKED_E_SIZE, 0},
		{S("5\t\r\nhello\r\n"), CHUNKED_E_SIZE, 0},
		{S("0x5\r\nhello\r\n"), CHUNKED_E_SIZE, 0},
		{S("5_0\r\n"), CHUNKED_E_SIZE, 0},
		{S("5;ext\r\nhello\r\n"), CHUNKED_E_SIZE, 0},
		{S("5;ext=x\nhello\r\n"), CHUNKED_E_SIZE, 0},
		{S("5;\r\nhello\r\n"), CHUNKED_E_SIZE, 0},
		{S("0;x\r\n\r\n"), CHUNKED_E_SIZE, 0},
		{S("5\nhello\r\n"), CHUNKED_E_SIZE, 0},
		{S("100000000\r\n"), CHUNKED_E_SIZE, 0},
		{S("000000005\r\nhello\r\n"), CHUNKED_E_SIZE, 0},
		{S("ffffffffffffffff\r\n"), CHUNKED_E_SIZE, 0},
		{S("10000000000000005\r\nhello\r\n"), CHUNKED_E_SIZE, 0},
		{S("\0"
		   "5\r\nhello\r\n"),
			CHUNKED_E_SIZE, 0},
		{S("5\r\r\nhello\r\n"), CHUNKED_E_LINE_END, 0},
		{S("5\rhello\r\n"), CHUNKED_E_LINE_END, 0},
		{S("5\r\nhello0\r\n\r\n"), CHUNKED_E_LINE_END, 0},
		{S("5\r\nhello\n0\r\n\r\n"), CHUNKED_E_LINE_END, 0},
		{S("5\r\nhello\r0\r\n\r\n"), CHUNKED_E_LINE_END, 0},
		{S("5\r\nhelloX\r\n"), CHUNKED_E_LINE_END, 0},
		{S("0\r\n\n"), CHUNKED_E_TRAILER, H1_E_LINE_END},
		{S("0\r\nX: y\n\r\n"), CHUNKED_E_TRAILER, H1_E_LINE_END},
		{S("0\r\nX : y\r\n\r\n"), CHUNKED_E_TRAILER, H1_E_FIELD_NAME},
		{S("0\r\nX\r\n\r\n"), CHUNKED_E_TRAILER, H1_E_FIELD_NAME},
		{S("0\r\nGET / HTTP/1.1\r\n\r\n"), CHUNKED_E_TRAILER, H1_E_FIELD_NAME},
		{S("0\r\nX: y\r\n z\r\n\r\n"), CHUNKED_E_TRAILER, H1_E_FOLD},
		{S("0\r\nX: a\rb\r\n\r\n"), CHUNKED_E_TRAILER, H1_E_FIELD_VALUE},
		{S("0\r\nX: a\0b\r\n\r\n"), CHUNKED_E_TRAILER, H1_E_FIELD_VALUE},
		{S("0\r\nHost: a\0b\r\n\r\n"), CHUNKED_E_TRAILER, H1_E_FIELD_VALUE},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		decode_all(cases[i].in, true);
		if (got.result != CHUNKED_ERROR || got.error != cases[i].error ||
			got.trailer_error != cases[i].trailer)
			tap_fail("\"%.*s\": result %d error %d %s", STR_FMT(cases[i].in),
				(int)got.result, (int)got.error, error_names[got.trailer_error]);
	}
}

static void extensions_are_dropped_or_refused(void)
{
	static const struct {
		struct str in;
		enum chunked_error error;
	} cases[] = {
		{S("5;ext\r\nhello\r\n0\r\n\r\n"), 0},
		{S("5\r\nhello\r\n0;last\r\n\r\n"), 0},
		{S("5;a=b;c;d=\"e;\\\"\\\\ \t=f\";g\r\nhello\r\n0;x=\"\"\r\n\r\n"), 0},
		{S("2;a\r\nhe\r\n3;b=1\r\nllo\r\n0\r\n\r\n"), 0},
		{S("5;\r\nhello\r\n"), CHUNKED_E_EXTENSION},
		{S("5;;a\r\nhello\r\n"), CHUNKED_E_EXTENSION},
		{S("5;=b\r\nhello\r\n"), CHUNKED_E_EXTENSION},
		{S("5;a=\r\nhello\r\n"), CHUNKED_E_EXTENSION},
		{S("5;a=b=c\r\nhello\r\n"), CHUNKED_E_EXTENSION},
		{S("5; a\r\nhello\r\n"), CHUNKED_E_EXTENSION},
		{S("5;a \r\nhello\r\n"), CHUNKED_E_EXTENSION},
		{S("5;a=\"b\"c\r\nhello\r\n"), CHUNKED_E_EXTENSION},
		{S("5;a=\"b\r\nhello\r\n"), CHUNKED_E_EXTENSION},
		{S("5;a=\"b\\\r\nhello\r\n"), CHUNKED_E_EXTENSION},
		{S("5;a=\"\x80\"\r\nhello\r\n"), CHUNKED_E_EXTENSION},
		{S("5;a\0\r\nhello\r\n"), CHUNKED_E_EXTENSION},
		{S("5;a\nhello\r\n"), CHUNKED_E_EXTENSION},
		{S("5;a=\"\n\"\r\nhello\r\n"), CHUNKED_E_EXTENSION},
		{S("5;a\rb\r\nhello\r\n"), CHUNKED_E_LINE_END},
		{S("5 \r\nhello\r\n0 \t \r\n\r\n"), CHUNKED_E_OK},
		{S("5 ;a\r\nhello\r\n"), CHUNKED_E_EXTENSION},
		{S("5 5\r\nhello\r\n"), CHUNKED_E_EXTENSION},
		{S("5 \nhello\r\n"), CHUNKED_E_EXTENSION},
		{S(" 5\r\nhello\r\n"), CHUNKED_E_SIZE},
		{S(";a\r\n"), CHUNKED_E_SIZE},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		extensions = true;
		decode_all(cases[i].in, true);
		check_int(got.error, cases[i].error);
		check_int(got.result, cases[i].error ? CHUNKED_ERROR : CHUNKED_DONE);
		if (!cases[i].error)
			check_z(got.data, "hello");
		extensions = false;
		decode_all(cases[i].in, true);
		check_int(got.error, CHUNKED_E_SIZE);
	}
}

/* Each chunk has the whole allowance, and not a byte more. */
static void extensions_have_a_limit(void)
{
	for (int over = 0; over < 2; over++) {
		_cleanup_(buf_donep) struct buf in = BUF_INIT(10000);

		for (int chunk = 0; chunk < 3; chunk++) {
			show(&in, "1;");
			for (int i = 1; i < CHUNKED_EXTENSION_MAX + (chunk == 2 && over); i++)
				show(&in, "x");
			show(&in, "\r\nx\r\n");
		}
		show(&in, "0\r\n\r\n");
		extensions = true;
		decode_all(buf_str(&in), true);
		extensions = false;
		check_int(got.error, over ? CHUNKED_E_EXTENSION : CHUNKED_E_OK);
		check_int(got.result, over ? CHUNKED_ERROR : CHUNKED_DONE);
		check_z(got.data, over ? "xx" : "xxx");
	}
}

static void what_follows_is_left(void)
{
	decode_all(STR("1\r\nx\r\n0\r\n\r\nGET / HTTP/1.1\r\n"), true);
	check_int(got.result, CHUNKED_DONE);
	check_int(got.used, 11);
}

static void trailers_have_limits(void)
{
	_cleanup_(buf_donep) struct buf in = BUF_INIT(1000000);

	show(&in, "0\r\nX: ");
	for (int i = 0; i < HTTP_TRAILERS_MAX; i++)
		show(&in, "y");
	show(&in, "\r\n\r\n");
	decode_all(buf_str(&in), true);
	check_int(got.trailer_error, H1_E_TRAILERS_TOO_LARGE);

	buf_clear(&in);
	show(&in, "0\r\n");
	for (int i = 0; i <= HTTP_FIELDS_MAX; i++)
		show(&in, "X: y\r\n");
	show(&in, "\r\n");
	decode_all(buf_str(&in), true);
	check_int(got.trailer_error, H1_E_TOO_MANY_FIELDS);
	decode_all(buf_str(&in), false);
	check_int(got.trailer_error, H1_E_TOO_MANY_FIELDS);
}

static void large_chunks_are_not_copied(void)
{
	struct chunked_decoder d;
	struct str in = STR("ffffffff\r\nabc"), data;

	chunked_init(&d, NULL, false);
	check_int(chunked_read(&d, &in, &data), CHUNKED_DATA);
	check_str(data, "abc");
	check(d.left == 0xffffffffULL - 3);
	check_int(chunked_read(&d, &in, &data), CHUNKED_MORE);
	chunked_done(&d);
}

/* What the writer wrote, the decoder reads back. */
static void written_chunks_are_read_back(void)
{
	for (unsigned round = 0; round < 300; round++) {
		_cleanup_(buf_donep) struct buf wire = BUF_INIT(200000);
		_cleanup_(buf_donep) struct buf plain = BUF_INIT(sizeof(got.data));
		_cleanup_(http_fields_donep) struct http_fields trailers = HTTP_FIELDS_INIT;
		unsigned pieces = test_random(6);

		for (unsigned i = 0; i < pieces; i++) {
			char piece[4096];
			size_t n = test_random(3) ? test_random(20) : test_random(sizeof(piece));

			for (size_t k = 0; k < n; k++)
				piece[k] = "\r\n0:a"[test_random(5)];
			must(buf_add(&plain, piece, n) == 0);
			check_int(h1_write_chunk(&wire, str_make(piece, n)), 0);
		}
		check_int(http_fields_add(&trailers, STR("X-Sum"), STR("1")), 0);
		check_int(http_fields_add(&trailers, STR("Content-Length"), STR("1")), 0);
		check_int(h1_write_last_chunk(&wire, round % 2 ? &trailers : NULL), 0);
		decode_all(buf_str(&wire), true);
		check_int(got.result, CHUNKED_DONE);
		check_str(buf_str(&plain), got.data);
		check_z(got.trailers, round % 2 ? "|X-Sum:1" : "");
	}
}

static void chunk_heads(void)
{
	char head[H1_CHUNK_HEAD_MAX];

	check_str(str_make(head, h1_chunk_head(head, 1)), "1\r\n");
	check_str(str_make(head, h1_chunk_head(head, 0xffffffff)), "ffffffff\r\n");
	check_str(str_make(head, h1_chunk_head(head, SIZE_MAX)), "ffffffffffffffff\r\n");
}

static void a_full_buffer_is_left_as_it_was(void)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(10);

	check_int(h1_write_chunk(&out, STR("123456")), -E2BIG);
	check_int(buf_len(&out), 0);
	check_int(h1_write_chunk(&out, STR("1")), 0);
	check_int(h1_write_last_chunk(&out, NULL), -E2BIG);
	check_str(buf_str(&out), "1\r\n1\r\n");
}

int main(void)
{
	run_test(bodies_that_are_accepted);
	run_test(bodies_that_are_refused);
	run_test(extensions_are_dropped_or_refused);
	run_test(extensions_have_a_limit);
	run_test(what_follows_is_left);
	run_test(trailers_have_limits);
	run_test(large_chunks_are_not_copied);
	run_test(written_chunks_are_read_back);
	run_test(chunk_heads);
	run_test(a_full_buffer_is_left_as_it_was);
	return tap_done();
}
