/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rand.h"
#include "http/coding.h"

#include "seeded.h"
#include "tap.h"
#include "torture.h"

#include <brotli/encode.h>
#include <errno.h>
#include <zlib.h>
#include <zstd.h>

#define ANY SIZE_MAX

static struct coding_list one(enum coding coding)
{
	return (struct coding_list){1, {coding}};
}

/* Encoders, by the same libraries. */

static void add_deflate(struct buf *out, struct str s, int window_bits, int flush)
{
	z_stream z = {0};
	char *p;
	size_t n = s.n + s.n / 100 + 1000;

	must(deflateInit2(&z, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) == Z_OK);
	must(buf_reserve(out, n, &p) == 0);
	z.next_in = (Bytef *)(uintptr_t)s.p;
	z.avail_in = (uInt)s.n;
	z.next_out = (Bytef *)p;
	z.avail_out = (uInt)n;
	must(deflate(&z, flush) == (flush == Z_FINISH ? Z_STREAM_END : Z_OK) && z.avail_in == 0);
	buf_commit(out, n - z.avail_out);
	deflateEnd(&z);
}

static void add_br(struct buf *out, struct str s, uint32_t window, BrotliEncoderOperation op)
{
	BrotliEncoderState *e = BrotliEncoderCreateInstance(NULL, NULL, NULL);
	const uint8_t *in = (const uint8_t *)s.p;
	size_t n = s.n + s.n / 100 + 1000, left = n;
	uint8_t *to;
	char *p;

	must(e && buf_reserve(out, n, &p) == 0);
	to = (uint8_t *)p;
	BrotliEncoderSetParameter(e, BROTLI_PARAM_QUALITY, 5);
	BrotliEncoderSetParameter(e, BROTLI_PARAM_LARGE_WINDOW, window > 24);
	BrotliEncoderSetParameter(e, BROTLI_PARAM_LGWIN, window);
	must(BrotliEncoderCompressStream(e, op, &s.n, &in, &left, &to, NULL) && s.n == 0);
	buf_commit(out, n - left);
	BrotliEncoderDestroyInstance(e);
}

static void add_zstd(struct buf *out, struct str s, int window, ZSTD_EndDirective op)
{
	ZSTD_CCtx *c = ZSTD_createCCtx();
	size_t n = ZSTD_compressBound(s.n) + 1000;
	ZSTD_inBuffer in = {s.p, s.n, 0};
	ZSTD_outBuffer to = {NULL, n, 0};
	char *p;

	must(c && buf_reserve(out, n, &p) == 0);
	to.dst = p;
	ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
	if (window) {
		ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, window);
		/* begun without knowing the content's size, or that would be the window */
		must(ZSTD_compressStream2(c, &to, &in, ZSTD_e_flush) == 0);
	}
	must(ZSTD_compressStream2(c, &to, &in, op) == 0);
	buf_commit(out, to.pos);
	ZSTD_freeCCtx(c);
}

static void encode(struct buf *out, struct str s, enum coding coding)
{
	if (coding == CODING_GZIP)
		add_deflate(out, s, 15 + 16, Z_FINISH);
	else if (coding == CODING_DEFLATE)
		add_deflate(out, s, 15, Z_FINISH);
	else if (coding == CODING_BR)
		add_br(out, s, 22, BROTLI_OPERATION_FINISH);
	else
		add_zstd(out, s, 0, ZSTD_e_end);
}

/* Gives out what has come as far as a flush lets it. */
static void encode_begun(struct buf *out, struct str s, enum coding coding)
{
	if (coding == CODING_GZIP)
		add_deflate(out, s, 15 + 16, Z_SYNC_FLUSH);
	else if (coding == CODING_DEFLATE)
		add_deflate(out, s, -15, Z_SYNC_FLUSH);
	else if (coding == CODING_BR)
		add_br(out, s, 22, BROTLI_OPERATION_FLUSH);
	else
		add_zstd(out, s, 20, ZSTD_e_flush);
}

/* Decodes in with pieces of in_size and into pieces of out_size; 0: random ones, ANY: as much as
 * there is. */
