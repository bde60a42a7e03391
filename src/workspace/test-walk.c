/* SPDX-License-Identifier: Apache-2.0 */
/* What makes a directory count (INV-NOTHING-PLANTED); walks through real
 * directories are tested with real rooms (tests/integration/test-workspace). */
#include "base/macro.h"
#include "tap.h"
#include "workspace/obeyed.h"

static void test_git_directories(void)
{
	static const struct {
		const char *names[4];
		bool git;
	} cases[] = {{{"HEAD", "objects", "refs"}, true}, {{"HEAD", "commondir"}, true},
		/* A directory that commondir names. */
		{{"objects", "refs"}, true},
		/* GIT_OBJECT_DIRECTORY is set. */
		{{"HEAD", "refs"}, true},
		/* The file system may ignore case. */
		{{"head", "Objects", "REFS"}, true}, {{"HEAD"}, false}, {{"refs"}, false},
		{{"objects", "HEAD"}, false}, {{"commondir", "objects"}, false},
		{{"HEADER", "object", "refs"}, false}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct obeyed_signs s = {0};

		for (size_t k = 0; k < 4 && cases[i].names[k]; k++)
			obeyed_see(&s, str_from(cases[i].names[k]));
		if (obeyed_is_git(&s) != cases[i].git)
			tap_fail("case %zu", i);
	}
	check(true);
}

static void test_names(void)
{
	check(obeyed_find(OBEYED_ANY, STR(".git")) == obeyed_find(OBEYED_ANY, STR(".GIT")));
	check(obeyed_find(OBEYED_GIT, STR("Config")) == obeyed_find(OBEYED_GIT, STR("config")));
	check(obeyed_find(OBEYED_CLAUDE, STR("Settings.json")) != NULL);
	check(!obeyed_find(OBEYED_ANY, STR("git")) && !obeyed_find(OBEYED_ANY, STR(".gitx")));
	check(!obeyed_find(OBEYED_GIT, STR("")) && !obeyed_find(OBEYED_CLAUDE, STR("setting")));
}

int main(void)
{
	run_test(test_git_directories);
	run_test(test_names);
	return tap_done();
}
