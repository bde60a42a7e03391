/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: base http */
/* However a chunked body is cut, it decodes to the same data and trailers; data that came out is
 * written and decoded to the same again. */
#include "fuzz-h1.h"
#include "http/chunked.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct decoded {
	enum chunked_result result;
	enum chunked_error error;
	size_t used;
	struct buf body;
	struct http_fields trailers;
};

static void decode(
	struct decoded *d, const uint8_t *data, size_t size, size_t step, bool extensions)
{
	struct chunked_decoder c;

	*d = (struct decoded){.body = BUF_INIT(SIZE_MAX / 2), .trailers = HTTP_FIELDS_INIT};
	chunked_init(&c, &d->trailers, extensions);
	while (d->result == CHUNKED_MORE && d->used < size) {
		size_t n = step && step < size - d->used ? step : size - d->used;
		char *piece = malloc(n);
		struct str in = str_make(piece, n), out = STR_NULL;

		require(piece != NULL);
		memcpy(piece, data + d->used, n);
		while ((d->result = chunked_read(&c, &in, &out)) == CHUNKED_DATA) {
			require(out.n > 0 && out.p >= piece && out.p + out.n <= piece + n);
			require(buf_add_str(&d->body, out) == 0);
		}
		d->used += n - in.n;
		require(d->result != CHUNKED_MORE || in.n == 0);
		free(piece);
	}
	d->error = c.error;
	for (unsigned i = 0; i < d->trailers.n; i++)
		require(http_is_trailer_name(http_fields_name(&d->trailers, i)));
	chunked_done(&c);
}

static void decoded_done(struct decoded *d)
{
	buf_done(&d->body);
	http_fields_done(&d->trailers);
}

static void check_body(const uint8_t *data, size_t size, bool extensions)
{
	static const size_t steps[] = {1, 2, 7, 61};
	struct decoded whole, other;
	struct buf wire = BUF_INIT(SIZE_MAX / 2);

	decode(&whole, data, size, 0, extensions);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		decode(&other, data, size, steps[i], extensions);
		require(other.result == whole.result && other.error == whole.error);
		require(str_eq(buf_str(&other.body), buf_str(&whole.body)));
		same_fields(&other.trailers, &whole.trailers);
		require(whole.result != CHUNKED_DONE || other.used == whole.used);
		decoded_done(&other);
	}
	if (whole.result == CHUNKED_DONE) {
		require(h1_write_chunk(&wire, buf_str(&whole.body)) == 0);
		require(h1_write_last_chunk(&wire, &whole.trailers) == 0);
		decode(&other, (uint8_t *)buf_data(&wire), buf_len(&wire), 0, false);
		require(other.result == CHUNKED_DONE && other.used == buf_len(&wire));
		require(str_eq(buf_str(&other.body), buf_str(&whole.body)));
		same_fields(&other.trailers, &whole.trailers);
		decoded_done(&other);
	}
	buf_done(&wire);
	decoded_done(&whole);
}

/* Whoever refuses extensions understands nothing else differently: a body that he accepts is the
 * same to both. */
static void check_strict_is_a_subset(const uint8_t *data, size_t size)
{
	struct decoded strict, lenient;

	decode(&strict, data, size, 0, false);
	decode(&lenient, data, size, 0, true);
	if (strict.result == CHUNKED_DONE) {
		require(lenient.result == CHUNKED_DONE && lenient.used == strict.used);
		require(str_eq(buf_str(&lenient.body), buf_str(&strict.body)));
		same_fields(&lenient.trailers, &strict.trailers);
	}
	decoded_done(&strict);
	decoded_done(&lenient);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_body(data, size, false);
	check_body(data, size, true);
	check_strict_is_a_subset(data, size);
	return 0;
}
