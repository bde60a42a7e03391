/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: sync base */
/* A room may write a .gitignore. The first line is a path, the rest are rules: whatever they are,
 * an answer comes, and it is the one that the last rule which says something gives alone. */
#include "sync/ignore.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum ignore_verdict ask(struct str rules, struct str path, bool is_directory)
{
	_cleanup_(ignore_freep) struct ignore_rules *r = ignore_parse(rules);

	if (!r)
		abort();
	return ignore_match(r, path, is_directory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = str_make(data, size), path = str_next_line(&rest), left = rest;
	enum ignore_verdict whole = ask(rest, path, false), last = IGNORE_UNSAID;

	(void)ask(rest, path, true);
	/* A mark at the beginning of a file is no part of its first line. */
	if (rest.n >= IGNORE_MAX_TEXT || rest.n / 2 >= IGNORE_MAX_RULES ||
		str_starts(rest, STR("\xef\xbb\xbf")))
		return 0;
	while (left.n) {
		struct str line = str_next_line(&left);
		enum ignore_verdict one;

		if (str_starts(line, STR("\xef\xbb\xbf")))
			return 0;
		one = ask(line, path, false);
		last = one == IGNORE_UNSAID ? last : one;
	}
	if (last != whole)
		abort();
	return 0;
}
