/* SPDX-License-Identifier: Apache-2.0 */
#include "api/code_value.h"
#include "tap.h"
#include "torture.h"

#include <errno.h>
#include <stdio.h>

#define NONCE "0123456789abcdefghijklmnopqrstuv"
#define MARK "\0" NONCE

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
	{STR("a" MARK "1 1 0\n22"), STR("a"), STR("2"), STR("2"), STR("")},
	{STR(MARK "0 2 0\n\"\"z"), STR("z"), STR(""), STR("\"\""), STR("")},
	{STR(MARK "0 0 0\n"), STR(""), STR(""), STR(""), STR("")},
	{STR(MARK "1 0 2\nxyy"), STR(""), STR("x"), STR(""), STR("yy")},
	/* bytes of any kind */
	{STR(MARK "3 0 0\n\0\xff\n."), STR("."), STR("\0\xff\n"), STR(""), STR("")},
	/* what only begins like a mark */
	{STR("\0\0x\0"), STR("\0\0x\0"), STR_NULL, STR(""), STR("")},
	{STR("\0"
	     "012" MARK "1 0 0\na"),
		STR("\0"
		    "012"),
		STR("a"), STR(""), STR("")},
	{STR("\0"
	     "0123456789abcdefghijklmnopqrstuw"),
		STR("\0"
		    "0123456789abcdefghijklmnopqrstuw"),
		STR_NULL, STR(""), STR("")},
	/* the last one counts */
	{STR(MARK "1 0 0\na-" MARK "1 0 0\nb"), STR("-"), STR("b"), STR(""), STR("")},
	{STR(MARK "1 0 0\na" MARK "9 0 0\nb"), STR(""), STR_NULL, STR(""), STR("")},
	/* cut off */
	{STR("a" MARK), STR("a"), STR_NULL, STR(""), STR("")},
	{STR("a" MARK "1 1"), STR("a"), STR_NULL, STR(""), STR("")},
	{STR("a" MARK "2 1 0\nx"), STR("a"), STR_NULL, STR(""), STR("")},
	/* no such line */
	{STR(MARK "\nx"), STR("x"), STR_NULL, STR(""), STR("")},
	{STR(MARK "1\nx"), STR("x"), STR_NULL, STR(""), STR("")},
	{STR(MARK "1 1\nx"), STR("x"), STR_NULL, STR(""), STR("")},
	{STR(MARK "1 1 1 1\nx"), STR("x"), STR_NULL, STR(""), STR("")},
	{STR(MARK "-1 0 0\nx"), STR("x"), STR_NULL, STR(""), STR("")},
	{STR(MARK "1  0 0\nx"), STR("x"), STR_NULL, STR(""), STR("")},
	{STR(MARK "18446744073709551616 0 0\nx"), STR("x"), STR_NULL, STR(""), STR("")},
	{STR(MARK "18446744073709551615 0 0\nx"), STR(""), STR_NULL, STR(""), STR("")},
	{STR(MARK "00000000000000000000000000000000000000000000000000000000000000000\nx"),
		STR("\nx"), STR_NULL, STR(""), STR("")},
	/* JSON that is none, or none of ours */
	{STR(MARK "1 3 0\n.NaN"), STR(""), STR("."), STR(""), STR("")},
	{STR(MARK "1 3 0\n.1 2"), STR(""), STR("."), STR(""), STR("")},
	{STR(MARK "1 2 0\n.\"\xff"), STR(""), STR("."), STR(""), STR("")},
	{STR(MARK "1 8 0\n.\"\\ud800\""), STR(""), STR("."), STR(""), STR("")},
	{STR(MARK "1 20 0\n.99999999999999999999"), STR(""), STR("."), STR(""), STR("")},
	{STR(MARK "1 5 0\n.1e999"), STR(""), STR("."), STR(""), STR("")},
	{STR(MARK "1 8 0\n.[\"\xc3\xa9\",\n]"), STR(""), STR("."), STR(""), STR("")},
	{STR(MARK "1 9 0\n.[\"\xc3\xa9\",\n1]"), STR(""), STR("."), STR("[\"\\u00e9\", 1]"),
		STR("")},
	{STR(MARK "1 8 0\n.\"\\u0000\""), STR(""), STR("."), STR("\"\\u0000\""), STR("")},
	{STR(MARK "1 4 0\n.null"), STR(""), STR("."), STR("null"), STR("")},
};

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
				check_part(buf_str(&v.part[CODE_TEXT]), table[i].text, i, piece);
				check_part(buf_str(&v.part[CODE_JSON]), table[i].json, i, piece);
				check_part(buf_str(&v.part[CODE_REPR]), table[i].repr, i, piece);
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

	snprintf(head, sizeof(head), "%d 0 0\n", CODE_TEXT_MAX + 1);
	give_much(&v, &out, head, CODE_TEXT_MAX + 2);
	check(v.whole && v.cut[CODE_TEXT]);
	check_int(buf_len(&v.part[CODE_TEXT]), CODE_TEXT_MAX);
	check_str(buf_str(&out), " ");
	check(buf_cstr(&v.part[CODE_TEXT]) != NULL);
	code_value_done(&v);

	/* Half a document is none. */
	snprintf(head, sizeof(head), "0 %d 0\n1", CODE_JSON_MAX + 1);
	give_much(&v, &out, head, CODE_JSON_MAX);
	check(v.whole && v.cut[CODE_JSON] && !v.cut[CODE_TEXT]);
	check_int(buf_len(&v.part[CODE_JSON]), 0);
	code_value_done(&v);
	snprintf(head, sizeof(head), "0 %d 0\n1", CODE_JSON_MAX);
	give_much(&v, &out, head, CODE_JSON_MAX - 1);
	check_str(buf_str(&v.part[CODE_JSON]), "1");
	code_value_done(&v);
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
	const struct str in = STR(MARK "1 9 1\n.[\"a\",{}]r");
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
	run_test(test_who_refuses_output_is_heard);
	run_test(test_without_memory);
	return tap_done();
}
