/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "record/cassette.h"
#include "record/cassette_write.h"
#include "tap.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define REQUEST "\"request\":{\"method\":\"GET\",\"url\":\"https://h/\",\"headers\":[]}}\n"
#define ONE "{\"t\":1,\"e\":1," REQUEST

static struct str pairs[][2] = {
	{STR("Content-Type"), STR("text/\"plain\"\\")}, {STR("X-Odd"), STR("\xe9t\t\xff")}};

static void get_pair(const void *of, unsigned i, struct str *ret_name, struct str *ret_value)
{
	*ret_name = pairs[i][0];
	*ret_value = pairs[i][1];
}

static const struct cassette_headers headers = {2, get_pair, NULL}, none = {0, get_pair, NULL};

static int file_of(struct str text)
{
	int fd = memfd_create("cassette", MFD_CLOEXEC);

	must(fd >= 0 && fd_write_all(fd, text.p, text.n) == 0);
	return fd;
}

static void write_two(struct buf *b)
{
	must(cassette_write_request(b, 10, 1, STR("POST"), STR("https://h/a?b"), &headers) == 0);
	must(cassette_write_request(b, 11, 2, STR("GET"), STR("https://h/"), &none) == 0);
	must(cassette_write_piece(b, 12, 1, "sent", STR("hel")) == 0);
	must(cassette_write_response(b, 13, 2, 200, &headers) == 0);
	must(cassette_write_piece(b, 14, 2, "data", STR("one ")) == 0);
	must(cassette_write_piece(b, 15, 1, "sent", STR("lo")) == 0);
	must(cassette_write_end(b, 15, 1, "sent_end", NULL, NULL) == 0);
	must(cassette_write_refused(b, 16, 1, 403, STR("no-rule")) == 0);
	must(cassette_write_response(b, 16, 1, 403, &none) == 0);
	must(cassette_write_piece(b, 17, 2, "data", STR("two")) == 0);
	must(cassette_write_end(b, 18, 2, "end", &headers, NULL) == 0);
	must(cassette_write_piece(b, 19, 1, "data", STR("no")) == 0);
	must(cassette_write_end(b, 20, 1, "end", NULL, NULL) == 0);
	must(cassette_write_request(b, 21, 7, STR("GET"), STR("https://h/"), &none) == 0);
	must(cassette_write_end(b, 22, 7, "sent_end", NULL, NULL) == 0);
	must(cassette_write_response(b, 23, 7, 200, &none) == 0);
	must(cassette_write_piece(b, 24, 7, "data", STR("kept")) == 0);
	must(cassette_write_word(b, 25, 7, "cut") == 0);
	must(cassette_write_end(b, 26, 7, "end", NULL, NULL) == 0);
	must(cassette_write_word(b, 27, 0, "cut") == 0);
}

static void check_body(
	const struct cassette *c, size_t i, enum cassette_kind kind, const char *want)
{
	_cleanup_(cassette_reading_donep) struct cassette_reading r = CASSETTE_READING_INIT;
	_cleanup_(buf_donep) struct buf all = BUF_INIT(1024);
	struct str piece;
	int n;

	cassette_reading_begin(&r, c, &c->v[i], kind);
	while ((n = cassette_reading_next(&r, &piece, NULL)) > 0)
		if (n == 1)
			must(buf_add_str(&all, piece) == 0);
	check_int(n, 0);
	check_str(buf_str(&all), want);
}

static void check_headers(struct cassette_line *l)
{
	struct str name, value;

	for (size_t i = 0; i < 2; i++) {
		check(cassette_header(l, i, &name, &value));
		check(str_eq(name, pairs[i][0]) && str_eq(value, pairs[i][1]));
	}
	check(!cassette_header(l, 2, &name, &value));
}

