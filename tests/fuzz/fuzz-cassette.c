/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: base record */
/* A cassette may be anybody's. What loads has exchanges whose numbers rise and whose heads can be
 * read again where the index says; bodies have as many bytes as the index says, and those that are
 * whole have its digest. */
#include "base/fd.h"
#include "record/cassette.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
	if (!cond)
		abort();
}

static void check_body(const struct cassette *c, const struct cassette_exchange *e, bool sent)
{
	_cleanup_(cassette_reading_donep) struct cassette_reading r = CASSETTE_READING_INIT;
	char digest[SHA256_HEX_MAX];
	struct sha256 h;
	struct str piece;
	uint64_t bytes = 0;
	int n;

	sha256_init(&h);
	cassette_reading_begin(&r, c, e, sent ? CASSETTE_SENT : CASSETTE_DATA);
	while ((n = cassette_reading_next(&r, &piece, NULL)) > 0) {
		require(n == 2 || piece.n <= CASSETTE_PIECE_MAX);
		if (n == 1)
			sha256_add(&h, piece);
		bytes += n == 1 ? piece.n : 0;
	}
	require(n == 0 && bytes == (sent ? e->sent.bytes : e->received.bytes));
	sha256_hex(&h, digest);
	require(!sent || !e->sent.whole || strcmp(digest, e->sent_digest) == 0);
}

static void check_head(const struct cassette *c, uint64_t at, enum cassette_kind kind)
{
	_cleanup_(cassette_line_donep) struct cassette_line l = CASSETTE_LINE_INIT;
	struct str name, value;

	if (at == CASSETTE_NONE)
		return;
	require(cassette_read_at(c, at, &l, NULL) == 0 && l.kind == kind);
	for (size_t i = 0; cassette_header(&l, i, &name, &value); i++)
		require(i < CASSETTE_HEADERS_MAX && value.n <= CASSETTE_LINE_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct cassette c = CASSETTE_INIT;
	int fd = memfd_create("cassette", MFD_CLOEXEC);

	require(fd >= 0 && fd_write_all(fd, data, size) == 0);
	if (cassette_load(&c, fd, &err) < 0)
		require(err.message[0] && !c.v);
	for (size_t i = 0; i < c.n; i++) {
		const struct cassette_exchange *e = &c.v[i];

		require(i == 0 || e->number > c.v[i - 1].number);
		require(cassette_find(&c, e->number) == e);
		check_head(&c, e->request_at, CASSETTE_REQUEST);
		check_head(&c, e->refused_at, CASSETTE_REFUSED);
		check_head(&c, e->response_at, CASSETTE_RESPONSE);
		check_head(&c, e->end_at, CASSETTE_END);
		check_body(&c, e, true);
		check_body(&c, e, false);
	}
	cassette_done(&c);
	fd_close(fd);
	return 0;
}
