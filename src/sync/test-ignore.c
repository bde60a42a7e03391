/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/ignore.h"
#include "tap.h"

#include <string.h>

enum { U = IGNORE_UNSAID, N = IGNORE_NOT, I = IGNORE_IT };

static const struct {
	const char *rules, *path;
	bool is_directory;
	int want;
} table[] = {
	/* one without a slash is about the last name, at any depth */
	{"*.o\n", "a.o", false, I},
	{"*.o\n", "x/y/a.o", false, I},
	{"*.o\n", "a.oo", false, U},
	{"a?c", "abc", false, I},
	{"a?c", "ac", false, U},
	{"a*b*c", "axxbyyc", false, I},
	{"a*b*c", "axxbyy", false, U},
	{"*", "anything", true, I},
	{"", "a", false, U},
	/* with one it is about the path from here */
	{"/a", "a", false, I},
	{"/a", "x/a", false, U},
	{"a/b", "a/b", false, I},
	{"a/b", "x/a/b", false, U},
	{"a/*.c", "a/x.c", false, I},
	{"a/*.c", "a/b/x.c", false, U},
	/* at the end it is about directories */
	{"build/", "build", true, I},
	{"build/", "build", false, U},
	{"build/", "x/build", true, I},
	{"/build/", "x/build", true, U},
	/* two stars are any number of names */
	{"**/a", "a", false, I},
	{"**/a", "x/y/a", false, I},
	{"a/**", "a/b/c", false, I},
	{"a/**", "a", true, U},
	{"a/**/b", "a/b", false, I},
	{"a/**/b", "a/x/y/b", false, I},
	{"a/**/b", "a/x/y/c", false, U},
	{"a/**/b/**/c", "a/b/x/b/y/c", false, I},
	{"**/a/*/b", "a/a/x/b", false, I},
	{"a**b", "axb", false, I},
	/* the last rule decides */
	{"*.o\n!keep.o\n", "keep.o", false, N},
	{"!keep.o\n*.o\n", "keep.o", false, I},
	{"*.o\n!keep.o\n", "a.o", false, I},
	/* what is no rule */
	{"# a\n\n  \na\n", "# a", false, U},
	{"# a\n\n  \na\n", "a", false, I},
	{"\\#a", "#a", false, I},
	{"\\!a", "!a", false, I},
	{"a \n", "a", false, I},
	{"a\\ \n", "a ", false, I},
	{"a\r\nb\r\n", "a", false, I},
	{"\xef\xbb\xbf"
	 "a\n",
		"a", false, I},
	{"/", "a", true, U},
	{"!", "a", true, U},
	/* classes */
	{"[abc]", "b", false, I},
	{"[a-c]", "b", false, I},
	{"[!a-c]", "b", false, U},
	{"[^a-c]", "d", false, I},
	{"[]]", "]", false, I},
	{"[]-]", "-", false, I},
	{"[a-]", "-", false, I},
	{"[\\]]", "]", false, I},
	{"[a", "a", false, U},
	{"[a", "[a", false, U},
	{"*.py[cod]", "x.pyc", false, I},
	{"\\*", "*", false, I},
	{"\\*", "a", false, U},
	{"a\\", "a", false, U},
	{"a//b", "a/b", false, U},
	/* bytes */
	{"\xff*", "\xff\xfe", false, I},
};

static void each_rule(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		_cleanup_(ignore_freep) struct ignore_rules *r =
			ignore_parse(str_from(table[i].rules));
		int got;

		must(r);
		got = (int)ignore_match(r, str_from(table[i].path), table[i].is_directory);
		if (got != table[i].want)
			tap_fail("\"%s\", \"%s\": %d, not %d", table[i].rules, table[i].path, got,
				table[i].want);
	}
}

/* A pattern of stars alone does not take for ever. */
static void stars_are_cheap(void)
{
	char stars[2 * 2000 + 1], deep[4000], names[250];
	_cleanup_(ignore_freep) struct ignore_rules *r = NULL, *q = NULL;

	for (size_t i = 0; i < 2000; i++)
		memcpy(stars + 2 * i, "a*", 2);
	stars[sizeof(stars) - 1] = 'b';
	memset(names, 'a', sizeof(names));
	must((r = ignore_parse(str_make(stars, sizeof(stars)))) != NULL);
	check_int(ignore_match(r, str_make(names, sizeof(names)), false), U);
	for (size_t i = 0; i + 3 <= sizeof(stars); i += 3)
		memcpy(stars + i, "**/", 3);
	for (size_t i = 0; i < sizeof(deep); i++)
		deep[i] = i % 2 ? '/' : 'a';
	stars[sizeof(stars) - 1] = 'b';
	must((q = ignore_parse(str_make(stars, sizeof(stars)))) != NULL);
	check_int(ignore_match(q, str_make(deep, sizeof(deep) - 1), false), U);
}

static void a_file_is_bounded(void)
{
	static char text[2 * IGNORE_MAX_TEXT];
	_cleanup_(ignore_freep) struct ignore_rules *r = NULL;

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = i % 2 ? '\n' : 'a';
	must((r = ignore_parse(str_make(text, sizeof(text)))) != NULL);
	check_int((int)ignore_count(r), IGNORE_MAX_RULES);
}

int main(void)
{
	run_test(each_rule);
	run_test(stars_are_cheap);
	run_test(a_file_is_bounded);
	return tap_done();
}
