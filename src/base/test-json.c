/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "tap.h"

static void check_text(const char *text, unsigned indent, const char *want)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(1 << 20);
	_cleanup_json_ json_t *v = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

	must(v);
	check_int(json_text_write(&out, v, indent), 0);
	check_str(buf_str(&out), want);
}

static void test_scalars(void)
{
	check_text("null", 0, "null");
	check_text("true", 0, "true");
	check_text("false", 0, "false");
	check_text("-9223372036854775808", 0, "-9223372036854775808");
	check_text("\"\\u0000\\b\\f\\n\\r\\t\\\"\\\\/\\u001f\"", 0,
		"\"\\u0000\\b\\f\\n\\r\\t\\\"\\\\/\\u001f\"");
	check_text("\"\xc3\xa9 \xf0\x9f\x98\x80\"", 0, "\"\\u00e9 \\ud83d\\ude00\"");
}

static void test_compact(void)
{
	check_text("{\"a\": [1, 0.1, {}, []], \"\\u00e9\": \"\\u0000\\n\\ud83d\\ude00\"}",
		JSON_TEXT_COMPACT,
		"{\"a\":[1,0.1,{},[]],\"\xc3\xa9\":\"\\u0000\\n\xf0\x9f\x98\x80\"}");
}

static void test_reals_are_short_and_exact(void)
{
	check_text("0.1", 0, "0.1");
	check_text("0.18651", 0, "0.18651");
	check_text("0.30000000000000004", 0, "0.30000000000000004");
	check_text("3.0", 0, "3.0");
	check_text("1e300", 0, "1e+300");
	check_text("-1.5e-7", 0, "-1.5e-07");
	for (unsigned i = 1; i < 2000; i++) {
		_cleanup_(buf_donep) struct buf out = BUF_INIT(100);
		double v = (double)i / (1U + i % 97);
		_cleanup_json_ json_t *j = json_real(v);

		check_int(json_text_write(&out, j, 0), 0);
		check(strtod(buf_cstr(&out), NULL) == v);
	}
}

static void test_layout(void)
{
	check_text("{\"b\":1,\"a\":[1,{\"x\":[]}],\"e\":{}}", 0,
		"{\"b\": 1, \"a\": [1, {\"x\": []}], \"e\": {}}");
	check_text("{\"b\":1,\"a\":[1,2],\"e\":{}}", 2,
		"{\n  \"b\": 1,\n  \"a\": [\n    1,\n    2\n  ],\n  \"e\": {}\n}");
}

static void test_limit(void)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(4);
	_cleanup_json_ json_t *v = json_string("too long");

	check(json_text_write(&out, v, 0) < 0);
}

int main(void)
{
	run_test(test_scalars);
	run_test(test_compact);
	run_test(test_reals_are_short_and_exact);
	run_test(test_layout);
	run_test(test_limit);
	return tap_done();
}
