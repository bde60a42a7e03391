/* SPDX-License-Identifier: Apache-2.0 */
#include "api/run/code_value.h"
#include "tap.h"
#include "torture.h"

#include <errno.h>
#include <stdio.h>

#define NONCE "0123456789abcdefghijklmnopqrstuv"
#define MARK "\0" NONCE
#define TEN(x) x x x x x x x x x x
/* As much as a line may have, which is 2048. */
#define LONG TEN(TEN("01234567890123456789")) "012345678901234567890123456789012345678901234567"

static int keep(void *user, const char *p, size_t n)
{
	return buf_add(user, p, n);
}

/* What comes of input that arrives in pieces of so many bytes. */
static void feed(struct code_value *v, struct buf *out, struct str in, size_t piece)
{
	code_value_init(v, NONCE);
	while (in.n > 0) {
		struct str now = str_prefix(in, piece);

		must(code_value_feed(v, now.p, now.n, keep, out) == 0);
		in = str_from_index(in, now.n);
	}
	must(code_value_end(v, keep, out) == 0);
	must(code_value_settle(v) == 0);
}

static const struct {
	struct str in, out, text, json, repr; /* text NULL: there is no value */
} table[] = {
	{STR(""), STR(""), STR_NULL, STR(""), STR("")},
	{STR("plain\n"), STR("plain\n"), STR_NULL, STR(""), STR("")},
	{STR("a" MARK "text=1 json=1 repr=0\n22"), STR("a"), STR("2"), STR("2"), STR("")},
	{STR(MARK "text=0 json=2 repr=0\n\"\"z"), STR("z"), STR(""), STR("\"\""), STR("")},
	{STR(MARK "text=0 json=0 repr=0\n"), STR(""), STR(""), STR(""), STR("")},
	{STR(MARK "text=1 json=0 repr=2\nxyy"), STR(""), STR("x"), STR(""), STR("yy")},
	/* bytes of any kind */
	{STR(MARK "text=3 json=0 repr=0\n\0\xff\n."), STR("."), STR("\0\xff\n"), STR(""), STR("")},
	/* what only begins like a mark */
	{STR("\0\0x\0"), STR("\0\0x\0"), STR_NULL, STR(""), STR("")},
	{STR("\0"
	     "012" MARK "text=1 json=0 repr=0\na"),
		STR("\0"
		    "012"),
		STR("a"), STR(""), STR("")},
	{STR("\0"
	     "0123456789abcdefghijklmnopqrstuw"),
		STR("\0"
		    "0123456789abcdefghijklmnopqrstuw"),
		STR_NULL, STR(""), STR("")},
	/* the last one counts */
	{STR(MARK "text=1 json=0 repr=0\na-" MARK "text=1 json=0 repr=0\nb"), STR("-"), STR("b"),
		STR(""), STR("")},
	{STR(MARK "text=1 json=0 repr=0\na" MARK "text=9 json=0 repr=0\nb"), STR(""), STR_NULL,
		STR(""), STR("")},
	/* cut off */
	{STR("a" MARK), STR("a"), STR_NULL, STR(""), STR("")},
	{STR("a" MARK "text=1 json=1"), STR("a"), STR_NULL, STR(""), STR("")},
	{STR("a" MARK "text=2 json=1 repr=0\nx"), STR("a"), STR_NULL, STR(""), STR("")},
	/* no such line */
	{STR(MARK "\nx"), STR("x"), STR_NULL, STR(""), STR("")},
	{STR(MARK "text\nx"), STR("x"), STR_NULL, STR(""), STR("")},
	{STR(MARK "text=\nx"), STR("x"), STR_NULL, STR(""), STR("")},
	{STR(MARK "json=1\nx"), STR("x"), STR_NULL, STR(""), STR("")},
	{STR(MARK "text=1 other=1\nx"), STR("x"), STR_NULL, STR(""), STR("")},
	{STR(MARK "text=-1\nx"), STR("x"), STR_NULL, STR(""), STR("")},
	{STR(MARK "text=1  json=0\nx"), STR("x"), STR_NULL, STR(""), STR("")},
	{STR(MARK "text=1 \nx"), STR("x"), STR_NULL, STR(""), STR("")},
	{STR(MARK "text=1 !\nx"), STR("x"), STR_NULL, STR(""), STR("")},
	{STR(MARK "text!\nx"), STR("x"), STR(""), STR(""), STR("")},
	{STR(MARK "text=18446744073709551616 json=0 repr=0\nx"), STR("x"), STR_NULL, STR(""),
		STR("")},
	{STR(MARK "text=18446744073709551615 json=0 repr=0\nx"), STR(""), STR_NULL, STR(""),
		STR("")},
	{STR(MARK LONG "0\nx"), STR("\nx"), STR_NULL, STR(""), STR("")},
	/* JSON that is none, or none of ours */
	{STR(MARK "text=1 json=3 repr=0\n.NaN"), STR(""), STR("."), STR(""), STR("")},
	{STR(MARK "text=1 json=3 repr=0\n.1 2"), STR(""), STR("."), STR(""), STR("")},
	{STR(MARK "text=1 json=2 repr=0\n.\"\xff"), STR(""), STR("."), STR(""), STR("")},
	{STR(MARK "text=1 json=8 repr=0\n.\"\\ud800\""), STR(""), STR("."), STR(""), STR("")},
	{STR(MARK "text=1 json=20 repr=0\n.99999999999999999999"), STR(""), STR("."), STR(""),
		STR("")},
	{STR(MARK "text=1 json=5 repr=0\n.1e999"), STR(""), STR("."), STR(""), STR("")},
	{STR(MARK "text=1 json=8 repr=0\n.[\"\xc3\xa9\",\n]"), STR(""), STR("."), STR(""), STR("")},
	{STR(MARK "text=1 json=9 repr=0\n.[\"\xc3\xa9\",\n1]"), STR(""), STR("."),
		STR("[\"\\u00e9\", 1]"), STR("")},
	{STR(MARK "text=1 json=8 repr=0\n.\"\\u0000\""), STR(""), STR("."), STR("\"\\u0000\""),
		STR("")},
	{STR(MARK "text=1 json=4 repr=0\n.null"), STR(""), STR("."), STR("null"), STR("")},
	/* a repr stands in for JSON only */
	{STR(MARK "text=1 json=4 repr=4\n.nullNone"), STR(""), STR("."), STR("null"), STR("")},
	{STR(MARK "text=1 json=3 repr=3\n.NaNnan"), STR(""), STR("."), STR(""), STR("nan")},
};

