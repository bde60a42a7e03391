/* SPDX-License-Identifier: Apache-2.0 */
#include "aws/chunks.h"

#include "tap.h"

enum { BODY_MAX = 1 << 20 };

/* The example of AWS's documentation: 64 KiB and 1 KiB of 'a', then the end; and its signatures. */
#define KEY_ID "AKIAIOSFODNN7EXAMPLE"
#define SECRET "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
#define SEED "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"

static const char *const documented[] = {
	"ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
	"0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
	"b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"};
#define DOCUMENTED_TRAILER "df5735bd9f3295cd9386572292562fefc93ba94e80a0a1ddcbd652c4e0a75e6c"

struct side {
	struct aws_signer *signer;
	struct aws_scope scope;
	char last[AWS_SIGNATURE_MAX];
	size_t last_n;
};

static const struct aws_auth *make_auth(enum aws_algorithm a, bool trailers)
{
	static struct aws_auth auth;

	auth = (struct aws_auth){.time = STR("20130524T000000Z"),
		.kind = trailers ? AWS_PAYLOAD_CHUNKS_TRAILER : AWS_PAYLOAD_CHUNKS};
	must(aws_scope_parse(a,
		a == AWS_HMAC ? STR("20130524/us-east-1/s3/aws4_request")
			      : STR("20130524/s3/aws4_request"),
		&auth.scope));
	return &auth;
}

/* As a client signs: kept apart from what is tested. */
static struct str sign(struct side *s, const char *kind, struct str content)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(4096);
	char hash[AWS_HEX];
	bool chunk = strcmp(kind, "PAYLOAD") == 0;

	aws_sha256_hex(content, hash);
	must(buf_printf(&text, "%s-%s\n20130524T000000Z\n%.*s\n%.*s\n%s%.64s",
		     s->scope.algorithm == AWS_HMAC ? "AWS4-HMAC-SHA256" : "AWS4-ECDSA-P256-SHA256",
		     kind, STR_FMT(s->scope.text), (int)s->last_n, s->last,
		     chunk ? AWS_EMPTY_HASH "\n" : "", hash) == 0);
	s->last_n = aws_signer_sign(s->signer, &s->scope, buf_str(&text), s->last);
	return str_make(s->last, s->last_n);
}

static void add_chunk(struct buf *body, struct side *s, struct str data, bool pad)
{
	struct str signature = sign(s, "PAYLOAD", data);

	must(buf_printf(body, "%zx;chunk-signature=%.*s", data.n, STR_FMT(signature)) == 0);
	for (size_t i = signature.n; pad && i < AWS_ECDSA_WIDTH; i++)
		must(buf_add_char(body, '*') == 0);
	must(buf_add_str(body, STR("\r\n")) == 0);
	must(buf_add_str(body, data) == 0);
}

static void add_trailers(
	struct buf *body, struct side *s, const char *wire, const char *sorted, bool pad)
{
	struct str signature = sign(s, "TRAILER", str_from(sorted));

	must(buf_printf(body, "%sx-amz-trailer-signature:%.*s", wire, STR_FMT(signature)) == 0);
	for (size_t i = signature.n; pad && i < AWS_ECDSA_WIDTH; i++)
		must(buf_add_char(body, '*') == 0);
	must(buf_add_str(body, STR("\r\n\r\n")) == 0);
}

/* A body of two chunks. */
static void make_body(struct buf *body, struct side *s, bool trailers)
{
	static char a[65536];
	bool pad = s->scope.algorithm == AWS_ECDSA;

	memset(a, 'a', sizeof(a));
	add_chunk(body, s, str_make(a, sizeof(a)), pad);
	must(buf_add_str(body, STR("\r\n")) == 0);
	add_chunk(body, s, str_make(a, 1024), pad);
	must(buf_add_str(body, STR("\r\n")) == 0);
	add_chunk(body, s, STR(""), pad);
	if (trailers)
		add_trailers(body, s, "third:3rd\r\nfirst:1st\r\nsecond:  2nd\r\n",
			"first:1st\nsecond:2nd\nthird:3rd\n", pad);
	else
		must(buf_add_str(body, STR("\r\n")) == 0);
}

