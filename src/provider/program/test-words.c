/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/program/words.h"
#include "tap.h"

static void words_are_quoted(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(4096);

	check_int(words_add_line(&b, "mount", "a b", "", "back\\slash", NULL), 0);
	check_int(words_add_line(&b, "\n\xff\x7f", NULL), 0);
	check_int(words_add_line(&b, NULL), 0);
	check_str(buf_str(&b), "mount a\\0040b \\0000 back\\0134slash\n\\0012\\0377\\0177\n\n");
}

static void nothing_is_cut(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(8);

	check_int(words_add_line(&b, "1234567", NULL), 0);
	check(words_add_line(&b, "x", NULL) < 0);
}

/* Only connect may say it, which process.c looks at. */
static void a_room_may_be_gone(void)
{
	struct words_answer a;

	check(words_read_answer(STR("gone\nerror its node is lost\n"), &a));
	check(a.gone);
	check(words_read_answer(STR("gone away\nerror x\n"), &a));
	check(!a.gone);
}

static void answers_are_read(void)
{
	static const struct {
		const char *text, *error, *hint, *version;
		bool whole, ok, far;
		unsigned cannot;
	} rows[] = {
		{"ok\n", "", "", "", true, true, false, 0},
		{"ok", "", "", "", true, true, false, 0},
		{"version 4.3.1\nok\n", "", "", "4.3.1", true, true, false, 0},
		{"later and more\nok\n", "", "", "", true, true, false, 0},
		{"cannot memory: no\ncannot pids: no\nok\n", "", "", "", true, true, false, 2},
		{"hint do this\nerror it is broken\n", "it is broken", "do this", "", true, false,
			false, 0},
		{"error a\033[31m\tb\n", "a?[31m?b", "", "", true, false, false, 0},
		{"error\n", "", "", "", true, false, false, 0},
		{"", "", "", "", false, false, false, 0},
		{"okay\n", "", "", "", false, false, false, 0},
		{"errors\n", "", "", "", false, false, false, 0},
		{"ok\nmore\n", "", "", "", false, false, false, 0},
		{"error x\nok\n", "x", "", "", false, false, false, 0},
		{"far\n", "", "", "", true, false, true, 0},
		{"cannot pids: no\nfar\n", "", "", "", true, false, true, 1},
		{"far\nbytes of the stream", "", "", "", false, false, false, 0},
		{"farther\n", "", "", "", false, false, false, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct words_answer a;

		check_int(words_read_answer(str_from(rows[i].text), &a), rows[i].whole);
		check_int(a.ok, rows[i].ok);
		check_int(a.far, rows[i].far);
		check_z(a.error, rows[i].error);
		check_z(a.hint, rows[i].hint);
		check_z(a.version, rows[i].version);
		check_int((int)a.cannot_n, (int)rows[i].cannot);
	}
}

static void texts_are_bounded(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(WORDS_ANSWER_MAX);
	struct words_answer a;

	for (int i = 0; i < 100; i++)
		check_int(buf_printf(&b, "cannot %0500d\n", i), 0);
	check_int(buf_printf(&b, "error %0500d\n", 7), 0);
	check(words_read_answer(buf_str(&b), &a));
	check_int((int)a.cannot_n, WORDS_CANNOT_MAX);
	check_int((int)strlen(a.cannot[0]), WORDS_TEXT_MAX);
	check_int((int)strlen(a.error), WORDS_TEXT_MAX);
}

static void texts_are_cut_between_words(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(WORDS_ANSWER_MAX);
	struct words_answer a;

	check_int(buf_printf(&b, "error %0390d sentence ends\n", 7), 0);
	check(words_read_answer(buf_str(&b), &a));
	check_int((int)strlen(a.error), 390 + (int)strlen(" ..."));
	check_z(a.error + 390, " ...");
	buf_clear(&b);
	check_int(buf_printf(&b, "error %0391d sentence\n", 7), 0);
	check(words_read_answer(buf_str(&b), &a));
	check_z(a.error + 391, " sentence");
}

int main(void)
{
	run_test(words_are_quoted);
	run_test(nothing_is_cut);
	run_test(answers_are_read);
	run_test(a_room_may_be_gone);
	run_test(texts_are_bounded);
	run_test(texts_are_cut_between_words);
	return tap_done();
}