static enum coding_result decode_as(const struct coding_list *list, struct str in, size_t in_size,
	size_t out_size, struct buf *out)
{
	_cleanup_(coding_decoder_freep) struct coding_decoder *d = NULL;
	enum coding_result r = CODING_MORE;
	static char mem[1 << 16];

	must(coding_decoder_new(list, NULL, &d) == 0);
	while (r == CODING_MORE) {
		struct str piece = str_prefix(in, in_size ? in_size : rand_below(300));
		size_t n = 0;

		in = str_from_index(in, piece.n);
		do {
			size_t size = out_size ? MIN(out_size, sizeof(mem)) : 1 + rand_below(300);

			r = coding_read(d, &piece, in.n == 0, mem, size, &n);
			if (r != CODING_DATA)
				continue;
			check(n > 0 && n <= size);
			must(buf_add(out, mem, n) == 0);
		} while (r == CODING_DATA);
		check(r == CODING_BAD || piece.n == 0);
	}
	if (r == CODING_BAD) {
		struct str none = STR_NULL;
		size_t n;

		check(coding_read(d, &none, true, mem, 10, &n) == CODING_BAD);
		check(strcmp(coding_error(d), "no error") != 0);
	}
	return r;
}

/* However it is cut, the same comes out. */
static enum coding_result decode(const struct coding_list *list, struct str in, struct buf *out)
{
	static const size_t ways[][2] = {{1, ANY}, {ANY, 1}, {0, 0}, {7, 4096}, {ANY, 0}};
	enum coding_result first = decode_as(list, in, ANY, ANY, out);

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		_cleanup_(buf_donep) struct buf again = BUF_INIT(SIZE_MAX / 2);
		size_t n;

		if (in.n > 100000 && i < 2)
			continue;
		check_int(decode_as(list, in, ways[i][0], ways[i][1], &again), first);
		if (first == CODING_DONE)
			check(str_eq(buf_str(&again), buf_str(out)));
		n = MIN(buf_len(&again), buf_len(out));
		check(str_eq(str_prefix(buf_str(&again), n), str_prefix(buf_str(out), n)));
	}
	return first;
}

static void check_bad(enum coding coding, struct str in)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(SIZE_MAX / 2);
	struct coding_list list = one(coding);

	check_int(decode(&list, in, &out), CODING_BAD);
}

static void check_good(const struct coding_list *list, struct str in, struct str want)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(SIZE_MAX / 2);

	check_int(decode(list, in, &out), CODING_DONE);
	check(str_eq(buf_str(&out), want));
}

/* Bytes of several kinds, n of them. */
static void fill(struct buf *b, size_t n, int kind)
{
	char *p;

	buf_clear(b);
	must(buf_reserve(b, n + 8, &p) == 0);
	if (kind == 0)
		memset(p, 0, n);
	else
		rand_bytes(p, n);
	for (size_t i = 0; kind == 2 && i < n; i++)
		p[i] = "etaoin shrdlu\n"[(unsigned char)p[i] % 14];
	buf_commit(b, n);
}

static void test_all(void)
{
	static const size_t sizes[] = {0, 1, 2, 100, 5000, 300000};
	_cleanup_(buf_donep) struct buf plain = BUF_INIT(SIZE_MAX / 2);

	for (enum coding c = 0; c < CODING_N; c++)
		for (size_t i = 0; i < ARRAY_SIZE(sizes) * 3; i++) {
			_cleanup_(buf_donep) struct buf in = BUF_INIT(SIZE_MAX / 2);
			struct coding_list list = one(c);

			fill(&plain, sizes[i / 3], (int)(i % 3));
			encode(&in, buf_str(&plain), c);
			check_good(&list, buf_str(&in), buf_str(&plain));
		}
}

