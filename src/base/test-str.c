/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "tap.h"

static void compares(void)
{
	check(str_eq(STR(""), STR_NULL));
	check(str_eq(STR("a"), STR("a")));
	check(!str_eq(STR("a"), STR("A")));
	check(!str_eq(STR("a"), STR("ab")));
	check(str_ieq(STR("Content-LENGTH"), STR("content-length")));
	check(!str_ieq(STR("a\0b"), STR("a\0c")));
	check(str_eq(str_make("a\0b", 3), STR("a\0b")));
	check(str_starts(STR("abc"), STR("ab")));
	check(str_starts(STR("abc"), STR_NULL));
	check(!str_starts(STR("a"), STR("ab")));
	check(str_ends(STR("abc"), STR("bc")));
	check(str_ends(STR_NULL, STR("")));
	check(!str_ends(STR("c"), STR("bc")));
	check(str_compare(STR("ab"), STR("b")) < 0 && str_compare(STR("b"), STR("ab")) > 0);
	check(str_compare(STR("a"), STR("a\0")) < 0 && str_compare(STR("ab"), STR("a")) > 0);
	check(str_compare(STR("\xff"), STR("a")) > 0 && str_compare(STR_NULL, STR("a")) < 0);
	check(str_compare(STR("a"), STR("a")) == 0 && str_compare(STR_NULL, STR("")) == 0);
}

static void searches(void)
{
	check_int(str_chr(STR("a=b=c"), '='), 1);
	check_int(str_chr(STR("abc"), '='), 3);
	check_int(str_chr(STR_NULL, '='), 0);
	check_int(str_chr(STR("a\0b"), 'b'), 2);
	check_int(str_find(STR("one two"), STR("two")), 4);
	check_int(str_find(STR("one two"), STR("")), 0);
	check_int(str_find(STR("on"), STR("one")), 2);
	check_int(str_find(STR("x\0one"), STR("one")), 2);
}

static void knows_ascii(void)
{
	unsigned digits = 0, letters = 0, visible = 0;

	for (int i = 0; i < 256; i++) {
		char c = (char)i;

		digits += str_is_digit(c);
		letters += str_is_alnum(c) && !str_is_digit(c);
		visible += str_is_visible(str_make(&c, 1));
	}
	check(digits == 10 && letters == 52 && visible == 94);
	check(str_is_digit('0') && str_is_digit('9') && str_is_alnum('z') && str_is_alnum('A'));
	check(str_is_visible(STR("!~")) && str_is_visible(STR_NULL) && !str_is_visible(STR("a b")));
}

static void finds_in_a_list(void)
{
	static const struct str list[] = {STR("a"), STR("bc"), STR("")};

	check(str_is_one_of(STR("bc"), list, 2) && str_is_one_of(STR_NULL, list, 3));
	check(!str_is_one_of(STR("b"), list, 3) && !str_is_one_of(STR(""), list, 2));
}

static void cuts(void)
{
	struct str text = STR("a\n\nb");

	check_str(str_from_index(STR("abc"), 1), "bc");
	check_str(str_from_index(STR("abc"), 3), "");
	check_str(str_from_index(STR("abc"), 9), "");
	check_str(str_from_index(STR_NULL, 1), "");
	check_str(str_prefix(STR("abc"), 2), "ab");
	check_str(str_prefix(STR("abc"), 7), "abc");
	check_str(str_next_line(&text), "a");
	check_str(str_next_line(&text), "");
	check_str(str_next_line(&text), "b");
	check_str(str_next_line(&text), "");
	text = STR("a,,b");
	check_str(str_next(&text, ','), "a");
	check_str(str_next(&text, ','), "");
	check_str(str_next(&text, ','), "b");
	check_int(text.n, 0);
	check_str(str_next(&text, ','), "");
	check(str_is_all(STR("09"), STR_DIGITS) && str_is_all(STR_NULL, STR_DIGITS));
	check(!str_is_all(STR("0a"), STR_DIGITS) &&
		str_is_all(STR("aZ-"), STR_LOWER STR_UPPER "-"));
	check(!str_is_all(STR("0\0"), STR_DIGITS));
	check_str(str_trim(STR(" \t a b\t ")), "a b");
	check_str(str_trim(STR(" \t ")), "");
	check_str(str_trim(STR("\na\n")), "\na\n");
	check_str(str_from(NULL), "");
}

static void duplicates(void)
{
	char *z = str_dup(str_make("a\0b", 3));

	must(z);
	check(memcmp(z, "a\0b\0", 4) == 0);
	free(z);
	z = str_dup(STR_NULL);
	check_z(z, "");
	free(z);
}

static void copies(void)
{
	char to[4] = "xxx";

	str_copy(to, sizeof(to), STR("abcd"));
	check_z(to, "abc");
	str_copy(to, sizeof(to), STR_NULL);
	check_z(to, "");
}

int main(void)
{
	run_test(compares);
	run_test(searches);
	run_test(knows_ascii);
	run_test(finds_in_a_list);
	run_test(cuts);
	run_test(duplicates);
	run_test(copies);
	return tap_done();
}
