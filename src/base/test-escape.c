/* SPDX-License-Identifier: Apache-2.0 */
#include "base/escape.h"
#include "tap.h"
#include "torture.h"

#include <errno.h>

static void log_lines(void)
{
	static const struct {
		struct str in;
		size_t max;
		const char *want;
	} table[] = {
		{{"example.com/a?b=c", 17}, 100, "example.com/a?b=c"},
		{{"a b", 3}, 100, "a%20b"},
		{{"x\nALLOWED GET", 13}, 100, "x%0AALLOWED%20GET"},
		{{"\x1b[31m", 5}, 100, "%1B%5B31m"},
		{{"a\0b\x7f\xff%", 6}, 100, "a%00b%7F%FF%25"},
		{{"[net]", 5}, 100, "%5Bnet%5D"},
		{{"abcdef", 6}, 3, "abc..."},
		{{"abc", 3}, 3, "abc"},
		{{"", 0}, 0, ""},
		{{NULL, 0}, 5, ""},
		{{"a", 1}, 0, "..."},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct buf out = BUF_INIT(1000);

		check_int(escape_log(&out, table[i].in, table[i].max), 0);
		check_str(buf_str(&out), table[i].want);
		buf_done(&out);
	}
}

static void terminal_text(void)
{
	static const struct {
		struct str in;
		const char *want;
	} table[] = {
		{{"two\nlines\tand a tab", 19}, "two\nlines\tand a tab"},
		{{"\x1b]0;title\x07", 10}, "\\x1B]0;title\\x07"},
		{{"a\r\b\x7f", 4}, "a\\x0D\\x08\\x7F"},
		{{"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\x94", 15},
			"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\x94"},
		/* C1 control characters are control characters in UTF-8 too. */
		{{"\xc2\x9b"
		  "31m",
			 5},
			"\\x9B31m"},
		/* Cut off, overlong, a surrogate, past the end of Unicode, a lone byte. */
		{{"\xe2\x82", 2}, "\xef\xbf\xbd\xef\xbf\xbd"},
		{{"\xc0\xaf", 2}, "\xef\xbf\xbd\xef\xbf\xbd"},
		{{"\xe0\x80\xaf", 3}, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		{{"\xed\xa0\x80", 3}, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		{{"\xf4\x90\x80\x80", 4}, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		{{"a\x80z", 3}, "a\xef\xbf\xbdz"},
		{{"\xc3(", 2}, "\xef\xbf\xbd("},
		/* What turns, hides or is not there; what only shapes. */
		{{"\xe2\x80\xae\xf3\xa0\x81\x81", 7}, "\\u{202e}\\u{e0041}"},
		{{"\xef\xb8\x8f", 3}, "\xef\xb8\x8f"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct buf out = BUF_INIT(1000);

		check_int(escape_terminal(&out, table[i].in), 0);
		check_str(buf_str(&out), table[i].want);
		buf_done(&out);
	}
}

static void json_strings(void)
{
	static const struct {
		struct str in;
		const char *want;
		bool ascii;
	} table[] = {
		{{"", 0}, "\"\""},
		{{"a\"b\\c", 5}, "\"a\\\"b\\\\c\""},
		{{"\n\0\x7f", 3}, "\"\\n\\u0000\\u007f\""},
		{{"\xc3\xa9\xff", 3}, "\"\xc3\xa9\\ufffd\""},
		{{"\xc3\xa9\xff\xf0\x9f\x98\x80z", 8}, "\"\\u00e9\\ufffd\\ud83d\\ude00z\"", true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct buf out = BUF_INIT(1000);

		check_int(escape_json(&out, table[i].in, table[i].ascii), 0);
		check_str(buf_str(&out), table[i].want);
		buf_done(&out);
	}
}

static void full_buffers_are_reported(void)
{
	struct buf out = BUF_INIT(4);

	check_int(escape_log(&out, STR("a\n\n"), 10), -E2BIG);
	buf_clear(&out);
	check_int(escape_terminal(&out, STR("\x1b\x1b")), -E2BIG);
	buf_done(&out);
}

static void escape_much(void)
{
	struct buf out = BUF_INIT(100000);
	char text[600];
	int r;

	memset(text, '\n', sizeof(text));
	r = escape_log(&out, str_make(text, sizeof(text)), sizeof(text));
	check_int(r, torture_failed ? -ENOMEM : 0);
	buf_done(&out);
}

static void survives_lack_of_memory(void)
{
	torture(escape_much);
}

int main(void)
{
	run_test(log_lines);
	run_test(terminal_text);
	run_test(json_strings);
	run_test(full_buffers_are_reported);
	run_test(survives_lack_of_memory);
	return tap_done();
}