static void test_stacked(void)
{
	_cleanup_(buf_donep) struct buf plain = BUF_INIT(SIZE_MAX / 2);

	fill(&plain, 70000, 2);
	for (unsigned i = 0; i < 64; i++) {
		struct coding_list list = {3, {i & 3, i >> 2 & 3, i >> 4}};
		_cleanup_(buf_donep) struct buf a = BUF_INIT(SIZE_MAX / 2);
		_cleanup_(buf_donep) struct buf b = BUF_INIT(SIZE_MAX / 2);
		_cleanup_(buf_donep) struct buf c = BUF_INIT(SIZE_MAX / 2);

		encode(&a, buf_str(&plain), list.v[0]);
		encode(&b, buf_str(&a), list.v[1]);
		encode(&c, buf_str(&b), list.v[2]);
		check_good(&list, buf_str(&c), buf_str(&plain));
		/* the inner one is cut */
		buf_clear(&b);
		buf_clear(&c);
		encode(&b, str_prefix(buf_str(&a), buf_len(&a) / 2), list.v[1]);
		encode(&c, buf_str(&b), list.v[2]);
		buf_clear(&a);
		check_int(decode(&list, buf_str(&c), &a), CODING_BAD);
		/* nothing at all is not what an empty body looks like inside another coding */
		buf_clear(&b);
		list.n = 2;
		encode(&b, STR_NULL, list.v[1]);
		check_int(decode(&list, buf_str(&b), &a), CODING_BAD);
	}
}

static void test_raw_deflate(void)
{
	struct coding_list list = one(CODING_DEFLATE);

	for (size_t n = 0; n < 2000; n += 7) {
		_cleanup_(buf_donep) struct buf in = BUF_INIT(SIZE_MAX / 2);
		_cleanup_(buf_donep) struct buf plain = BUF_INIT(SIZE_MAX / 2);

		fill(&plain, n, (int)(n % 3));
		add_deflate(&in, buf_str(&plain), -15, Z_FINISH);
		check_good(&list, buf_str(&in), buf_str(&plain));
	}
}

static void test_cut_and_garbage(void)
{
	for (enum coding c = 0; c < CODING_N; c++) {
		_cleanup_(buf_donep) struct buf in = BUF_INIT(SIZE_MAX / 2);
		struct str whole;

		encode(&in, STR("some text, some text, and a bit more of it"), c);
		for (size_t n = 1; n < buf_len(&in); n++)
			check_bad(c, str_prefix(buf_str(&in), n));
		must(buf_add_str(&in, STR("\0")) == 0);
		check_bad(c, buf_str(&in));
		buf_clear(&in);
		encode(&in, STR("text"), c);
		encode(&in, STR("text"), c);
		whole = buf_str(&in);
		if (c == CODING_DEFLATE || c == CODING_BR)
			check_bad(c, whole);
		/* a wrong byte at the end, where the checksums are */
		buf_data(&in)[whole.n - 1] = (char)(whole.p[whole.n - 1] ^ 0x10);
		check_bad(c, whole);
		check_bad(c, STR("plain text"));
	}
}

static void test_one_after_the_other(void)
{
	static const enum coding codings[] = {CODING_GZIP, CODING_ZSTD};

	for (size_t i = 0; i < 2; i++) {
		_cleanup_(buf_donep) struct buf in = BUF_INIT(SIZE_MAX / 2);
		struct coding_list list = one(codings[i]);

		encode(&in, STR("one, "), codings[i]);
		encode(&in, STR(""), codings[i]);
		if (codings[i] == CODING_ZSTD) /* a frame to skip */
			must(buf_add_str(&in, STR("\x53\x2a\x4d\x18\3\0\0\0abc")) == 0);
		encode(&in, STR("two"), codings[i]);
		check_good(&list, buf_str(&in), STR("one, two"));
	}
}

