/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rand.h"
#include "policy/path.h"

#include "seeded.h"
#include "tap.h"

/* What stands in the way of a rule that constrains the path. */
static const struct {
	const char *target;
	enum path_problem problem;
	const char *decoded; /* if there is no problem */
} cases[] = {
	{"/", PATH_OK, "/"},
	{"/a/b", PATH_OK, "/a/b"},
	{"/a/b/", PATH_OK, "/a/b/"},
	{"/a?x=/../%00\\", PATH_OK, "/a"},
	{"/a?q=a%5Cb", PATH_OK, "/a"},
	{"/a?q=%zz", PATH_OK, "/a"},
	{"/a??", PATH_OK, "/a"},
	{"/v1/messag%65s", PATH_OK, "/v1/messages"},
	{"/%41", PATH_OK, "/A"},
	{"/a%20b", PATH_OK, "/a b"},
	{"/%C3%A9", PATH_OK, "/\xc3\xa9"},
	{"/a;x=1/b", PATH_OK, "/a;x=1/b"},
	{"/..a", PATH_OK, "/..a"},
	{"/a..", PATH_OK, "/a.."},
	{"/%20/a%20.", PATH_OK, "/ /a ."},
	{"/.git/config", PATH_OK, "/.git/config"},
	{"/a%3Fb", PATH_OK, "/a?b"},
	{"/a%23b", PATH_OK, "/a#b"},
	{"/100%25", PATH_OK, "/100%"},
	{"/100%25zz", PATH_OK, "/100%zz"},
	{"/a+b", PATH_OK, "/a+b"},
	{"/@scope/pkg", PATH_OK, "/@scope/pkg"},
	/* not absolute */
	{"", PATH_NOT_ABSOLUTE, NULL},
	{"*", PATH_NOT_ABSOLUTE, NULL},
	{"a", PATH_NOT_ABSOLUTE, NULL},
	{"?x", PATH_NOT_ABSOLUTE, NULL},
	{"http://evil/", PATH_NOT_ABSOLUTE, NULL},
	{"evil.com:443", PATH_NOT_ABSOLUTE, NULL},
	{"\\a", PATH_NOT_ABSOLUTE, NULL},
	/* raw bytes */
	{"/a b", PATH_RAW_BYTE, NULL},
	{"/a\tb", PATH_RAW_BYTE, NULL},
	{"/a\rb", PATH_RAW_BYTE, NULL},
	{"/a\nb", PATH_RAW_BYTE, NULL},
	{"/a\x7f", PATH_RAW_BYTE, NULL},
	{"/a\x80", PATH_RAW_BYTE, NULL},
	{"/\xc3\xa9", PATH_RAW_BYTE, NULL},
	{"/\xef\xbc\x8e\xef\xbc\x8e/x", PATH_RAW_BYTE, NULL},
	{"/a\\b", PATH_RAW_BYTE, NULL},
	{"/\\..\\", PATH_RAW_BYTE, NULL},
	{"/a#b", PATH_RAW_BYTE, NULL},
	{"/a?x#b", PATH_RAW_BYTE, NULL},
	{"/a?x y", PATH_RAW_BYTE, NULL},
	{"/a?x\ny", PATH_RAW_BYTE, NULL},
	{"/a?\xff", PATH_RAW_BYTE, NULL},
	/* percent */
	{"/%", PATH_BAD_PERCENT, NULL},
	{"/%2", PATH_BAD_PERCENT, NULL},
	{"/%zz", PATH_BAD_PERCENT, NULL},
	{"/%u002e", PATH_BAD_PERCENT, NULL},
	{"/%2?x=0", PATH_BAD_PERCENT, NULL},
	{"/%+1", PATH_BAD_PERCENT, NULL},
	/* encoded control bytes and backslashes */
	{"/a%00", PATH_CONTROL, NULL},
	{"/a%00.png", PATH_CONTROL, NULL},
	{"/a%0d%0aX:%20y", PATH_CONTROL, NULL},
	{"/a%7F", PATH_CONTROL, NULL},
	{"/a%08", PATH_CONTROL, NULL},
	/* dot segments */
	{"/..", PATH_DOT_SEGMENT, NULL},
	{"/.", PATH_DOT_SEGMENT, NULL},
	{"/./a", PATH_DOT_SEGMENT, NULL},
	{"/../a", PATH_DOT_SEGMENT, NULL},
	{"/a/..", PATH_DOT_SEGMENT, NULL},
	{"/a/.", PATH_DOT_SEGMENT, NULL},
	{"/repos/org/repo/..?x", PATH_DOT_SEGMENT, NULL},
	{"/repos/org/repo/../other", PATH_DOT_SEGMENT, NULL},
	{"/repos/org/repo/%2e%2e/other", PATH_DOT_SEGMENT, NULL},
	{"/repos/org/repo/.%2E/other", PATH_DOT_SEGMENT, NULL},
	{"/repos/org/repo/%2e./other", PATH_DOT_SEGMENT, NULL},
	{"/a/..;/b", PATH_DOT_SEGMENT, NULL},
	{"/a/..;x=1/b", PATH_DOT_SEGMENT, NULL},
	{"/a/..%3b/b", PATH_DOT_SEGMENT, NULL},
	{"/a/.;/b", PATH_DOT_SEGMENT, NULL},
	{"/a/..;", PATH_DOT_SEGMENT, NULL},
	{"/a/%2e%2e;x", PATH_DOT_SEGMENT, NULL},
	{"/a%2f..%2fb", PATH_DOT_SEGMENT, NULL},
	{"/a/..%2fb", PATH_DOT_SEGMENT, NULL},
	{"/a%2f%2e%2e", PATH_DOT_SEGMENT, NULL},
	/* ambiguous */
	{"/a%09b", PATH_TAB, NULL},
	{"/.%09./", PATH_TAB, NULL},
	{"/a%5cb", PATH_BACKSLASH, NULL},
	{"/..%5c", PATH_BACKSLASH, NULL},
	{"/..%5C..%5Cx", PATH_BACKSLASH, NULL},
	{"/..%20/x", PATH_DOTS, NULL},
	{"/pub/..%20", PATH_DOTS, NULL},
	{"/pub/.%20./x", PATH_DOTS, NULL},
	{"/pub/%20../x", PATH_DOTS, NULL},
	{"/pub/..%20;x/y", PATH_DOTS, NULL},
	{"/pub/.../x", PATH_DOTS, NULL},
	{"/...", PATH_DOTS, NULL},
	{"/..%20.", PATH_DOTS, NULL},
	{"/..%C2%A0/x", PATH_DOTS, NULL},
	{"/..%E3%80%80", PATH_DOTS, NULL},
	{"//", PATH_EMPTY_SEGMENT, NULL},
	{"//evil.com/x", PATH_EMPTY_SEGMENT, NULL},
	{"/a//b", PATH_EMPTY_SEGMENT, NULL},
	{"/a/%2fb", PATH_EMPTY_SEGMENT, NULL},
	{"/%252e%252e/", PATH_DOUBLE_ENCODED, NULL},
	{"/a%252fb", PATH_DOUBLE_ENCODED, NULL},
	{"/%25%32%65", PATH_DOUBLE_ENCODED, NULL},
	{"/%2500", PATH_DOUBLE_ENCODED, NULL},
	{"/a%2fb", PATH_ENCODED_SLASH, NULL},
	{"/@scope%2Fpkg", PATH_ENCODED_SLASH, NULL},
	{"/%c0%ae%c0%ae/", PATH_NOT_UTF8, NULL},
	{"/%c0%af", PATH_NOT_UTF8, NULL},
	{"/%e9", PATH_NOT_UTF8, NULL},
	{"/%ed%a0%80", PATH_NOT_UTF8, NULL},
	{"/%ef%bc%8e%ef%bc%8e/", PATH_LOOKALIKE, NULL},
	{"/a%ef%bc%8fb", PATH_LOOKALIKE, NULL},
	{"/a%ef%bc%bcb", PATH_LOOKALIKE, NULL},
	{"/%ef%bc%852e", PATH_LOOKALIKE, NULL},
	{"/%e2%80%a5/", PATH_LOOKALIKE, NULL},
	{"/%c2%85", PATH_LOOKALIKE, NULL},
};

