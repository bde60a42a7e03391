/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: builder */
/* A room may write a .dockerignore. The first line is a path, the rest are rules: whatever they
 * are, an answer comes, and it is that of the last rule which holds of the path. */
#include "image/dockerignore.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PATH_BYTES = 1024 };

/* Return 1 if the rules leave the path out, 0 if they do not, -1 if they are none. *ret_said: some
 * rule holds of it. */
static int ask(struct str rules, const char *path, bool *ret_said)
{
	struct dockerignore g = {0};
	int r = dockerignore_read(&g, rules, NULL) < 0 ? -1 : dockerignore_matches(&g, path);

	/* A rule with "!" leaves nothing out, whether it holds or not. */
	for (size_t i = 0; i < g.n; i++)
		g.rules[i].keep = false;
	*ret_said = r >= 0 && dockerignore_matches(&g, path);
	dockerignore_done(&g);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = str_make(data, size), name = str_next_line(&rest), left = rest;
	char path[PATH_BYTES];
	bool said;
	int whole, last = 0;

	if (name.n >= sizeof(path))
		return 0;
	memcpy(path, name.p, name.n);
	path[name.n] = '\0';
	whole = ask(rest, path, &said);
	/* A mark at the beginning of a file is no part of its first line. */
	if (whole < 0 || str_starts(rest, STR("\xef\xbb\xbf")))
		return 0;
	while (left.n) {
		struct str line = str_next_line(&left);
		int one;

		if (str_starts(line, STR("\xef\xbb\xbf")))
			return 0;
		one = ask(line, path, &said);
		if (one < 0)
			abort();
		last = said ? one : last;
	}
	if (last != whole)
		abort();
	return 0;
}
