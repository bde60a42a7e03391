/* SPDX-License-Identifier: Apache-2.0 */
#include "base/macro.h"
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

static void test_hidden(void)
{
	static const struct {
		uint32_t c;
		bool hidden, in_text;
	} rows[] = {{'a', false, false}, {0x7e, false, false}, {0xe9, false, false},
		{0x1f514, false, false}, {0x2027, false, false}, {0, true, true},
		{'\n', true, true}, {0x7f, true, true}, {0x9f, true, true}, {0xad, true, true},
		{0x34f, true, true}, {0x200b, true, true}, {0x200c, true, false},
		{0x200d, true, false}, {0x200e, true, true}, {0x2028, true, true},
		{0x202e, true, true}, {0x202f, true, false}, {0x2069, true, true},
		{0x3000, true, false}, {0xe0a0, true, false}, {0xfe0f, true, false},
		{0xfeff, true, true}, {0xfffd, true, false}, {0x1bca0, true, true},
		{0x1d173, true, true}, {0xe0041, true, true}, {0x10ffff, true, false}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (utf8_is_hidden(rows[i].c) != rows[i].hidden ||
			utf8_is_hidden_in_text(rows[i].c) != rows[i].in_text)
			tap_fail("U+%04X", (unsigned)rows[i].c);
}

int main(void)
{
	run_test(test_decode);
	run_test(test_count);
	run_test(test_hidden);
	return tap_done();
}
