/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: aws base */
/* The first byte says what follows: a body as it is, or the data of one that is signed here first;
 * the second how it is split. Any split gives the same, and what was signed passes. */
#include "aws/chunks.h"

#include <stdlib.h>

enum { MAX = 1 << 20, RAW = 1, TRAILERS = 2 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct aws_signer *room, *real;
static struct aws_auth auth = {.time = {"20130524T000000Z", 16}};

static void need(bool condition)
{
	if (!condition)
		abort();
}

static int feed(struct str in, size_t piece, struct buf *out, struct cloche_err *err)
{
	struct aws_chunks_config config = {.auth = &auth,
		.surrogate = room,
		.real = real,
		.surrogate_seed = STR("aa"),
		.real_seed = STR("bb")};
	_cleanup_(aws_chunks_freep) struct aws_chunks *c = aws_chunks_new(&config);
	int r = 0;

	need(c);
	for (; r == 0 && in.n > 0; in = str_from_index(in, piece)) {
		r = aws_chunks_feed(c, str_prefix(in, piece), out, err);
		need(aws_chunks_held(c) <= AWS_CHUNK_MAX);
	}
	return r < 0 ? r : aws_chunks_end(c, err);
}

static void sign(char *last, const char *kind, struct str content)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(4096);
	char hash[AWS_HEX], signature[AWS_SIGNATURE_MAX];

	aws_sha256_hex(content, hash);
	need(buf_printf(&text, "AWS4-HMAC-SHA256-%s\n%.16s\n%.*s\n%s%s%.64s", kind, auth.time.p,
		     STR_FMT(auth.scope.text), last,
		     kind[0] == 'P' ? "\n" AWS_EMPTY_HASH "\n" : "\n", hash) == 0);
	need(aws_signer_sign(room, &auth.scope, buf_str(&text), signature) == 64);
	memcpy(last, signature, 64);
	last[64] = '\0';
}

/* Chunks of the data, each as long as its first byte says. */
static void make(struct buf *body, struct str data, bool trailers)
{
	char last[AWS_HEX + 1] = "aa";
	bool more = true;

	while (more) {
		struct str piece = STR_NULL;

		if (data.n > 0)
			piece = str_prefix(str_from_index(data, 1), (unsigned char)data.p[0]);
		data = str_from_index(data, piece.n + 1);
		more = piece.n > 0;
		sign(last, "PAYLOAD", piece);
		need(buf_printf(body, "%zx;chunk-signature=%s\r\n", piece.n, last) == 0);
		need(buf_add_str(body, piece) == 0);
		if (more || !trailers)
			need(buf_add_str(body, STR("\r\n")) == 0);
	}
	if (trailers) {
		sign(last, "TRAILER", STR("a:1\n"));
		need(buf_printf(body, "a: 1\r\nx-amz-trailer-signature:%s\r\n\r\n", last) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(buf_donep) struct buf body = BUF_INIT(MAX), one = BUF_INIT(MAX),
					two = BUF_INIT(MAX);
	struct cloche_err err = CLOCHE_ERR_INIT, other = CLOCHE_ERR_INIT;
	struct str in;
	int r;

	if (size < 2 || size > 16384)
		return 0;
	if (!room) {
		room = aws_signer_new(STR("AKIAROOM"), STR("room"), STR_NULL);
		real = aws_signer_new(STR("AKIAREAL"), STR("real"), STR_NULL);
		need(aws_scope_parse(
			AWS_HMAC, STR("20130524/us-east-1/s3/aws4_request"), &auth.scope));
	}
	auth.kind = data[0] & TRAILERS ? AWS_PAYLOAD_CHUNKS_TRAILER : AWS_PAYLOAD_CHUNKS;
	in = str_make(data + 2, size - 2);
	if (!(data[0] & RAW)) {
		make(&body, in, data[0] & TRAILERS);
		in = buf_str(&body);
	}
	r = feed(in, SIZE_MAX, &one, &err);
	need(r == feed(in, (size_t)data[1] + 1, &two, &other));
	need(str_eq(buf_str(&one), buf_str(&two)));
	need(strcmp(err.message, other.message) == 0);
	need((data[0] & RAW) || r == 0);
	need(r < 0 || buf_len(&one) == in.n);
	return 0;
}
