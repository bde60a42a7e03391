/* SPDX-License-Identifier: Apache-2.0 */
#include "filter/body_json.h"

#include "tap.h"

#include <errno.h>

/* What text reads as, written by jansson; "refused"; "repeated". */
static const char *reading(struct str text)
{
	static char out[512];
	struct buf written = BUF_INIT(512);
	_cleanup_json_ json_t *value = NULL;
	int r = body_json_read(text, &value);

	if (r == 0)
		must(json_text_write(&written, value, JSON_TEXT_COMPACT) == 0);
	snprintf(out, sizeof(out), "%.*s",
		STR_FMT(r == -EINVAL   ? STR("refused")
			: r == -EEXIST ? STR("repeated")
				       : buf_str(&written)));
	buf_done(&written);
	return out;
}

static void test_halves(void)
{
	check_z(reading(STR("\"\\ud83d\"")), "\"\xef\xbf\xbd\"");
	check_z(reading(STR("[\"a\\uDe00b\",\"\\ud83d\\ud83d\\ude00\"]")),
		"[\"a\xef\xbf\xbd"
		"b\",\"\xef\xbf\xbd\xf0\x9f\x98\x80\"]");
	check_z(reading(STR("\"\\\\ud83d\"")), "\"\\\\ud83d\"");
	check_z(reading(STR("{\"a\" : \"\\ud83d\\\"\"}")), "{\"a\":\"\xef\xbf\xbd\\\"\"}");
}

static void test_halves_in_names(void)
{
	check_z(reading(STR("{\"\\ud83d\":1}")), "refused");
	check_z(reading(STR("{\"tool\\udc00s\" \n:[]}")), "refused");
	check_z(reading(STR("{\"\\ud83d\\ude00\":1}")), "{\"\xf0\x9f\x98\x80\":1}");
}

static void test_numbers(void)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"999999999999999999", "999999999999999999"},
		{"18446744073709552000", "9e+99"},
		{"-18446744073709552000", "-9e+99"},
		{"[9223372036854775808,1]", "[9e+99,1]"},
		{"{\"a\":100000000000000000000 , \"b\":2}", "{\"a\":9e+99,\"b\":2}"},
		{"1e400", "9e+99"},
		{"-1E+308", "-9e+99"},
		{"1e99999999999999999999", "9e+99"},
		{"123e306", "9e+99"},
		{"12345678901234567890.5", "1.2345678901234567e+19"},
		{"1e307", "1e+307"},
		{"0e400", "9e+99"},
		{"0.5e400", "9e+99"},
		{"1e-400", "0.0"},
		{"-0", "0"},
		{"0.1000000000000000055511151231257827", "0.1"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_z(reading(str_from(cases[i].text)), cases[i].want);
}

/* What jansson refuses is refused, in every neighbourhood of what it is not shown. */
static void test_refused(void)
{
	static const char *const cases[] = {"", "{", "[1,]", "01", "012345678901234567890", "1.",
		"12345678901234567890.", "12345678901234567890e", "1e400e", "1e400.5",
		"12345678901234567890x", "[12345678901234567890 1]", "-", "+1", ".5", "1e", "NaN",
		"Infinity", "\"\\ud83\"", "\"\\ud83dx", "\"\\ud83d\\\"", "\"\\x\"", "\"\xff\"",
		"\"\xed\xa0\xbd\"", "\"\t\"", "\xef\xbb\xbf{}", "{\"a\\u0000\":1}", "{a:1}",
		"{'a':1}", "\"\\ud83d\" x", "tru1"};
	_cleanup_(buf_donep) struct buf deep = BUF_INIT(1 << 16);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (strcmp(reading(str_from(cases[i])), "refused") != 0)
			tap_fail("%s is read as %s", cases[i], reading(str_from(cases[i])));
	check_z(reading(str_make("\"\0\"", 3)), "refused");
	check_z(reading(str_make("1\0", 2)), "refused");
	for (unsigned i = 0; i < 3000; i++)
		must(buf_add_char(&deep, '[') == 0);
	for (unsigned i = 0; i < 3000; i++)
		must(buf_add_char(&deep, ']') == 0);
	check_z(reading(buf_str(&deep)), "refused");
}

