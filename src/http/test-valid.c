/* SPDX-License-Identifier: Apache-2.0 */
#include "http/limits.h"
#include "http/valid.h"

#include <tap.h>

/* Each class of the table against the grammar's own words. */
static void classes_of_bytes(void)
{
	for (unsigned c = 0; c < 256; c++) {
		bool alnum =
			(c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
		bool vchar = c > 0x20 && c < 0x7f;

		check_int(http_char_is((char)c, HTTP_C_TOKEN),
			alnum || (c && c < 0x80 && strchr("!#$%&'*+-.^_`|~", (int)c)));
		check_int(http_char_is((char)c, HTTP_C_VALUE),
			vchar || c == ' ' || c == '\t' || c >= 0x80);
		check_int(http_char_is((char)c, HTTP_C_TARGET), vchar && c != '#');
		check_int(http_char_is((char)c, HTTP_C_HOST),
			alnum || c == '-' || c == '.' || c == '_');
	}
}

static void lengths(void)
{
	static char x[HTTP_VALUE_MAX + 1];

	memset(x, 'x', sizeof(x));
	check(!http_is_token(STR("")));
	check(http_is_method(str_make(x, HTTP_METHOD_MAX)));
	check(!http_is_method(str_make(x, HTTP_METHOD_MAX + 1)));
	check(http_is_field_name(str_make(x, HTTP_NAME_MAX)));
	check(!http_is_field_name(str_make(x, HTTP_NAME_MAX + 1)));
	check(http_is_field_value(str_make(x, HTTP_VALUE_MAX)));
	check(!http_is_field_value(str_make(x, HTTP_VALUE_MAX + 1)));
	check(http_is_reason(str_make(x, HTTP_REASON_MAX)));
	check(!http_is_reason(str_make(x, HTTP_REASON_MAX + 1)));
	check(http_is_host(str_make(x, HTTP_HOST_MAX)));
	check(!http_is_host(str_make(x, HTTP_HOST_MAX + 1)));
	x[0] = '/';
	check(http_is_target(str_make(x, HTTP_TARGET_MAX)));
	check(!http_is_target(str_make(x, HTTP_TARGET_MAX + 1)));
}

static void values(void)
{
	check(http_is_field_value(STR("")));
	check(http_is_field_value(STR("a \t b")));
	check(!http_is_field_value(STR(" a")));
	check(!http_is_field_value(STR("a\t")));
	check(!http_is_field_value(STR(" ")));
	check(!http_is_field_value(STR("a\rb")));
	check(http_is_status(100) && http_is_status(999));
	check(!http_is_status(99) && !http_is_status(1000));
	check(!http_is_target(STR("")) && !http_is_target(STR("x")) && !http_is_target(STR("**")));
}

static void authorities(void)
{
	static const struct {
		const char *text, *host;
		int port;
	} good[] = {
		{"a", "a", 0},
		{"A.b:1", "A.b", 1},
		{"a.:65535", "a.", 65535},
		{"[::]", "[::]", 0},
		{"[::ffff:1.2.3.4]:443", "[::ffff:1.2.3.4]", 443},
		{"1.2.3.4:80", "1.2.3.4", 80},
		{"_x-y", "_x-y", 0},
	};
	static const char *const bad[] = {"", ":", ":1", "a:", "a:0", "a:01", "a:65536", "a:100000",
		"a:1x", "a: 1", "a:-1", "a:1:2", "[", "]", "[]", "[:::]", "[::1", "[::1]]",
		"[::1]1", "[::1]:", "[1.2.3.4]", "[::1%1]", "a b", "a,b", "a@b", "a/b", "a?b", ".",
		"..", ".a", "a..b", "a%41", "\xc3\xa4", "a\t", "http://a",
		"[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]"};
	struct str host = STR("untouched");
	uint16_t port = 7;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (http_parse_authority(str_from(bad[i]), &host, &port) == 0)
			tap_fail("accepted \"%s\"", bad[i]);
	}
	check_int(http_parse_authority(STR("a\0b"), &host, &port), -22);
	check_int(http_parse_authority(STR("[::1\0]"), &host, &port), -22);
	check_str(host, "untouched");
	check_int(port, 7);
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		check_int(http_parse_authority(str_from(good[i].text), &host, &port), 0);
		check_str(host, good[i].host);
		check_int(port, good[i].port);
	}
}

static void content_lengths(void)
{
	uint64_t n = 1;

	check_int(http_parse_length(STR("0"), &n), 0);
	check_int(n, 0);
	check_int(http_parse_length(STR("9223372036854775807"), &n), 0);
	check(n == INT64_MAX);
	check(http_parse_length(STR("9223372036854775808"), &n) < 0);
	check(http_parse_length(STR("99999999999999999999999999"), &n) < 0);
	check(http_parse_length(STR(""), &n) < 0);
	check(http_parse_length(STR(" 1"), &n) < 0);
	check(http_parse_length(STR("1\0"), &n) < 0);
}

static void lists(void)
{
	struct str list = STR(" ,, a ,\tb\t,,c d"), element;

	check(http_list_next(&list, &element));
	check_str(element, "a");
	check(http_list_next(&list, &element));
	check_str(element, "b");
	check(http_list_next(&list, &element));
	check_str(element, "c d");
	check(!http_list_next(&list, &element));
	check(http_list_has(STR("x, Close"), STR("close")));
	check(!http_list_has(STR("x, Closed"), STR("close")));
	check(!http_list_has(STR(""), STR("close")));
}

int main(void)
{
	run_test(classes_of_bytes);
	run_test(lengths);
	run_test(values);
	run_test(authorities);
	run_test(content_lengths);
	run_test(lists);
	return tap_done();
}