struct case_ {
	struct side room, real;
	struct aws_chunks *chunks;
};

static void start(struct case_ *c, enum aws_algorithm a, bool trailers, bool same_length)
{
	const struct aws_auth *auth = make_auth(a, trailers);
	struct aws_chunks_config config = {.auth = auth,
		.surrogate_seed = STR("aa11"),
		.real_seed = STR(SEED),
		.same_length = same_length,
		.has_decoded_length = true,
		.decoded_length = 65536 + 1024};

	*c = (struct case_){.room = {.scope = auth->scope}, .real = {.scope = auth->scope}};
	c->room.signer = aws_signer_new(STR("AKIAROOM"), STR("room's secret"), STR_NULL);
	c->real.signer = aws_signer_new(STR(KEY_ID), STR(SECRET), STR_NULL);
	memcpy(c->room.last, "aa11", c->room.last_n = 4);
	memcpy(c->real.last, SEED, c->real.last_n = strlen(SEED));
	config.surrogate = c->room.signer;
	config.real = c->real.signer;
	c->chunks = aws_chunks_new(&config);
	must(c->chunks);
}

static void finish(struct case_ *c)
{
	aws_chunks_free(c->chunks);
	aws_signer_free(c->room.signer);
	aws_signer_free(c->real.signer);
}

static void test_documented(void)
{
	_cleanup_(buf_donep) struct buf in = BUF_INIT(BODY_MAX), out = BUF_INIT(BODY_MAX);
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct case_ c;

	start(&c, AWS_HMAC, true, true);
	make_body(&in, &c.room, true);
	check_int(aws_chunks_feed(c.chunks, buf_str(&in), &out, &err), 0);
	check_int(aws_chunks_end(c.chunks, &err), 0);
	check_int(buf_len(&in), buf_len(&out));
	for (size_t i = 0; i < ARRAY_SIZE(documented); i++)
		check(str_find(buf_str(&out), str_from(documented[i])) < buf_len(&out));
	check(str_find(buf_str(&out), STR(DOCUMENTED_TRAILER)) < buf_len(&out));
	finish(&c);
}

/* What comes out is what a client with the real credentials would have sent, however what goes in
 * is split. */
static void split(enum aws_algorithm a, bool trailers, size_t piece)
{
	_cleanup_(buf_donep) struct buf in = BUF_INIT(BODY_MAX), out = BUF_INIT(BODY_MAX),
					want = BUF_INIT(BODY_MAX);
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct case_ c;
	struct str rest;
	int r = 0;

	start(&c, a, trailers, true);
	make_body(&in, &c.room, trailers);
	make_body(&want, &c.real, trailers);
	for (rest = buf_str(&in); r == 0 && rest.n > 0; rest = str_from_index(rest, piece)) {
		r = aws_chunks_feed(c.chunks, str_prefix(rest, piece), &out, &err);
		check(aws_chunks_held(c.chunks) <= 65536);
	}
	if (r == 0)
		r = aws_chunks_end(c.chunks, &err);
	if (r < 0)
		tap_fail("pieces of %zu: %s", piece, err.message);
	check_int(buf_len(&out), buf_len(&want));
	if (a == AWS_HMAC)
		check(str_eq(buf_str(&out), buf_str(&want)));
	finish(&c);
}

static void test_splits(void)
{
	for (size_t piece = 1; piece < 200000; piece = piece * 3 / 2 + 1)
		for (int trailers = 0; trailers < 2; trailers++) {
			split(AWS_HMAC, trailers, piece);
			split(AWS_ECDSA, trailers, piece);
		}
}

