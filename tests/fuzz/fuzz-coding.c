/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: base http */
/* The first byte says which codings, the second how input and output are cut. However that is, the
 * same comes out. */
#include "fuzz-h1.h"
#include "http/coding.h"

#define OUT_MAX (128 * 1024)
#define MEMORY_MAX (3 * (17U << 20))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum coding_result decode(const struct coding_list *list, struct str in, size_t in_step,
	size_t out_step, struct buf *out)
{
	struct coding_budget budget = {0, MEMORY_MAX};
	struct coding_decoder *d = NULL;
	enum coding_result r = CODING_MORE;

	require(coding_decoder_new(list, &budget, &d) == 0);
	while (r == CODING_MORE) {
		struct str piece = str_prefix(in, in_step);

		in = str_from_index(in, piece.n);
		do {
			char *mem = malloc(out_step);
			size_t n = 0;

			require(mem);
			r = coding_read(d, &piece, in.n == 0, mem, out_step, &n);
			if (r == CODING_DATA) {
				require(n > 0 && n <= out_step);
				require(buf_add(out, mem, n) == 0);
			}
			free(mem);
		} while (r == CODING_DATA && buf_len(out) < OUT_MAX);
		require(r == CODING_BAD || r == CODING_DATA || piece.n == 0);
	}
	coding_decoder_free(d);
	require(budget.used == 0);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t in_steps[] = {1, 2, 5, 100}, out_steps[] = {1, 3, 64, 4096};
	struct buf whole = BUF_INIT(2 * OUT_MAX), cut = BUF_INIT(2 * OUT_MAX);
	struct coding_list list;
	enum coding_result a, b;
	size_t n;

	if (size < 2)
		return 0;
	list = (struct coding_list){
		1 + (data[0] >> 6) % 3U, {data[0] & 3U, data[0] >> 2 & 3U, data[0] >> 4 & 3U}};
	a = decode(&list, str_make(data + 2, size - 2), SIZE_MAX, OUT_MAX, &whole);
	b = decode(&list, str_make(data + 2, size - 2), in_steps[data[1] & 3U],
		out_steps[data[1] >> 2 & 3U], &cut);
	n = buf_len(&whole) < buf_len(&cut) ? buf_len(&whole) : buf_len(&cut);
	require(str_eq(str_prefix(buf_str(&whole), n), str_prefix(buf_str(&cut), n)));
	if (a != CODING_DATA && b != CODING_DATA) /* that was not the end */
		require(a == b && (a == CODING_BAD || buf_len(&whole) == buf_len(&cut)));
	buf_done(&whole);
	buf_done(&cut);
	return 0;
}
