/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"
#include "tap.h"

static void test_decode(void)
{
	static const struct {
		struct str s;
		size_t len;
		uint32_t cp;
	} rows[] = {
		{{"a", 1}, 1, 'a'},
		{{"\0", 1}, 1, 0},
		{{"\xc2\x80", 2}, 2, 0x80},
		{{"\xdf\xbf", 2}, 2, 0x7ff},
		{{"\xe0\xa0\x80", 3}, 3, 0x800},
		{{"\xef\xbf\xbf", 3}, 3, 0xffff},
		{{"\xf0\x90\x80\x80", 4}, 4, 0x10000},
		{{"\xf4\x8f\xbf\xbf", 4}, 4, 0x10ffff},
		{{"\xc0\x80", 2}, 0, 0},         /* overlong */
		{{"\xe0\x9f\xbf", 3}, 0, 0},     /* overlong */
		{{"\xf0\x8f\xbf\xbf", 4}, 0, 0}, /* overlong */
		{{"\xed\xa0\x80", 3}, 0, 0},     /* surrogate */
		{{"\xf4\x90\x80\x80", 4}, 0, 0}, /* above U+10FFFF */
		{{"\xe2\x82", 2}, 0, 0},         /* cut off */
		{{"\x80", 1}, 0, 0},
		{{"\xff", 1}, 0, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t cp = 0;

		check_int(utf8_decode(rows[i].s, &cp), rows[i].len);
		check_int(cp, rows[i].cp);
		check(utf8_is_valid(rows[i].s) == (rows[i].len > 0));
	}
}

static void test_count(void)
{
	check_int(utf8_count(STR("")), 0);
	check_int(utf8_count(STR("a\xc3\xa9\xf0\x9f\x98\x80z")), 4);
	check_int(utf8_count(STR("\xff\xc3")), 2);
}

int main(void)
{
	run_test(test_decode);
	run_test(test_count);
	return tap_done();
}