/* Takes out again, as the origin would, what SigV4A's output holds. */
static void test_ecdsa_chain(void)
{
	_cleanup_(buf_donep) struct buf in = BUF_INIT(BODY_MAX), out = BUF_INIT(BODY_MAX),
					again = BUF_INIT(BODY_MAX);
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct aws_chunks_config config;
	struct aws_chunks *origin;
	struct case_ c;

	start(&c, AWS_ECDSA, true, true);
	make_body(&in, &c.room, true);
	check_int(aws_chunks_feed(c.chunks, buf_str(&in), &out, &err), 0);
	config = (struct aws_chunks_config){.auth = make_auth(AWS_ECDSA, true),
		.surrogate = c.real.signer,
		.real = c.real.signer,
		.surrogate_seed = STR(SEED),
		.real_seed = STR(SEED)};
	origin = aws_chunks_new(&config);
	check_int(aws_chunks_feed(origin, buf_str(&out), &again, &err), 0);
	check_int(aws_chunks_end(origin, &err), 0);
	aws_chunks_free(origin);
	finish(&c);
}

static int feed(struct str body, bool trailers, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(BODY_MAX);
	struct case_ c;
	int r;

	start(&c, AWS_HMAC, trailers, true);
	r = aws_chunks_feed(c.chunks, body, &out, err);
	/* What is not verified has not gone on. */
	if (err && err->code && strstr(err->message, "that of its trailers") &&
		str_find(buf_str(&out), STR("first:")) < buf_len(&out))
		tap_fail("a trailer went on before its signature");
	if (r == 0)
		r = aws_chunks_end(c.chunks, err);
	finish(&c);
	return r;
}

/* One byte changed anywhere, left out or put in: never accepted. */
static void test_changed(void)
{
	_cleanup_(buf_donep) struct buf in = BUF_INIT(BODY_MAX);
	struct case_ c;
	size_t n;

	for (int trailers = 0; trailers < 2; trailers++) {
		start(&c, AWS_HMAC, trailers, true);
		buf_clear(&in);
		make_body(&in, &c.room, trailers);
		finish(&c);
		n = buf_len(&in);
		for (size_t i = 0; i < n; i = i == 90 ? 65620 : i == 65720 ? 66700 : i + 1) {
			char *at = buf_data(&in) + i, was = *at;
			struct cloche_err err = CLOCHE_ERR_INIT;

			*at = (char)(was ^ 1);
			if (feed(buf_str(&in), trailers, &err) == 0)
				tap_fail("trailers %d: byte %zu changed", trailers, i);
			*at = was;
			if (feed(str_make(buf_data(&in), i), trailers, &err) == 0)
				tap_fail("trailers %d: cut at %zu", trailers, i);
		}
		must(buf_add_char(&in, '\n') == 0);
		check(feed(buf_str(&in), trailers, NULL) < 0);
	}
}

static void test_malformed(void)
{
#define SIG "0000000000000000000000000000000000000000000000000000000000000000"
	static const struct {
		const char *text, *says;
	} bad[] = {
		{"\r\n", "size"},
		{";chunk-signature=" SIG "\r\n", "size"},
		{"x;chunk-signature=" SIG "\r\n", "size"},
		{"0x1;chunk-signature=" SIG "\r\n", "size"},
		{"+1;chunk-signature=" SIG "\r\n", "size"},
		{"01;chunk-signature=" SIG "\r\n", "size"},
		{"ffffffffffffffff1;chunk-signature=" SIG "\r\n", "size"},
		{"ffffffffffffffff;chunk-signature=" SIG "\r\n", "larger"},
		{"800001;chunk-signature=" SIG "\r\n", "larger"},
		{"1\r\n", "chunk-signature"},
		{"1 ;chunk-signature=" SIG "\r\n", "size"},
		{"1; chunk-signature=" SIG "\r\n", "chunk-signature"},
		{"1;chunk-signature=" SIG "0\r\n", "length"},
		{"1;chunk-signature=\r\n", "length"},
		{"1;chunk-signature=" SIG "\n", "line's end"},
		{"1;chunk-signature=" SIG "\r\na\n", "line's end"},
		{"1;chunk-signature=" SIG "\r\nab\r\n", "chunk's end"},
		{"1;chunk-signature=" SIG "\r\na\r\n", "not that of its chunk"},
		{"0;chunk-signature=" SIG "\r\n", "decoded-content-length"},
		{"10401;chunk-signature=" SIG "\r\n", "decoded-content-length"},
		{"1", "too early"},
		{"", "too early"},
	};
	_cleanup_(buf_donep) struct buf line = BUF_INIT(BODY_MAX);
	struct cloche_err err;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		err = (struct cloche_err)CLOCHE_ERR_INIT;
		if (feed(str_from(bad[i].text), false, &err) == 0)
			tap_fail("accepted %s", bad[i].text);
		else if (!strstr(err.message, bad[i].says))
			tap_fail("%s: %s", bad[i].text, err.message);
	}
	for (int i = 0; i < 100000; i++)
		must(buf_add_char(&line, '1') == 0);
	check_int(feed(buf_str(&line), false, &err), -E_PROTOCOL);
}

