/* SPDX-License-Identifier: Apache-2.0 */
/* What a provider's program answers, which is hostile: read without a fault, and nothing of it that
 * a terminal obeys comes out. The same bytes are quoted as words of a request.
 * fuzz-deps: provider base */
#include "provider/program/words.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_be_text(const char *z)
{
	if (strlen(z) > WORDS_TEXT_MAX)
		abort();
	for (; *z; z++)
		if ((unsigned char)*z < ' ' || *z == 0x7f)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(buf_donep) struct buf line = BUF_INIT(8 * size + 64);
	_cleanup_(freep) char *word = str_dup(str_make(data, size));
	struct words_answer a;

	(void)!words_read_answer(str_make(data, size), &a);
	must_be_text(a.error);
	must_be_text(a.hint);
	must_be_text(a.version);
	for (unsigned i = 0; i < a.cannot_n; i++)
		must_be_text(a.cannot[i]);
	if (!word || words_add_line(&line, "key", word, NULL) < 0)
		abort();
	for (size_t i = 0; i + 1 < buf_len(&line); i++)
		if (buf_data(&line)[i] < ' ' || buf_data(&line)[i] > '~')
			abort();
	return 0;
}
