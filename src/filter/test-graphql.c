/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "filter/graphql.h"

#include "tap.h"
#include <errno.h>

static struct gql_doc doc;

static int parse(const char *text)
{
	gql_doc_done(&doc);
	return gql_parse(str_from(text), &doc);
}

/* The value of the only argument of {a(x: ...)}. */
static struct str value_of(const char *text)
{
	_cleanup_(buf_donep) struct buf source = BUF_INIT(4096);
	static char mem[256];
	struct str s;

	must(buf_printf(&source, "{a(x:%s)}", text) == 0);
	gql_doc_done(&doc);
	if (gql_parse(buf_str(&source), &doc) < 0)
		return STR("<refused>");
	must(doc.n == 4 && doc.node[3].text.n < sizeof(mem));
	s = doc.node[3].text;
	if (s.n > 0)
		memcpy(mem, s.p, s.n);
	return str_make(mem, s.n);
}

static void test_nodes(void)
{
	check_int(
		parse("query Q($v: [Int!]! = 3 @d) @e(f: $v) { alias: real(a: {b: [1, $v]}) { c } "
		      "...F ... on T @g { h } ... { i } } fragment F on U { j }"),
		0);
	check_int(doc.node[0].kind, GQL_OPERATION);
	check_str(doc.node[0].name, "Q");
	check_int(doc.node[1].kind, GQL_VARIABLE_DEFINITION);
	check_int(doc.node[2].kind, GQL_INT);
	check_int(doc.node[2].parent, 1);
	check_int(doc.node[3].kind, GQL_DIRECTIVE);
	check_int(doc.node[1].end, 4);
	check_int(doc.node[4].kind, GQL_DIRECTIVE);
	check_int(doc.node[7].kind, GQL_FIELD);
	check_str(doc.node[7].name, "real");
	check_str(doc.node[7].text, "alias");
	check_int(doc.node[10].kind, GQL_OBJECT_FIELD);
	check_int(doc.node[11].kind, GQL_LIST);
	check_int(doc.node[13].kind, GQL_VARIABLE);
	check_str(doc.node[14].name, "c");
	check_int(doc.node[15].kind, GQL_SPREAD);
	check_str(doc.node[15].name, "F");
	check_int(doc.node[16].kind, GQL_INLINE);
	check_str(doc.node[16].text, "T");
	check_int(doc.node[19].kind, GQL_INLINE);
	check_int(doc.node[19].text.n, 0);
	check_int(doc.node[21].kind, GQL_FRAGMENT);
	check_str(doc.node[21].text, "U");
	check_int(gql_next(&doc, 0), 21);
	check_int(gql_next(&doc, 21), GQL_NONE);
	check_int(gql_first(&doc, 22), GQL_NONE);
}

static void test_operations(void)
{
	check_int(parse("{a}"), 0);
	check_int(doc.node[0].op, GQL_QUERY);
	check_int(parse("mutation{a}"), 0);
	check_int(doc.node[0].op, GQL_MUTATION);
	check_int(parse("subscription subscription{a}"), 0);
	check_int(doc.node[0].op, GQL_SUBSCRIPTION);
	check_z(gql_operation_word(doc.node[0].op), "subscription");
}

static void test_ignored(void)
{
	check_int(parse("\xef\xbb\xbf,,{#}\r a #\"\"\"\n,b\xef\xbb\xbf,}\t#end"), 0);
	check_int(doc.n, 3);
	check_int(parse("#only"), -EINVAL);
	check_int(parse(""), -EINVAL);
	check_int(parse("{a\xc2\xa0}"), -EINVAL);
}