static void test_windows(void)
{
	static const char older[] = "\x27\xb5\x2f\xfd\x28\0\0\0\0\0\0\0\0";
	_cleanup_(buf_donep) struct buf in = BUF_INIT(SIZE_MAX / 2);
	struct coding_list br = one(CODING_BR), zstd = one(CODING_ZSTD);

	add_br(&in, STR("a large window"), 24, BROTLI_OPERATION_FINISH);
	check_good(&br, buf_str(&in), STR("a large window"));
	buf_clear(&in);
	add_br(&in, STR("a larger one"), 28, BROTLI_OPERATION_FINISH);
	check_bad(CODING_BR, buf_str(&in));
	buf_clear(&in);
	add_zstd(&in, STR("a large window"), 23, ZSTD_e_end);
	check_good(&zstd, buf_str(&in), STR("a large window"));
	buf_clear(&in);
	add_zstd(&in, STR("a larger one"), 24, ZSTD_e_end);
	check_bad(CODING_ZSTD, buf_str(&in));
	check_bad(CODING_ZSTD, str_make(older, sizeof(older) - 1));
	/* its size is said, and it is seen whole */
	check_bad(CODING_ZSTD, STR("\x28\xb5\x2f\xfd\x80\x90\4\0\0\0\x21\0\0abcd"));
	check_good(&zstd, STR("\x28\xb5\x2f\xfd\x80\x68\4\0\0\0\x21\0\0abcd"), STR("abcd"));
}

/* What is decodable does not wait for what comes after it. */
static void test_nothing_waits(void)
{
	struct str event = STR("data: {\"a\": 1}\n\n");

	for (enum coding c = 0; c < CODING_N; c++) {
		_cleanup_(coding_decoder_freep) struct coding_decoder *d = NULL;
		_cleanup_(buf_donep) struct buf in = BUF_INIT(SIZE_MAX / 2);
		struct coding_list list = one(c);
		struct str piece;
		char out[100];
		size_t n = 0, all = 0;

		encode_begun(&in, event, c);
		piece = buf_str(&in);
		must(coding_decoder_new(&list, NULL, &d) == 0);
		while (coding_read(d, &piece, false, out + all, sizeof(out) - all, &n) ==
			CODING_DATA)
			all += n;
		check(str_eq(str_make(out, all), event));
		/* asking again and again changes nothing */
		for (int i = 0; i < 100; i++)
			check(coding_read(d, &piece, false, out, 1, &n) == CODING_MORE);
		check(coding_read(d, &piece, true, out, sizeof(out), &n) == CODING_BAD);
	}
}

/* A bomb is unpacked as slowly as it is asked for, and within the memory that is promised. */
static void test_bomb(void)
{
	static const size_t most[CODING_N] = {48 << 10, 48 << 10, 17 << 20, 9 << 20};
	enum { SIZE = 32 << 20 }; /* twice the largest window */
	char *zeros = calloc(1, SIZE);

	must(zeros);
	for (enum coding c = 0; c < CODING_N; c++) {
		_cleanup_(coding_decoder_freep) struct coding_decoder *d = NULL;
		_cleanup_(buf_donep) struct buf in = BUF_INIT(SIZE_MAX / 2);
		struct coding_budget budget = {0, SIZE_MAX};
		struct coding_list list = one(c);
		struct str rest;
		size_t n = 0, all = 0, peak = 0;
		static char out[16384];

		if (c == CODING_BR)
			add_br(&in, str_make(zeros, SIZE), 24, BROTLI_OPERATION_FINISH);
		else if (c == CODING_ZSTD)
			add_zstd(&in, str_make(zeros, SIZE), 23, ZSTD_e_end);
		else
			encode(&in, str_make(zeros, SIZE), c);
		rest = buf_str(&in);
		must(coding_decoder_new(&list, &budget, &d) == 0);
		while (coding_read(d, &rest, true, out, sizeof(out), &n) == CODING_DATA) {
			all += n;
			peak = MAX(peak, budget.used);
		}
		check_int(all, SIZE);
		check(peak > 1000 && peak <= most[c]);
		d = coding_decoder_free(d);
		check_int(budget.used, 0);
	}
	free(zeros);
}

/* What gives nothing is not worked on for long, also if it comes out of another coding. */
static void test_idle(void)
{
	_cleanup_(buf_donep) struct buf in = BUF_INIT(SIZE_MAX / 2), out = BUF_INIT(SIZE_MAX / 2);
	struct coding_list list = one(CODING_GZIP);

	while (buf_len(&in) <= CODING_IDLE_MAX)
		encode(&in, STR(""), CODING_GZIP);
	check_int(decode_as(&list, buf_str(&in), ANY, ANY, &out), CODING_BAD);
	check_int(decode_as(&list, str_prefix(buf_str(&in), 20 * 20), ANY, ANY, &out), CODING_DONE);
	for (enum coding c = 0; c < CODING_N; c++) {
		_cleanup_(buf_donep) struct buf packed = BUF_INIT(SIZE_MAX / 2);

		list = (struct coding_list){2, {CODING_GZIP, c}};
		encode(&packed, buf_str(&in), c);
		check_int(decode_as(&list, buf_str(&packed), ANY, ANY, &out), CODING_BAD);
	}
	check_int(buf_len(&out), 0);
}

