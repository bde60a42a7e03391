/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: base */
/* Whatever a room says, what we show of it holds no control byte and stays on its line. */
#include "base/escape.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
	if (!cond)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = str_make(data, size), shown;
	struct buf line = BUF_INIT(SIZE_MAX / 2), text = BUF_INIT(SIZE_MAX / 2),
		   again = BUF_INIT(SIZE_MAX / 2);

	require(escape_log(&line, in, 256) == 0);
	shown = buf_str(&line);
	for (size_t i = 0; i < shown.n; i++)
		require(shown.p[i] > 0x20 && shown.p[i] < 0x7f && shown.p[i] != '[');

	require(escape_terminal(&text, in) == 0);
	shown = buf_str(&text);
	for (size_t i = 0; i < shown.n; i++) {
		unsigned char c = (unsigned char)shown.p[i];

		require(c >= 0x20 ? c != 0x7f : c == '\n' || c == '\t');
	}
	/* Safe text is left as it is. */
	require(escape_terminal(&again, shown) == 0);
	require(str_eq(buf_str(&again), shown));
	buf_done(&line);
	buf_done(&text);
	buf_done(&again);
	return 0;
}
