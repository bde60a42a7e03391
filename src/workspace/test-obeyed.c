/* SPDX-License-Identifier: Apache-2.0 */
/* What makes a directory count (INV-NOTHING-PLANTED); walks through real directories are tested
 * with real rooms (tests/integration/test-workspace). */
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
		{{"head", "Objects", "REFS"}, true}, {{"HEAD", "ref\xc5\xbf"}, true},
		{{"HEAD"}, false}, {{"refs"}, false}, {{"objects", "HEAD"}, false},
		{{"commondir", "objects"}, false}, {{"HEADER", "object", "refs"}, false}};

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
	/* U+212A, U+017F, a ligature, and what is invisible. */
	check(obeyed_find(OBEYED_GIT, STR("hoo\xe2\x84\xaas")) ==
		obeyed_find(OBEYED_GIT, STR("hooks")));
	check(obeyed_find(OBEYED_ANY, STR(".v\xc5\xbf"
					  "code")) == obeyed_find(OBEYED_ANY, STR(".vscode")));
	check(obeyed_find(OBEYED_GIT, STR("con\xef\xac\x81g")) ==
		obeyed_find(OBEYED_GIT, STR("config")));
	check(obeyed_find(OBEYED_ANY, STR("\xe2\x80\x8d.g\xe2\x80\x8bit")) ==
		obeyed_find(OBEYED_ANY, STR(".git")));
	check(!obeyed_find(OBEYED_ANY, STR("\xc3\xa9.git")) &&
		!obeyed_find(OBEYED_ANY, STR("\xe2\x80\x8d")));
	check(!obeyed_find(OBEYED_GIT, STR("")) && !obeyed_find(OBEYED_CLAUDE, STR("setting")));
}

static void test_rows(void)
{
	static const struct {
		enum obeyed_place place;
		struct str name;
	} rows[] = {
#define OBEYED(place, pattern, ...) {OBEYED_##place, STR(pattern)},
#include "workspace/obeyed.def"
#undef OBEYED
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!obeyed_find(rows[i].place, rows[i].name))
			tap_fail("%.*s is never found", STR_FMT(rows[i].name));
	check(!obeyed_find(OBEYED_ANY, STR("m")) && obeyed_find(OBEYED_ANY, STR("OpenCode.json")));
}

int main(void)
{
	run_test(test_git_directories);
	run_test(test_names);
	run_test(test_rows);
	return tap_done();
}