static void test_there_and_back(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(65536);
	_cleanup_(cassette_donep) struct cassette c = CASSETTE_INIT;
	_cleanup_(cassette_line_donep) struct cassette_line l = CASSETTE_LINE_INIT;
	_cleanup_fd_ int fd = -1;

	write_two(&b);
	fd = file_of(buf_str(&b));
	must(cassette_load(&c, fd, NULL) == 0);
	check_int(c.n, 3);
	check(c.cut);
	check(c.v[0].refused && c.v[0].status == 403 && c.v[0].sent.whole && c.v[0].received.whole);
	check_int(c.v[0].sent.bytes, 5);
	check_z(c.v[0].sent_digest,
		"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
	check(!c.v[0].early && c.v[1].early);
	check(c.v[1].received.whole && !c.v[1].sent.whole && c.v[1].ended_usec == 18);
	check(!c.v[2].received.whole && c.v[2].cut && c.v[2].sent.whole && c.v[2].number == 7);
	check_body(&c, 0, CASSETTE_SENT, "hello");
	check_body(&c, 0, CASSETTE_DATA, "no");
	check_body(&c, 1, CASSETTE_DATA, "one two");
	check_body(&c, 1, CASSETTE_SENT, "");
	check_body(&c, 2, CASSETTE_DATA, "kept");
	must(cassette_read_at(&c, c.v[0].request_at, &l, NULL) == 0);
	check_str(l.method, "POST");
	check_str(l.url, "https://h/a?b");
	check_headers(&l);
	must(cassette_read_at(&c, c.v[0].refused_at, &l, NULL) == 0);
	check_str(l.reason, "no-rule");
	must(cassette_read_at(&c, c.v[1].end_at, &l, NULL) == 0);
	check_headers(&l);
}

static void test_torn(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(65536);
	struct cloche_err err = CLOCHE_ERR_INIT;
	size_t last = 0;

	write_two(&b);
	/* Cut off anywhere, it loads, with what was whole. */
	for (size_t n = 0; n <= buf_len(&b); n++) {
		_cleanup_(cassette_donep) struct cassette c = CASSETTE_INIT;
		_cleanup_fd_ int fd = file_of(str_prefix(buf_str(&b), n));

		check_int(cassette_load(&c, fd, &err), 0);
		check(c.n >= last);
		last = c.n;
	}
}

static void test_bad(void)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{"x\n", "no JSON object"},
		{"[]\n", "no JSON object"},
		{"{\"e\":1,\"e\":2}\n", "no JSON object"},
		{"{\"t\":1,\"e\":1}\n", "nothing that is known"},
		{"{\"t\":1,\"cut\":false}\n", "not true"},
		{"{\"t\":1,\"e\":0,\"cut\":true}\n", "no number"},
		{"{\"t\":1," REQUEST, "no number"},
		{"{\"e\":1,\"sent_end\":true}\n", "no request"},
		{"{\"e\":1,\"end\":true,\"cut\":true}\n", "two things"},
		{ONE ONE, "not above"},
		{ONE "{\"e\":1,\"data\":\"YQ==\"}\n", "without its head"},
		{ONE "{\"e\":1,\"sent\":\"Y!\"}\n", "no base64"},
		{ONE "{\"e\":1,\"sent_end\":true}\n{\"e\":1,\"sent\":\"YQ==\"}\n", "has ended"},
		{ONE "{\"e\":1,\"sent_end\":1}\n", "is true"},
		{ONE "{\"e\":1,\"cut\":true}\n{\"e\":1,\"sent\":\"YQ==\"}\n", "were cut"},
		{ONE "{\"e\":1,\"end\":true}\n{\"e\":1,\"end\":true}\n", "has ended"},
		{ONE "{\"cut\":true}\n{\"e\":1,\"sent\":\"YQ==\"}\n", "has ended"},
		{ONE "{\"e\":1,\"response\":{\"status\":20,\"headers\":[]}}\n", "100 to 999"},
		{ONE "{\"e\":1,\"response\":{\"status\":200}}\n", "has headers"},
		{ONE "{\"e\":1,\"response\":{\"status\":200,\"headers\":[[\"a\"]]}}\n",
			"has headers"},
		{ONE "{\"e\":1,\"end\":true,\"trailers\":{}}\n", "trailers"},
		{"{\"e\":1,\"request\":{\"method\":\"G T\",\"url\":\"/\",\"headers\":[]}}\n",
			"in ASCII"},
		{"{\"e\":1,\"request\":{\"method\":\"GET\",\"url\":\"\\u001b\",\"headers\":[]}}\n",
			"in ASCII"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_(cassette_donep) struct cassette c = CASSETTE_INIT;
		_cleanup_fd_ int fd = file_of(str_from(bad[i].text));
		struct cloche_err err = CLOCHE_ERR_INIT;

		check_int(cassette_load(&c, fd, &err), -E_CORRUPT);
		if (!strstr(err.message, bad[i].why))
			tap_fail("%zu: %s", i, err.message);
	}
}

