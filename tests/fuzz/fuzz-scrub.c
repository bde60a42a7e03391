/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: base policy secrets */
/* Up to the first NUL: values of secrets, a line each. Behind it a byte that says how the rest, an
 * answer, is cut. However that is, the same comes out, as long as it was, and no value stands where
 * one stood. */
#include "fuzz-h1.h"
#include "secrets/scrub_internal.h"

#define SECRETS 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct secret_set *make_set(struct str lines)
{
	struct secret_set *set = secret_set_new();

	require(set);
	for (size_t i = 0; i < SECRETS && lines.n > 0; i++) {
		static const char *const names[SECRETS] = {"A", "B", "C", "D", "E", "F", "G", "H"};
		char *scopes[] = {(char *)(uintptr_t) "x.com", NULL};
		char *headers[] = {(char *)(uintptr_t) "authorization", NULL};
		size_t n = str_chr(lines, '\n');
		char fake[300];
		struct secret_spec spec = {
			.name = (char *)(uintptr_t)names[i], .scopes = scopes, .headers = headers};

		if (n <= sizeof(fake)) { /* one that cannot be masked is left out */
			memset(fake, 'Q' + (int)i, n);
			(void)!secret_set_add(
				set, &spec, str_prefix(lines, n), str_make(fake, n), NULL);
		}
		lines = str_from_index(lines, n + 1);
	}
	return set;
}

static uint64_t run(struct scrubber *scrubber, struct str in, size_t step, struct buf *out)
{
	struct scrub *s = scrub_new(scrubber);
	uint64_t hits;

	require(s);
	for (size_t i = 0; i < in.n;) {
		size_t n = step < in.n - i ? step : in.n - i;
		struct str first, second;
		char *piece = malloc(n);

		require(piece);
		memcpy(piece, in.p + i, n);
		scrub_feed(s, piece, n, &first, &second);
		require(buf_add_str(out, first) == 0 && buf_add_str(out, second) == 0);
		i += n;
		require(i - buf_len(out) <= scrubber->max_held);
		free(piece);
	}
	require(buf_add_str(out, scrub_end(s)) == 0);
	hits = scrub_hits(s);
	scrub_free(s);
	return hits;
}

/* What begins an escape stays, so of values that are little else something may be left. */
static void check_gone(const struct secret_set *set, struct str in, struct str out)
{
	for (size_t i = 0; i < secret_set_count(set); i++) {
		struct str value = secret_reveal(secret_set_get(set, i)->value);

		if (str_chr(value, '%') < value.n || str_chr(value, '\\') < value.n)
			continue;
		for (size_t at = 0; at + value.n <= in.n; at++)
			require(memcmp(in.p + at, value.p, value.n) != 0 ||
				memcmp(out.p + at, value.p, value.n) != 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str all = str_make(data, size), in;
	size_t values = str_chr(all, '\0'), step;
	struct buf once = BUF_INIT(SIZE_MAX / 2), cut = BUF_INIT(SIZE_MAX / 2);
	struct scrubber *scrubber;
	struct secret_set *set;
	char *whole;

	if (size < values + 2)
		return 0;
	step = 1 + (data[values + 1] & 63U);
	in = str_from_index(all, values + 2);
	set = make_set(str_prefix(all, values));
	require(scrubber_new(set, &scrubber, NULL) == 0);
	require(run(scrubber, in, in.n + 1, &once) == run(scrubber, in, step, &cut));
	require(str_eq(buf_str(&once), buf_str(&cut)) && buf_len(&once) == in.n);
	check_gone(set, in, buf_str(&once));
	whole = malloc(in.n + 1);
	require(whole);
	memcpy(whole, in.p, in.n);
	(void)scrub_whole(scrubber, whole, in.n);
	require(str_eq(str_make(whole, in.n), buf_str(&once)));
	free(whole);
	buf_done(&once);
	buf_done(&cut);
	scrubber_free(scrubber);
	secret_set_free(set);
	return 0;
}
