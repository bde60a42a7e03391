/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of a walk, and what makes a directory count (INV-NOTHING-PLANTED); walks through real
 * directories are tested with real rooms (tests/integration/test-workspace). */
#include "tap.h"
#include "workspace/walk.h"

#include <limits.h>
#include <unistd.h>

static void test_paths_are_bounded(void)
{
	const struct walk_item any = {.place = OBEYED_ANY}, git = {.place = OBEYED_GIT};
	char path[PATH_MAX - 8];
	struct walk_item in = {.path = path}, item;
	size_t held, n;
	struct walk w;
	int fd;

	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	must(walk_init(&w, -1, 500000, 1, 128, &any) == 0);
	while (!w.cut)
		must(walk_push(&w, &in, "b", &any) == 0);
	check(w.paths >= WALK_MAX_PATHS && w.paths < WALK_MAX_PATHS + PATH_MAX);
	/* A special place is entered even so, up to twice as much. */
	n = w.n;
	w.cut = false;
	must(walk_push(&w, &in, "b", &git) == 0);
	check(!w.cut && w.n == n + 1);
	while (!w.cut)
		must(walk_push(&w, &in, "b", &git) == 0);
	check(w.paths >= 2 * WALK_MAX_PATHS && w.paths < 2 * WALK_MAX_PATHS + PATH_MAX);
	/* What was opened counts no more. */
	held = w.paths;
	check(walk_next(&w, &item, &fd) && fd < 0 && w.paths == held - 1);
	walk_leave(&item);
	check(walk_next(&w, &item, &fd) && w.paths == held - 1 - (sizeof(path) + 2));
	walk_leave(&item);
	walk_done(&w);
}

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
	run_test(test_paths_are_bounded);
	run_test(test_git_directories);
	run_test(test_names);
	run_test(test_rows);
	return tap_done();
}