/* As our writer has it, and as JSON may have it besides: the same. */
static void test_both_ways(void)
{
	static const char *const lines[] = {"{\"t\":5,\"e\":7,\"data\":\"aGVs\"}",
		"{\"e\": 7, \"data\": \"aGVs\", \"t\": 5}",
		"{\"t\":5,\"e\":7,\"data\":\"\\u0061GVs\"}",
		"{\"t\":5,\"e\":7,\"data\":\"aGVs\",\"x\":\"\"}"};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		_cleanup_(cassette_line_donep) struct cassette_line l = CASSETTE_LINE_INIT;

		check_int(cassette_line_read(&l, str_from(lines[i]), NULL), 0);
		check(l.kind == CASSETTE_DATA && l.usec == 5 && l.number == 7);
		check_str(l.piece, "hel");
	}
}

static void test_no_bytes(void)
{
	_cleanup_(cassette_line_donep) struct cassette_line l = CASSETTE_LINE_INIT;
	struct str name, value;

	/* A character that is no byte becomes one that no header may hold. */
	must(cassette_line_read(&l,
		     STR("{\"e\":1,\"end\":true,\"trailers\":[[\"a\",\"\\u20acx\"]]}"), NULL) == 0);
	must(cassette_header(&l, 0, &name, &value));
	check(value.n == 2 && value.p[0] == '\0' && value.p[1] == 'x');
}

/* The body of one exchange among the lines of another: reading passes these over in steps. */
static void test_among_others(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(16 << 20);
	_cleanup_(cassette_donep) struct cassette c = CASSETTE_INIT;
	_cleanup_(cassette_reading_donep) struct cassette_reading r = CASSETTE_READING_INIT;
	_cleanup_fd_ int fd = -1;
	static char piece[CASSETTE_PIECE_MAX];
	struct str got;
	unsigned waits = 0, pieces = 0;
	int n;

	for (unsigned e = 1; e <= 2; e++)
		must(cassette_write_request(&b, 1, e, STR("PUT"), STR("https://h/"), &none) == 0);
	must(cassette_write_piece(&b, 1, 1, "sent", STR("first")) == 0);
	for (unsigned i = 0; i < 100; i++)
		must(cassette_write_piece(&b, 1, 2, "sent", str_make(piece, sizeof(piece))) == 0);
	must(cassette_write_piece(&b, 1, 1, "sent", STR("last")) == 0);
	fd = file_of(buf_str(&b));
	must(cassette_load(&c, fd, NULL) == 0);
	check_int(c.v[1].sent.bytes, 100 * sizeof(piece));
	cassette_reading_begin(&r, &c, &c.v[0], CASSETTE_SENT);
	while ((n = cassette_reading_next(&r, &got, NULL)) > 0) {
		waits += n == 2;
		pieces += n == 1;
	}
	check_int(n, 0);
	check_int(pieces, 2);
	check(waits >= 4);
	/* Changed under the reader: an error, and no piece. */
	must(ftruncate(fd, 10) == 0);
	cassette_reading_begin(&r, &c, &c.v[0], CASSETTE_SENT);
	check_int(cassette_reading_next(&r, &got, NULL), -E_CORRUPT);
}

int main(void)
{
	run_test(test_there_and_back);
	run_test(test_torn);
	run_test(test_bad);
	run_test(test_both_ways);
	run_test(test_no_bytes);
	run_test(test_among_others);
	return tap_done();
}