static void test_budget(void)
{
	_cleanup_(buf_donep) struct buf plain = BUF_INIT(SIZE_MAX / 2);

	fill(&plain, 3 << 20, 2);
	for (enum coding c = 0; c < CODING_N; c++) {
		_cleanup_(buf_donep) struct buf in = BUF_INIT(SIZE_MAX / 2);
		struct coding_list list = one(c);
		bool done = false, refused = false;

		if (c == CODING_BR)
			add_br(&in, buf_str(&plain), 21, BROTLI_OPERATION_FINISH);
		else if (c == CODING_ZSTD)
			add_zstd(&in, buf_str(&plain), 21, ZSTD_e_end);
		else
			encode(&in, buf_str(&plain), c);
		for (size_t max = 1000; !done; max += max / 3) {
			_cleanup_(coding_decoder_freep) struct coding_decoder *d = NULL;
			struct coding_budget budget = {0, max};
			struct str rest = buf_str(&in);
			enum coding_result r = CODING_BAD;
			static char out[16384];
			size_t n;

			if (coding_decoder_new(&list, &budget, &d) == 0)
				while ((r = coding_read(d, &rest, true, out, sizeof(out), &n)) ==
					CODING_DATA)
					;
			done = r == CODING_DONE;
			refused |= !done;
			if (d && !done)
				check_z(coding_error(d), "out of memory");
			d = coding_decoder_free(d);
			check_int(budget.used, 0);
			must(max < 100 << 20);
		}
		check(refused);
	}
}

static void add(struct http_fields *f, const char *name, const char *value)
{
	must(http_fields_add(f, str_from(name), str_from(value)) == 0);
}

static void test_list(void)
{
	struct http_fields f = HTTP_FIELDS_INIT;
	struct coding_list list;

	check(coding_list_read(&f, &list) == 0 && list.n == 0);
	add(&f, "content-encoding", "identity, ,");
	check(coding_list_read(&f, &list) == 0 && list.n == 0);
	add(&f, "Content-Encoding", "X-GZip,identity");
	add(&f, "CONTENT-ENCODING", "br , zstd");
	check(coding_list_read(&f, &list) == 0 && list.n == 3);
	check(list.v[0] == CODING_GZIP && list.v[1] == CODING_BR && list.v[2] == CODING_ZSTD);
	add(&f, "Content-Encoding", "deflate");
	check(coding_list_read(&f, &list) == -E2BIG && list.n == 0);
	http_fields_clear(&f);
	add(&f, "Content-Encoding", "gzip, compress");
	check(coding_list_read(&f, &list) == -ENOTSUP && list.n == 0);
	http_fields_done(&f);
}

/* The fields are of a request. */
static bool is_asked(const char *accept, unsigned n, enum coding first, enum coding second)
{
	const struct coding_list list = {.n = n, .v = {first, second}};
	struct http_fields f = HTTP_FIELDS_INIT;
	bool asked;

	if (accept)
		add(&f, "Accept-Encoding", accept);
	asked = coding_list_is_asked(&list, &f);
	http_fields_done(&f);
	return asked;
}

static void test_asked(void)
{
	check(!is_asked(NULL, 1, CODING_GZIP, 0));
	check(!is_asked("", 1, CODING_GZIP, 0));
	check(!is_asked("identity", 1, CODING_GZIP, 0));
	check(!is_asked("br, gzip;q=0", 1, CODING_GZIP, 0));
	check(!is_asked("gzip;q=0, *", 1, CODING_GZIP, 0));
	check(is_asked("br, gzip", 1, CODING_GZIP, 0));
	check(is_asked("x-gzip;q=0.5", 1, CODING_GZIP, 0));
	check(is_asked("*", 2, CODING_GZIP, CODING_ZSTD));
	check(!is_asked("gzip", 2, CODING_GZIP, CODING_BR));
	check(is_asked("deflate, br, gzip", 2, CODING_GZIP, CODING_BR));
}

