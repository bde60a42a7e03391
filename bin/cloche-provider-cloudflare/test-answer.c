/* SPDX-License-Identifier: Apache-2.0 */
#include "answer.h"
#include "tap.h"

static char said[ANSWER_TEXT_MAX + 1];

static void what_is_a_success(void)
{
	check(answer_read(STR("{\"success\":true}"), said) && !said[0]);
	check(answer_read(STR("{\"success\":true,\"rooms\":3}"), said));
	check(!answer_read(STR("{\"success\":false}"), said));
	check(!answer_read(STR("{\"success\":\"true\"}"), said));
	check(!answer_read(STR("{\"success\":1}"), said));
	check(!answer_read(STR("[true]"), said) && !answer_read(STR("true"), said));
	check(!answer_read(STR(""), said) && !answer_read(STR("<html>"), said));
	check(!answer_read(STR("{\"success\":true} x"), said));
}

static void what_is_said_is_shown_as_ascii(void)
{
	static char text[ANSWER_MAX + 100];

	check(!answer_read(STR("{\"error\":\"a\\u001b[2J\\u00e9b\"}"), said));
	check_z(said, "a?[2J??b");
	check(!answer_read(STR("{\"error\":[1]}"), said));
	check_z(said, "");
	memset(text, 'x', sizeof(text));
	memcpy(text, "{\"error\":\"", 10);
	memcpy(text + 1000, "\"}", 2);
	check(!answer_read(str_make(text, 1002), said));
	check_int(strlen(said), ANSWER_TEXT_MAX);
	memset(text, ' ', sizeof(text));
	memcpy(text, "{\"success\":true}", 16);
	check(answer_read(str_make(text, ANSWER_MAX), said));
	check(!answer_read(str_make(text, sizeof(text)), said));
}

int main(void)
{
	run_test(what_is_a_success);
	run_test(what_is_said_is_shown_as_ascii);
	return tap_done();
}
