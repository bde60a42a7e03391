/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: workspace base */
/* Configurations of git that a room has written: what is said of one must hold for a copy of it
 * with comments around, and no text can hide a command that stands behind it. */
#include "base/buf.h"
#include "base/macro.h"
#include "workspace/gitconfig.h"

#include <stdlib.h>

#define require(cond)                                                                              \
	do {                                                                                       \
		if (!(cond))                                                                       \
			abort();                                                                   \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_inside(void *user, const char *value)
{
	require(strlen(value) <= *(const size_t *)user);
	return value[0] != '/';
}

/* What is said of text with something before and behind it. */
static bool is_harmless(const char *before, struct str text, const char *behind)
{
	_cleanup_(buf_donep) struct buf all = BUF_INIT(1 << 20);
	size_t most;

	require(buf_add_str(&all, str_from(before)) == 0 && buf_add_str(&all, text) == 0);
	require(buf_add_str(&all, str_from(behind)) == 0);
	most = buf_len(&all);
	return gitconfig_is_harmless(buf_str(&all), is_inside, &most);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = str_make(data, size);
	bool harmless = is_harmless("", text, "");
	_cleanup_(freep) char *hooks = gitconfig_value(text, "core.hookspath");

	require(!gitconfig_is_harmless(text, NULL, NULL) || harmless);
	require(is_harmless("# a comment\n", text, "") == harmless || !harmless ||
		str_starts(text, STR("\xef\xbb\xbf")));
	require(!is_harmless("", text, "\n\n[core]\n\tfsmonitor = /bin/sh\n"));
	require(!is_harmless("[core]\n\tsshCommand = /bin/sh\n", text, ""));
	require(!hooks || (!gitconfig_is_harmless(text, NULL, NULL) && strlen(hooks) <= size));
	return 0;
}