static void test_table(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct path p;
		enum path_problem got;

		must(path_parse(str_from(cases[i].target), &p) == 0);
		got = path_problem_for_rule(&p, false);
		if (got != cases[i].problem)
			tap_fail("%s: %s", cases[i].target, path_problem_text(got));
		if (got == PATH_OK)
			check_str(p.decoded, cases[i].decoded);
		/* the second group stands only in the way of rules about paths */
		check_int(p.problem, got < PATH_TAB ? got : PATH_OK);
		check(strlen(path_problem_text(got)) > 5);
		path_done(&p);
	}
}

static void test_nul_and_length(void)
{
	static char big[PATH_MAX_TARGET + 2];
	struct path p;

	must(path_parse(STR("/a\0b"), &p) == 0);
	check_int(p.problem, PATH_RAW_BYTE);
	path_done(&p);
	memset(big, 'a', sizeof(big));
	big[0] = '/';
	must(path_parse(str_make(big, PATH_MAX_TARGET + 1), &p) == 0);
	check_int(p.problem, PATH_TOO_LONG);
	path_done(&p);
	must(path_parse(str_make(big, PATH_MAX_TARGET), &p) == 0);
	check_int(p.problem, PATH_OK);
	path_done(&p);
}

static void test_encoded_slash(void)
{
	struct path p;

	must(path_parse(STR("/@scope%2fpkg"), &p) == 0);
	check_int(path_problem_for_rule(&p, true), PATH_OK);
	check_str(p.decoded, "/@scope/pkg");
	path_done(&p);
	/* opting in opens nothing else */
	must(path_parse(STR("/a%2f..%2fb"), &p) == 0);
	check_int(path_problem_for_rule(&p, true), PATH_DOT_SEGMENT);
	path_done(&p);
	must(path_parse(STR("/a%2f%2fb"), &p) == 0);
	check_int(path_problem_for_rule(&p, true), PATH_EMPTY_SEGMENT);
	path_done(&p);
	must(path_parse(STR("/a%252fb"), &p) == 0);
	check_int(path_problem_for_rule(&p, true), PATH_DOUBLE_ENCODED);
	path_done(&p);
}