static void test_accept(void)
{
	static const char *const cases[][2] = {
		{"gzip, deflate, br, zstd", "gzip, deflate, br, zstd"},
		{"", "identity"},
		{"br;q=1.0, gzip;q=0.8, *;q=0.1",
			"br;q=1.0, gzip;q=0.8, deflate;q=0.1, zstd;q=0.1"},
		{"gzip;q=0, deflate ; Q=0.5", "deflate;q=0.5"},
		{"gzip;q=0, *", "deflate, br, zstd"},
		{"*;q=0", "identity"},
		{"dcb, dcz, compress", "identity"},
		{"x-gzip, gzip", "gzip"},
		{"identity;q=0", "identity"},
		{"identity;q=0.5, gzip", "identity;q=0.5, gzip"},
		{"gzip;q=2, br;q=0.1234, zstd;q=1.001, deflate;x=1", "identity"},
		{"gzip;q=0.123,deflate;q=0.123,br;q=0.123,zstd;q=0.123,identity;q=0.123",
			"gzip;q=0.123, deflate;q=0.123, br;q=0.123, zstd;q=0.123, "
			"identity;q=0.123"},
		{"GZIP", "gzip"},
	};
	char text[CODING_ACCEPT_MAX];
	struct http_fields f = HTTP_FIELDS_INIT;

	coding_accept(&f, text);
	check_z(text, "identity");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		http_fields_clear(&f);
		add(&f, "Accept-Encoding", cases[i][0]);
		coding_accept(&f, text);
		check_z(text, cases[i][1]);
	}
	add(&f, "accept-encoding", "br");
	coding_accept(&f, text);
	check_z(text, "gzip, br");
	http_fields_done(&f);
}

static struct buf tortured;

static void use_decoder(void)
{
	_cleanup_(coding_decoder_freep) struct coding_decoder *d = NULL;
	struct coding_list list = {3, {CODING_BR, CODING_DEFLATE, CODING_GZIP}};
	struct coding_budget budget = {0, SIZE_MAX};
	struct str in = buf_str(&tortured);
	enum coding_result r;
	char out[64];
	size_t n = 0, all = 0;
	int e = coding_decoder_new(&list, &budget, &d);

	check_int(e, torture_failed ? -ENOMEM : 0);
	if (e == 0) {
		while ((r = coding_read(d, &in, true, out, sizeof(out), &n)) == CODING_DATA)
			all += n;
		check_int(r, torture_failed ? CODING_BAD : CODING_DONE);
		if (torture_failed)
			check_z(coding_error(d), "out of memory");
		else
			check_int(all, 200000);
	}
	d = coding_decoder_free(d);
	check_int(budget.used, 0);
}

static void test_torture(void)
{
	_cleanup_(buf_donep) struct buf plain = BUF_INIT(SIZE_MAX / 2);
	_cleanup_(buf_donep) struct buf a = BUF_INIT(SIZE_MAX / 2), b = BUF_INIT(SIZE_MAX / 2);

	tortured = BUF_INIT(SIZE_MAX / 2);
	fill(&plain, 200000, 2);
	encode(&a, buf_str(&plain), CODING_BR);
	encode(&b, buf_str(&a), CODING_DEFLATE);
	encode(&tortured, buf_str(&b), CODING_GZIP);
	torture(use_decoder);
	buf_done(&tortured);
}

int main(void)
{
	seeded_begin();
	run_test(test_all);
	run_test(test_stacked);
	run_test(test_raw_deflate);
	run_test(test_cut_and_garbage);
	run_test(test_one_after_the_other);
	run_test(test_windows);
	run_test(test_nothing_waits);
	run_test(test_bomb);
	run_test(test_idle);
	run_test(test_budget);
	run_test(test_list);
	run_test(test_accept);
	run_test(test_asked);
	run_test(test_torture);
	return tap_done();
}