static void test_repeated(void)
{
	check_z(reading(STR("{\"a\":\"\\ud83d\",\"a\":1}")), "repeated");
	check_z(reading(STR("{\"to\\u006fls\":1,\"tools\":18446744073709552000}")), "repeated");
}

/* Text with ' for ", read, given the members of `merge` in the object at `tool` (none: the whole)
 * if null means that the member goes. */
static const char *rewritten(const char *text, const char *merge)
{
	static char out[512];
	struct buf written = BUF_INIT(512);
	_cleanup_json_ json_t *value = NULL, *changes = NULL, *again = NULL;
	char source[512];
	const char *name;
	json_t *object, *member;

	snprintf(source, sizeof(source), "%s", text);
	for (char *p = source; *p; p++)
		*p = *p == '\'' ? '"' : *p;
	must(body_json_read(str_from(source), &value) == 0);
	changes = json_loads(merge, 0, NULL);
	must(changes);
	object = json_object_get(value, "t") ? json_array_get(json_object_get(value, "t"), 0)
					     : value;
	json_object_foreach (changes, name, member) {
		if (json_is_null(member))
			must(json_object_del(object, name) == 0);
		else
			must(json_object_set(object, name, member) == 0);
	}
	must(body_json_write(&written, str_from(source), value) == 0);
	must(body_json_read(buf_str(&written), &again) == 0);
	check(json_equal(value, again));
	snprintf(out, sizeof(out), "%.*s", STR_FMT(buf_str(&written)));
	for (char *p = out; *p; p++)
		*p = *p == '"' ? '\'' : *p;
	buf_done(&written);
	return out;
}

static void test_what_stays(void)
{
	check_z(rewritten(" { 'a' : '\\ud83d' , 'b':[ -0, 1e400 ,1.50]} ", "{}"),
		" { 'a' : '\\ud83d' , 'b':[ -0, 1e400 ,1.50]} ");
	check_z(rewritten("{'x':'\\ud83d\\/', 't' : [ {'y':\t18446744073709552000 } , 1.0 ]}",
			"{\"new\":[]}"),
		"{'x':'\\ud83d\\/', 't' : [ {'y':\t18446744073709552000,'new':[] } , 1.0 ]}");
}

static void test_what_changes(void)
{
	check_z(rewritten("{}", "{\"a\":[1]}"), "{'a':[1]}");
	check_z(rewritten("{ }", "{\"a\":1,\"b\":\"\\n\"}"), "{'a':1,'b':'\\n' }");
	check_z(rewritten("{'a' : 1 , 'b' : 2}", "{\"a\":[\"x\", 2]}"),
		"{'a' : ['x',2] , 'b' : 2}");
	check_z(rewritten("{'a':[1 , 2],'b':{'c':']}'}}", "{\"a\":[2]}"),
		"{'a':[2],'b':{'c':']}'}}");
	check_z(rewritten("{'a':[1, 2]}", "{\"a\":[1,3]}"), "{'a':[1, 3]}");
	check_z(rewritten("{'\\u0061':1,'b':2}", "{\"a\":3}"), "{'\\u0061':3,'b':2}");
}

static void test_what_goes(void)
{
	check_z(rewritten("{'a' : 1 , 'b' : 2 , 'c' : 3 }", "{\"a\":null}"),
		"{  'b' : 2 , 'c' : 3 }");
	check_z(rewritten("{'a':1 , 'b':[{'x':[]}], 'c':3 }", "{\"b\":null}"), "{'a':1, 'c':3 }");
	check_z(rewritten("{'a':1, 'c':3 }", "{\"c\":null}"), "{'a':1 }");
	check_z(rewritten("{'a':1, 'b':2,'c':3}", "{\"a\":null,\"b\":null}"), "{'c':3}");
	check_z(rewritten("{ 'a':1, 'b':2 }", "{\"a\":null,\"b\":null}"), "{ }");
	check_z(rewritten("{'a':1}", "{\"a\":null,\"b\":2}"), "{'b':2}");
	check_z(rewritten("{'a':1,'b':2}", "{\"b\":null,\"c\":{}}"), "{'a':1,'c':{}}");
}

int main(void)
{
	run_test(test_halves);
	run_test(test_halves_in_names);
	run_test(test_numbers);
	run_test(test_refused);
	run_test(test_repeated);
	run_test(test_what_stays);
	run_test(test_what_changes);
	run_test(test_what_goes);
	return tap_done();
}