static bool matches(const char *pattern, const char *target, bool prefix)
{
	struct path p;
	bool match;

	must(path_parse(str_from(target), &p) == 0);
	match = prefix ? path_prefix_matches(str_from(pattern), &p)
		       : path_pattern_matches(str_from(pattern), &p);
	path_done(&p);
	return match;
}

static void test_patterns(void)
{
	check(matches("/graphql", "/graphql", false));
	check(matches("/graphql", "/graphql?x=1", false));
	check(matches("/graphql", "/graphq%6C", false));
	check(!matches("/graphql", "/graphql/", false));
	check(!matches("/graphql", "/GRAPHQL", false));
	check(!matches("/graphql", "/graphql%3Fx", false));
	check(matches("/v1/messages*", "/v1/messages?beta=true", false));
	check(matches("/v1/messages*", "/v1/messages/batches", false));
	check(!matches("/v1/messages*", "/v1/complete?/v1/messages", false));
	check(matches("/repos/*/pulls", "/repos/o/r/pulls?state=open", false));
	check(!matches("/repos/*/pulls", "/repos/o/r/issues?x=/pulls", false));
	/* patterns that were written to match a query */
	check(matches("/search?q=*", "/search?q=abc", false));
	check(matches("/search?q=*", "/search?%71=abc", false));
	check(!matches("/search?q=*", "/search", false));
	check(!matches("/search?q=*", "/search?r=1&q=abc", false));
	check(!matches("/search?q=*", "/other?q=abc", false));
	check(matches("/v?/search?q=*", "/v1/search?q=abc", false));
	check(matches("/search[a-z]?*", "/searchx?y", false));
	check(matches("/a?b", "/axb", false));
	check(matches("/a?b", "/axb?whatever", false));
	/* a `*` never spans the border */
	check(!matches("/search*q=1", "/search?q=1", false));
}