static void test_strings(void)
{
	check_str(value_of("\"\""), "");
	check_str(value_of("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), "\"\\/\b\f\n\r\t");
	check_str(value_of("\"\\u0041\\u00e9\\u20AC\""), "A\xc3\xa9\xe2\x82\xac");
	check_str(value_of("\"\\uD83D\\uDE00 \\u{1F600}\""), "\xf0\x9f\x98\x80 \xf0\x9f\x98\x80");
	check_str(value_of("\"\\uD83D\""), "<refused>");
	check_str(value_of("\"\\uDE00\""), "<refused>");
	check_str(value_of("\"\\uD83D\\u0041\""), "<refused>");
	check_str(value_of("\"\\u{D83D}\\uDE00\""), "<refused>");
	check_str(value_of("\"\\u{110000}\""), "<refused>");
	check_str(value_of("\"\\u{}\""), "<refused>");
	check_str(value_of("\"\\u00g0\""), "<refused>");
	check_str(value_of("\"\\x\""), "<refused>");
	check_str(value_of("\"a\nb\""), "<refused>");
	check_str(value_of("\"a"), "<refused>");
	check_str(value_of("\"a\\"), "<refused>");
	check_str(value_of("'a'"), "<refused>");
}

static void test_block_strings(void)
{
	check_str(value_of("\"\"\"\"\"\""), "");
	check_str(value_of("\"\"\"a\\nb\"\"\""), "a\\nb");
	check_str(value_of("\"\"\"\n\n    a\n      b\n\n   \n\"\"\""), "a\n  b");
	check_str(value_of("\"\"\"  first\r\n  second\r  third\"\"\""), "  first\nsecond\nthird");
	check_str(value_of("\"\"\"a\n\n  b\"\"\""), "a\n\nb");
	check_str(value_of("\"\"\"a \\\"\"\" b\"\"\""), "a \"\"\" b");
	check_str(value_of("\"\"\"  \n \t\n\"\"\""), "");
	check_str(value_of("\"\"\"a"), "<refused>");
	check_str(value_of("\"\"\"a\"\""), "<refused>");
	check_str(value_of("\"\"\"a\\\"\"\""), "<refused>");
}

static void test_numbers(void)
{
	check_str(value_of("-0"), "-0");
	check_str(value_of("0.5e-10"), "0.5e-10");
	check_int(doc.node[3].kind, GQL_FLOAT);
	check_str(value_of("9E9"), "9E9");
	check_str(value_of("123456789012345678901234567890"), "123456789012345678901234567890");
	check_int(doc.node[3].kind, GQL_INT);
	check_str(value_of("00"), "<refused>");
	check_str(value_of("01"), "<refused>");
	check_str(value_of("1."), "<refused>");
	check_str(value_of(".5"), "<refused>");
	check_str(value_of("1.5.5"), "<refused>");
	check_str(value_of("0xF"), "<refused>");
	check_str(value_of("1a"), "<refused>");
	check_str(value_of("1_"), "<refused>");
	check_str(value_of("-"), "<refused>");
	check_str(value_of("+1"), "<refused>");
	check_str(value_of("1e"), "<refused>");
}

static void test_refused(void)
{
	static const char *const texts[] = {"{}", "{a", "a", "{a}}", "{a()}", "{a(b)}", "{a(b:)}",
		"{a(:1)}", "{a{}}", "{...}", "{...on}", "{...on T}", "{..a}", "{a..b}", "{$a}",
		"query(){a}", "query($a){a}", "query($a:){a}", "query($a:[T){a}",
		"query($a:T=$b){a}", "query($a:T=[$b]){a}", "query($a:T!!){a}", "query", "query Q",
		"query{a}b", "QUERY{a}", "fragment on on T{a}", "fragment F T{a}",
		"fragment F on{a}", "fragment F on T", "type T{a:B}", "schema{query:Q}",
		"extend type T{a:B}", "\"d\" query{a}", "{a:}", "{a:b:c}", "{a(b:[1)}",
		"{a(b:{c})}", "{a(b:{c:1)}", "{@d a}", "{a@}", "{a&b}", "{a|b}", "{a}\x01",
		"{a(b:\"\x7f\xff\")}", "{a}\xed\xa0\x80", "{a \\u0041}"};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		int r = parse(texts[i]);

		if (r != -EINVAL || doc.n != 0)
			tap_fail("%s: %d", texts[i], r);
	}
	check_int(gql_parse(str_make("{a}\0", 4), &doc), -EINVAL);
}

static void many(struct buf *out, const char *piece, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		must(buf_add_str(out, str_from(piece)) == 0);
}

static void test_limits(void)
{
	static const struct {
		const char *before, *piece;
		unsigned n;
		const char *middle, *after;
		unsigned n_after;
		int want;
	} cases[] = {
		{"", "{a", GQL_DEPTH_MAX, "", "}", GQL_DEPTH_MAX, 0},
		{"", "{a", GQL_DEPTH_MAX + 1, "", "}", GQL_DEPTH_MAX + 1, -E2BIG},
		{"{a(b:", "[", GQL_DEPTH_MAX - 1, "", "]", GQL_DEPTH_MAX - 1, -EINVAL},
		{"{a(b:", "[", GQL_DEPTH_MAX, "", "]", GQL_DEPTH_MAX, -E2BIG},
		{"{a(b:", "{c:", 200000, "", "", 0, -E2BIG},
		{"query($a:", "[", 200000, "", "", 0, -E2BIG},
		{"{", "...{", 200000, "", "", 0, -E2BIG},
		{"{", "a ", GQL_TOKENS_MAX - 2, "}", "", 0, 0},
		{"{", "a ", GQL_TOKENS_MAX - 1, "}", "", 0, -E2BIG},
		{"{a}", " ", GQL_SOURCE_MAX - 3, "", "", 0, 0},
		{"{a}", " ", GQL_SOURCE_MAX - 2, "", "", 0, -E2BIG},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(buf_donep) struct buf text = BUF_INIT(4 << 20);

		many(&text, cases[i].before, 1);
		many(&text, cases[i].piece, cases[i].n);
		many(&text, cases[i].middle, 1);
		many(&text, cases[i].after, cases[i].n_after);
		gql_doc_done(&doc);
		check_int(gql_parse(buf_str(&text), &doc), cases[i].want);
	}
}

int main(void)
{
	run_test(test_nodes);
	run_test(test_operations);
	run_test(test_ignored);
	run_test(test_strings);
	run_test(test_block_strings);
	run_test(test_numbers);
	run_test(test_refused);
	run_test(test_limits);
	gql_doc_done(&doc);
	return tap_done();
}
