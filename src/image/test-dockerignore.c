/* SPDX-License-Identifier: Apache-2.0 */
#include "image/dockerignore.h"
#include "tap.h"

#include <string.h>

static const struct {
	const char *lines, *out, *in; /* paths, separated by blanks */
} cases[] = {
	{"", "", "a a/b"},
	{"a\n", "a a/b a/b/c", "b/a ab"},
	{"/a/\n", "a a/b", "b/a"},
	{"  a/./b/../c  \r\n", "a/c a/c/d", "a/b a"},
	{"../a\n..\n.\n/\n", "", "a b/a"},
	{"/../a\n", "a", "b/a"},
	{"# a\n\n #b\n", "#b", "a #"},
	{"\xef\xbb\xbf"
	 "a",
		"a", "b"},
	{"*", "a .b a/b", ""},
	{"*.log", "x.log .log", "a/x.log x.logs"},
	{"*/*.log", "a/x.log a/x.log/y", "x.log a/b/x.log"},
	{"**/*.log", "x.log a/x.log a/b/x.log", "a/x.txt"},
	{"**/node_modules", "node_modules a/node_modules a/b/node_modules/c", "a/xnode_modules"},
	{"a/**", "a/b a/b/c", "a b"},
	{"a/**/z", "a/z a/b/z a/b/c/z/y", "a/bz z b/z"},
	{"a**z", "az a/z ab/z", "abz a/bz"},
	{"**", "a a/b", ""},
	{"?b",
		"ab xb \xc3\xa9"
		"b",
		"b aab /b"},
	{"[a-c]x\n[^a-c]y", "ax cx dy zy", "dx ay"},
	{"[^a]x", "\xc3\xa9x bx", "ax"},
	{"*\n![^a]x\n![\xc3\xa9]y", "ax ey", "\xc3\xa9x bx \xc3\xa9y"},
	{"[\xc3\xa9]x", "", "\xc3\xa8x ex"},
	{"\\*\n\\[a", "* [a", "a b"},
	{"*\n!\\a\n", "b", "a"},
	{"\\a\n", "", "a"},
	{"a\n!a/keep\n", "a a/b a/keeper", "a/keep a/keep/x"},
	{"*\n!src\nsrc/*.o\n", "x src/a.o", "src src/a.c src/b/a.o"},
	{"!a\na", "a", "b"},
	{"a+b.c$\n", "a+b.c$", "aab.c a+bxc$"},
};

static void check_each(const struct dockerignore *g, const char *paths, bool want)
{
	struct str rest = str_from(paths);

	while (rest.n) {
		struct str one = str_next(&rest, ' ');
		char path[64] = "";

		must(one.n < sizeof(path));
		memcpy(path, one.p, one.n);
		check_int(dockerignore_matches(g, path), want);
	}
}

static void test_rules(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct dockerignore g = {0};

		check_int(dockerignore_read(&g, str_from(cases[i].lines), NULL), 0);
		check_each(&g, cases[i].out, true);
		check_each(&g, cases[i].in, false);
		dockerignore_done(&g);
	}
}

static void test_no_patterns(void)
{
	static const char *const bad[] = {
		"a\n[a\n", "b\n[b-]\n", "\n[-a]", "#\n[c-a]\n", "x\n\\", "x\n!\n", "x\n[]]"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct cloche_err err = CLOCHE_ERR_INIT;
		struct dockerignore g = {0};

		check_int(dockerignore_read(&g, str_from(bad[i]), &err), -E_CONFIG);
		check(strstr(err.message, ".dockerignore:2: "));
		dockerignore_done(&g);
	}
}

/* A pattern for which a search that goes back would take for ever. */
static void test_many_stars(void)
{
	struct dockerignore g = {0};
	char line[400], path[400];

	for (size_t i = 0; i < 133; i++)
		memcpy(line + 3 * i, "**a", 3);
	line[399] = '\0';
	memset(path, 'a', sizeof(path));
	path[399] = '\0';
	must(dockerignore_read(&g, str_from(line), NULL) == 0);
	check(!dockerignore_matches(&g, path));
	dockerignore_done(&g);
}

int main(void)
{
	run_test(test_rules);
	run_test(test_no_patterns);
	run_test(test_many_stars);
	return tap_done();
}