static void test_prefix(void)
{
	check(matches("/repos/o", "/repos/o", true));
	check(matches("/repos/o", "/repos/o?x", true));
	check(matches("/repos/o", "/repos/o/r/x", true));
	check(matches("/repos/o", "/repos/o/", true));
	check(!matches("/repos/o", "/repos/o-evil", true));
	check(!matches("/repos/o", "/repos/", true));
	check(!matches("/repos/o", "/x/repos/o", true));
	check(matches("", "/anything", true));
}

static void test_fold(void)
{
	static const char *const folded[][2] = {{"/", ""}, {"/GraphQL", "/graphql"},
		{"//a///b/", "/a/b"}, {"/a;x=1/b;y", "/a/b"}, {"/;x/a", "/a"}, {"/a;/", "/a"},
		{"/A%b C", "/a%b c"}, {"", ""}, {"/a;b;c", "/a"}, {"/\xc3\x84", "/\xc3\x84"}};

	for (size_t i = 0; i < ARRAY_SIZE(folded); i++) {
		_cleanup_(buf_donep) struct buf b = BUF_INIT(64);

		must(path_fold(str_from(folded[i][0]), &b) == 0);
		check_str(buf_str(&b), folded[i][1]);
	}
}

static void test_endpoints(void)
{
	static const struct {
		const char *path, *endpoint;
		bool is, below;
	} of[] = {
		{"/graphql", "/graphql", true, true},
		{"//GraphQL/;x", "/graphql", true, true},
		{"/graphql.json", "/graphql", true, true},
		{"/graphql ", "/graphql/", true, true},
		{"/a.php", "/a.php", true, true},
		{"/%67raphql", "/graphql", true, true},
		{"/a\\graphql", "/graphql", true, true},
		{"/graphql.json/x", "/graphql", false, true},
		{"/graphql/x", "/graphql", false, true},
		{"/graphql-x", "/graphql", false, false},
		{"/graphql2/x", "/graphql", false, false},
		{"/x/graphql", "/graphql", false, false},
		{"/", "/graphql", false, false},
		{"/", "/", true, true},
		{"/x", "/", false, true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
		struct str path = str_from(of[i].path), endpoint = str_from(of[i].endpoint);

		if (path_may_be(path, endpoint, false) != of[i].is ||
			path_may_be(path, endpoint, true) != of[i].below)
			tap_fail("%s, %s", of[i].path, of[i].endpoint);
	}
}

/* Whatever passes decodes to segments that are neither empty nor dots, on any bytes. */
static void test_random(void)
{
	static const char bytes[] = "/./.%2e%2F5c;a?\\#\0\x80";
	int passed = 0;

	for (int i = 0; i < 100000; i++) {
		char s[20] = "/";
		uint32_t n = 1 + rand_below(sizeof(s) - 1);
		struct path p;

		for (uint32_t j = 1; j < n; j++)
			s[j] = bytes[rand_below(sizeof(bytes) - 1)];
		must(path_parse(str_make(s, n), &p) == 0);
		if (path_problem_for_rule(&p, true) == PATH_OK) {
			passed++;
			check(str_find(p.decoded, STR("/../")) == p.decoded.n);
			check(str_find(p.decoded, STR("/./")) == p.decoded.n);
			check(str_find(p.decoded, STR("//")) == p.decoded.n);
			check(!str_ends(p.decoded, STR("/..")) && !str_ends(p.decoded, STR("/.")));
			check(str_find(p.decoded, STR("/..;")) == p.decoded.n);
			check(str_chr(p.decoded, '\\') == p.decoded.n);
			check(str_chr(p.decoded, '\0') == p.decoded.n);
		}
		path_done(&p);
	}
	check(passed > 1000);
}

int main(void)
{
	seeded_begin();
	run_test(test_table);
	run_test(test_nul_and_length);
	run_test(test_encoded_slash);
	run_test(test_patterns);
	run_test(test_prefix);
	run_test(test_fold);
	run_test(test_endpoints);
	run_test(test_random);
	return tap_done();
}