static struct str part_of(struct code_value *v, size_t result, enum code_type type)
{
	struct code_part *part = code_value_part(v, result, type);

	return part ? buf_str(&part->data) : STR("");
}

static void check_part(struct str got, struct str want, size_t row, size_t piece)
{
	if (!str_eq(got, want))
		tap_fail("row %zu in pieces of %zu: \"%.*s\", not \"%.*s\"", row, piece,
			STR_FMT(got), STR_FMT(want));
}

static void test_every_row_in_pieces_of_any_size(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		for (size_t piece = 1; piece < 80; piece++) {
			_cleanup_(buf_donep) struct buf out = BUF_INIT(4096);
			struct code_value v;

			feed(&v, &out, table[i].in, piece);
			check_part(buf_str(&out), table[i].out, i, piece);
			if (v.whole != (table[i].text.p != NULL))
				tap_fail("row %zu in pieces of %zu: whole", i, piece);
			if (v.whole) {
				check_part(part_of(&v, 0, CODE_TEXT), table[i].text, i, piece);
				check_part(part_of(&v, 0, CODE_JSON), table[i].json, i, piece);
				check_part(part_of(&v, 0, CODE_REPR), table[i].repr, i, piece);
			}
			code_value_done(&v);
		}
	}
}

/* Gives n bytes of a part, piece by piece. */
static void give_much(struct code_value *v, struct buf *out, const char *head, size_t n)
{
	static const char bytes[1 << 16] = {[0 ...(1 << 16) - 1] = ' '};

	code_value_init(v, NONCE);
	must(code_value_feed(v, MARK, sizeof(MARK) - 1, keep, out) == 0);
	must(code_value_feed(v, head, strlen(head), keep, out) == 0);
	for (; n > 0; n -= MIN(n, sizeof(bytes)))
		must(code_value_feed(v, bytes, MIN(n, sizeof(bytes)), keep, out) == 0);
	must(code_value_end(v, keep, out) == 0);
	must(code_value_settle(v) == 0);
}

static void test_what_is_too_long_is_cut(void)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(4096);
	struct code_value v;
	char head[64];

	snprintf(head, sizeof(head), "text=%d\n", CODE_TEXT_MAX + 1);
	give_much(&v, &out, head, CODE_TEXT_MAX + 2);
	check(v.whole && v.parts[0].cut);
	check_int(part_of(&v, 0, CODE_TEXT).n, CODE_TEXT_MAX);
	check_str(buf_str(&out), " ");
	check(buf_cstr(&v.parts[0].data) != NULL);
	code_value_done(&v);

	/* Half a document is none, nor is half a picture. */
	snprintf(head, sizeof(head), "text=0 json=%d\n1", CODE_JSON_MAX + 1);
	give_much(&v, &out, head, CODE_JSON_MAX);
	check(v.whole && v.parts[1].cut && !v.parts[0].cut);
	check_int(part_of(&v, 0, CODE_JSON).n, 0);
	code_value_done(&v);
	snprintf(head, sizeof(head), "text=0 json=%d\n1", CODE_JSON_MAX);
	give_much(&v, &out, head, CODE_JSON_MAX - 1);
	check_str(part_of(&v, 0, CODE_JSON), "1");
	code_value_done(&v);
	snprintf(head, sizeof(head), "text=0 png=%d\n", CODE_RICH_MAX + 1);
	give_much(&v, &out, head, CODE_RICH_MAX + 1);
	check(v.whole && v.parts[1].cut && part_of(&v, 0, CODE_PNG).n == 0);
	code_value_done(&v);
}