/* Whether all signatures in it are as long as they get, so that there was nothing to pad. */
static bool is_padded(struct str in)
{
	const struct str key = STR("chunk-signature=");

	for (size_t at = str_find(in, key); at < in.n; at = str_find(in, key)) {
		in = str_from_index(in, at + key.n);
		if (str_chr(in, '\r') < AWS_ECDSA_WIDTH)
			return false;
	}
	return true;
}

static void start_unpadded(struct case_ *c, int same, struct buf *in)
{
	static char a[65536 + 1024];

	memset(a, 'a', sizeof(a));
	start(c, AWS_ECDSA, false, same);
	buf_clear(in);
	add_chunk(in, &c->room, str_make(a, sizeof(a)), false);
	must(buf_add_str(in, STR("\r\n")) == 0);
	add_chunk(in, &c->room, STR(""), false);
	must(buf_add_str(in, STR("\r\n")) == 0);
}

/* A client that does not pad is fine as long as nobody was told a length. */
static void test_unpadded(void)
{
	_cleanup_(buf_donep) struct buf in = BUF_INIT(BODY_MAX), out = BUF_INIT(BODY_MAX);
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct case_ c;

	for (int same = 0; same < 2; same++) {
		start_unpadded(&c, same, &in);
		while (is_padded(buf_str(&in))) {
			finish(&c);
			start_unpadded(&c, same, &in);
		}
		buf_clear(&out);
		check_int(aws_chunks_feed(c.chunks, buf_str(&in), &out, &err),
			same ? -E_PROTOCOL : 0);
		finish(&c);
	}
}

/* What is kept for the next chunk counts, and is little. */
static void test_memory(void)
{
	enum { SMALL = 1 << 16, LARGE = 4 << 20 };
	_cleanup_(buf_donep) struct buf in = BUF_INIT(2 * LARGE), out = BUF_INIT(2 * LARGE);
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct aws_chunks_config config = {.auth = make_auth(AWS_HMAC, false),
		.surrogate_seed = STR("aa11"),
		.real_seed = STR("aa11")};
	struct side room = {.scope = config.auth->scope, .last = "aa11", .last_n = 4};
	struct aws_chunks *chunks;
	char *data;

	room.signer = aws_signer_new(STR("AKIAROOM"), STR("room's secret"), STR_NULL);
	config.surrogate = config.real = room.signer;
	chunks = aws_chunks_new(&config);
	data = calloc(1, LARGE);
	must(room.signer && chunks && data);
	add_chunk(&in, &room, str_make(data, SMALL), false);
	must(buf_add_str(&in, STR("\r\n")) == 0);
	check_int(aws_chunks_feed(chunks, buf_str(&in), &out, &err), 0);
	check(aws_chunks_held(chunks) >= SMALL);
	buf_clear(&in);
	add_chunk(&in, &room, str_make(data, LARGE), false);
	check_int(aws_chunks_feed(chunks, buf_str(&in), &out, &err), 0);
	check(aws_chunks_held(chunks) >= LARGE);
	check_int(aws_chunks_feed(chunks, STR("\r\n"), &out, &err), 0);
	check(aws_chunks_held(chunks) <= 1 << 20);
	free(data);
	aws_chunks_free(chunks);
	aws_signer_free(room.signer);
}

int main(void)
{
	run_test(test_documented);
	run_test(test_splits);
	run_test(test_ecdsa_chain);
	run_test(test_changed);
	run_test(test_malformed);
	run_test(test_unpadded);
	run_test(test_memory);
	return tap_done();
}
