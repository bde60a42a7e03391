/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rand.h"
#include "policy/glob.h"

#include "seeded.h"
#include "tap.h"

static const struct {
	const char *pattern, *text;
	bool match;
} cases[] = {
	{"*", "", true},
	{"*", "anything/at.all", true},
	{"**", "x", true},
	{"", "", true},
	{"", "a", false},
	{"a", "", false},
	{"abc", "abc", true},
	{"abc", "abcd", false},
	{"a?c", "abc", true},
	{"a?c", "ac", false},
	{"?", "", false},
	{"?", "/", true},
	{"*.x.com", "a.x.com", true},
	{"*.x.com", "a.b.x.com", true},
	{"*.x.com", "x.com", false},
	{"*.x.com", ".x.com", true},
	{"*.x.com", "ax.com", false},
	{"*.x.com", "a.x.com.evil", false},
	{"a*b*c", "a-b-b-c", true},
	{"a*b*c", "a-b-b-", false},
	{"a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaa", false},
	{"/v1/messages*", "/v1/messages", true},
	{"/v1/messages*", "/v1/messages/batches/x", true},
	{"/repos/*/pulls", "/repos/a/b/pulls", true},
	{"[abc]*", "b", true},
	{"[abc]*", "d", false},
	{"[a-c]?", "bz", true},
	{"[a-c]?", "dz", false},
	{"[!a-c]?", "dz", true},
	{"[!a-c]?", "az", false},
	{"[]]*", "]x", true},
	{"[!]]*", "]x", false},
	{"[!]]*", "x", true},
	{"[*", "[", true},
	{"[*", "[abc", true},
	{"[a*", "[ab", true},
	{"[a*", "a", false},
	{"[!", "[!", true},
	{"x[", "x[", true},
	{"[a-]*", "-", true},
	{"[-a]*", "-", true},
	{"[z-a]*", "m", false},
	{"[!z-a]*", "m", true},
	{"[^a]*", "^", true},
	{"[^a]*", "b", false},
	{"[a][b]?", "abc", true},
	{"*[0-9]", "abc7", true},
	{"*[0-9]", "abc", false},
	{"*[0-9]*", "a7c", true},
	{"*\\*", "\\", true},
	{"a\\*", "a*", false},
};

static void test_table(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool got = glob_match(str_from(cases[i].pattern), str_from(cases[i].text));

		if (got != cases[i].match)
			tap_fail("%s on %s: got %d", cases[i].pattern, cases[i].text, got);
	}
}

static void test_or_equal(void)
{
	check(glob_match_or_equal(STR("a[b]c"), STR("a[b]c")));
	check(!glob_match_or_equal(STR("a[b]c"), STR("abc")));
	check(glob_match_or_equal(STR("a[b]*"), STR("abc")));
	check(!glob_is_pattern(STR("[x]")));
	check(glob_is_pattern(STR("?")));
	check(!glob_is_pattern(STR_NULL));
	check(glob_match_or_equal(STR_NULL, STR_NULL));
}

/* The plain recursive definition, for comparison on short inputs without sets. */
static bool slow_match(const char *p, const char *t)
{
	if (*p == '\0')
		return *t == '\0';
	if (*p == '*')
		return slow_match(p + 1, t) || (*t && slow_match(p, t + 1));
	return *t && (*p == '?' || *p == *t) && slow_match(p + 1, t + 1);
}

static void test_against_definition(void)
{
	static const char pattern_bytes[] = "ab*?*", text_bytes[] = "ab";

	for (int i = 0; i < 20000; i++) {
		char p[9], t[11];
		uint32_t pn = rand_below(8), tn = rand_below(10);

		for (uint32_t j = 0; j < pn; j++)
			p[j] = pattern_bytes[rand_below(5)];
		for (uint32_t j = 0; j < tn; j++)
			t[j] = text_bytes[rand_below(2)];
		p[pn] = t[tn] = '\0';
		if (glob_match(str_from(p), str_from(t)) != slow_match(p, t))
			tap_fail("%s on %s", p, t);
	}
}

/* What tries each way to match would never end here. */
static void test_no_blow_up(void)
{
	char pattern[512], text[8192];

	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = i % 2 ? 'a' : '*';
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = 'b';
	check(!glob_match(str_make(pattern, sizeof(pattern)), str_make(text, sizeof(text))));
}

int main(void)
{
	seeded_begin();
	run_test(test_table);
	run_test(test_or_equal);
	run_test(test_against_definition);
	run_test(test_no_blow_up);
	return tap_done();
}