static void test_all_together_are_bounded(void)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(4096), head = BUF_INIT(4096);
	const size_t each = 1 << 20, n = CODE_PARTS_MAX / 2;
	struct code_value v;
	size_t all = 0;

	for (size_t i = 0; i < n; i++)
		must(buf_printf(&head, "%stext=%zu png=%zu", i ? " " : "", each, each) == 0);
	must(buf_add_char(&head, '\n') == 0);
	give_much(&v, &out, buf_cstr(&head), 2 * n * each);
	check(v.whole && code_value_results(&v) == n);
	for (size_t i = 0; i < v.parts_n; i++)
		all += buf_len(&v.parts[i].data);
	check_int(all, CODE_ALL_MAX);
	check(!v.parts[0].cut && v.parts[v.parts_n - 1].cut);
	code_value_done(&v);

	buf_clear(&head);
	for (int i = 0; i <= CODE_PARTS_MAX; i++)
		must(buf_printf(&head, "%stext!", i ? " " : "") == 0);
	must(buf_add_char(&head, '\n') == 0);
	give_much(&v, &out, buf_cstr(&head), 0);
	check(!v.whole);
	code_value_done(&v);
}

static void test_each_result_has_its_parts(void)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(4096);
	struct code_value v;

	feed(&v, &out, STR(MARK "text=1 png=2 json=1 text=1 repr=1 html! text=0 png=1\napp1brq."),
		3);
	check_int(code_value_results(&v), 3);
	check_str(part_of(&v, 0, CODE_JSON), "1");
	check_str(part_of(&v, 1, CODE_REPR), "r");
	check_str(part_of(&v, 0, CODE_TEXT), "a");
	check_str(part_of(&v, 0, CODE_PNG), "pp");
	check_str(part_of(&v, 1, CODE_TEXT), "b");
	check(!code_value_part(&v, 1, CODE_PNG) && code_value_part(&v, 1, CODE_HTML)->cut);
	check_str(part_of(&v, 2, CODE_PNG), "q");
	check(!code_value_part(&v, 3, CODE_TEXT));
	check_str(buf_str(&out), ".");
	code_value_done(&v);
}

/* What a context prints between calls belongs to none. */
static void test_a_call_begins_and_ends(void)
{
	const struct str in = STR("before" MARK "end 3\n" MARK "begin\nin" MARK "text=1\nv" MARK
				  "end 256\n" MARK "end x\n-" MARK "end 7\nafter");

	for (size_t piece = 1; piece < 200; piece++) {
		_cleanup_(buf_donep) struct buf out = BUF_INIT(4096);
		struct code_value v;

		code_value_init(&v, NONCE);
		v.quiet = true;
		for (size_t at = 0; at < in.n; at += piece)
			must(code_value_feed(&v, in.p + at, MIN(piece, in.n - at), keep, &out) ==
				0);
		check_str(buf_str(&out), "in-");
		check(v.began && v.ended && v.whole);
		check_int(v.status, 7);
		code_value_done(&v);
	}
}

static int refuse(void *user, const char *p, size_t n)
{
	return -EPIPE;
}

static void test_who_refuses_output_is_heard(void)
{
	struct code_value v;

	code_value_init(&v, NONCE);
	check_int(code_value_feed(&v, "a", 1, refuse, NULL), -EPIPE);
	check_int(code_value_feed(&v, "\0", 1, refuse, NULL), 0);
	check_int(code_value_end(&v, refuse, NULL), -EPIPE);
	code_value_done(&v);
}

static void without_memory(void)
{
	const struct str in = STR(MARK "text=1 json=9 repr=1\n.[\"a\",{}]r");
	struct code_value v;
	int r;

	code_value_init(&v, NONCE);
	r = code_value_feed(&v, in.p, in.n, refuse, NULL);
	if (r == 0)
		r = code_value_settle(&v);
	check_int(r, torture_failed ? -ENOMEM : 0);
	code_value_done(&v);
}

static void test_without_memory(void)
{
	torture(without_memory);
}

int main(void)
{
	run_test(test_every_row_in_pieces_of_any_size);
	run_test(test_what_is_too_long_is_cut);
	run_test(test_all_together_are_bounded);
	run_test(test_each_result_has_its_parts);
	run_test(test_a_call_begins_and_ends);
	run_test(test_who_refuses_output_is_heard);
	run_test(test_without_memory);
	return tap_done();
}
