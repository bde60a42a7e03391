/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: terminal */
/* Whatever a room prints (INV-TERMINAL): what passes holds no control that is not listed, passes a
 * second time as it is, and does not depend on where the stream was cut. */
#include "terminal_filter.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
	if (!cond)
		abort();
}

static size_t feed_in_pieces(
	struct terminal_filter *f, const uint8_t *in, size_t n, size_t piece, unsigned char *out)
{
	size_t w = 0;

	for (size_t i = 0; i < n; i += piece)
		w += terminal_filter_feed(f, in + i, n - i < piece ? n - i : piece, out + w);
	return w;
}

static void check_bytes(const unsigned char *p, size_t n, enum terminal_filter_kind kind)
{
	for (size_t i = 0; i < n; i++) {
		bool c0 = p[i] < 0x20 || p[i] == 0x7f;
		bool fine = (p[i] >= 7 && p[i] <= 13) || p[i] == 15 || p[i] == 27 ||
			    (p[i] == 14 && kind == TERMINAL_PROGRAM);

		require(!c0 || fine);
		/* C1 in UTF-8. */
		require(p[i] != 0xc2 || (i + 1 < n && p[i + 1] >= 0xa0));
		if (p[i] == 27 && kind == TERMINAL_TEXT)
			require(i + 1 < n && memchr("[(78DEM", p[i + 1], 7));
	}
}

static void check_kind(const uint8_t *data, size_t size, enum terminal_filter_kind kind)
{
	static const size_t pieces[] = {1, 2, 7, 64};
	struct terminal_filter f;
	size_t room = TERMINAL_FILTER_OUT(size), n, again_n;
	unsigned char *out = malloc(room), *again = malloc(TERMINAL_FILTER_OUT(room));
	unsigned char end[TERMINAL_FILTER_END], other[TERMINAL_FILTER_END];
	size_t end_n;

	require(out && again);
	terminal_filter_init(&f, kind);
	n = terminal_filter_feed(&f, data, size, out);
	require(n <= room);
	check_bytes(out, n, kind);
	end_n = terminal_filter_end(&f, end);
	require(end_n <= sizeof(end));
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		require(feed_in_pieces(&f, data, size, pieces[i], again) == n);
		require(memcmp(out, again, n) == 0);
		require(terminal_filter_end(&f, other) == end_n && memcmp(end, other, end_n) == 0);
	}
	again_n = terminal_filter_feed(&f, out, n, again);
	require(again_n == n && memcmp(out, again, n) == 0);
	/* What puts the terminal right is let through as well, and leaves nothing on. */
	terminal_filter_init(&f, TERMINAL_PROGRAM);
	require(terminal_filter_feed(&f, end, end_n, again) == end_n);
	free(out);
	free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_kind(data, size, TERMINAL_TEXT);
	check_kind(data, size, TERMINAL_PROGRAM);
	return 0;
}
