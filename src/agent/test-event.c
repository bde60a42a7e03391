/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/event.h"
#include "tap.h"

static struct agent_event *parse(struct str line)
{
	struct agent_event *e = NULL;
	int r = agent_event_parse(line, &e, NULL);

	return r == 0 ? e : NULL;
}

#define EVENT(name, line) _cleanup_(agent_event_freep) struct agent_event *name = parse(STR(line))

static void test_types(void)
{
	static const struct {
		const char *line;
		enum agent_event_type type;
	} rows[] = {
		{"{\"type\":\"system\",\"subtype\":\"init\"}", AGENT_EVENT_SYSTEM},
		{"{\"type\":\"assistant\"}", AGENT_EVENT_ASSISTANT},
		{"{\"type\":\"user\"}", AGENT_EVENT_USER},
		{"{\"subtype\":\"success\",\"type\":\"result\"}", AGENT_EVENT_RESULT},
		{"  {\"type\":\"stream_event\",\"event\":{\"x\":1}}\r", AGENT_EVENT_UNKNOWN},
		{"{\"type\":\"\"}", AGENT_EVENT_UNKNOWN},
		{"{\"type\":\"System\"}", AGENT_EVENT_UNKNOWN},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(agent_event_freep) struct agent_event *e = parse(str_from(rows[i].line));

		must(e);
		check_int(e->type, rows[i].type);
	}
}

static void test_what_is_no_event(void)
{
	static const char *const lines[] = {"", "  \t ", "hello", "{", "[]", "null", "17",
		"\"type\"", "{}", "{\"type\":1}", "{\"type\":null}", "{\"type\":[\"system\"]}",
		"{\"type\":\"system\"} x", "{\"type\":\"system\"}{\"type\":\"user\"}",
		"{\"type\":\"x\",\"v\":1e999}", "{'type':'system'}"};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct agent_event *e = NULL;

		check_int(agent_event_parse(str_from(lines[i]), &e, NULL), 1);
		check(e == NULL);
	}
}

static void test_unknown_is_kept(void)
{
	EVENT(e, "{\"type\":\"brand_new\",\"session_id\":\"s\",\"data\":{\"a\":[1,2.5,null]}}");

	must(e);
	check_str(e->type_name, "brand_new");
	check_str(e->session_id, "s");
	check(json_real_value(json_array_get(
		      json_object_get(json_object_get(e->raw, "data"), "a"), 1)) == 2.5);
}

static void test_blocks(void)
{
	EVENT(e, "{\"type\":\"assistant\",\"parent_tool_use_id\":\"p\",\"message\":{\"content\":["
		 "{\"type\":\"text\",\"text\":\"hi\"},"
		 "{\"type\":\"thinking\",\"thinking\":\"…\"},"
		 "17,null,\"text\",[],"
		 "{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"Bash\",\"input\":{\"command\":"
		 "\"ls\"}},"
		 "{\"type\":\"tool_result\",\"tool_use_id\":\"t0\",\"content\":\"out\",\"is_"
		 "error\":1},"
		 "{\"type\":\"tool_result\",\"tool_use_id\":\"t2\",\"content\":[{}],\"is_error\":0}"
		 "]}}");

	must(e);
	check_str(e->parent_tool_use_id, "p");
	must(e->blocks_n == 4);
	check_int(e->blocks[0].type, AGENT_BLOCK_TEXT);
	check_str(e->blocks[0].text, "hi");
	check_int(e->blocks[1].type, AGENT_BLOCK_TOOL_USE);
	check_str(e->blocks[1].id, "t1");
	check_str(e->blocks[1].name, "Bash");
	check_str(json_str_at(e->blocks[1].input, "command"), "ls");
	check_int(e->blocks[2].type, AGENT_BLOCK_TOOL_RESULT);
	check_str(e->blocks[2].id, "t0");
	check_str(json_str(e->blocks[2].content), "out");
	check(e->blocks[2].is_error);
	check(json_is_array(e->blocks[3].content));
	check(!e->blocks[3].is_error);
}

static void test_wrong_types_read_as_empty(void)
{
	EVENT(a,
		"{\"type\":\"assistant\",\"subtype\":1,\"session_id\":{},\"parent_tool_use_id\":[],"
		"\"message\":{\"content\":[{\"type\":\"text\",\"text\":5},"
		"{\"type\":\"tool_use\",\"id\":1,\"name\":null,\"input\":\"x\"},"
		"{\"type\":\"tool_result\",\"tool_use_id\":{},\"content\":7},{\"type\":9}]}}");
	EVENT(b, "{\"type\":\"user\",\"message\":\"text\"}");
	EVENT(c, "{\"type\":\"user\",\"message\":{\"content\":\"text\"}}");
	EVENT(d, "{\"type\":\"result\",\"message\":{\"content\":[{\"type\":\"text\"}]}}");

	must(a && b && c && d);
	check_int(a->subtype.n + a->session_id.n + a->parent_tool_use_id.n, 0);
	must(a->blocks_n == 3);
	check_int(a->blocks[0].text.n, 0);
	check_int(a->blocks[1].id.n + a->blocks[1].name.n, 0);
	check(a->blocks[1].input == NULL);
	check(a->blocks[2].content == NULL && !a->blocks[2].is_error);
	check_int(b->blocks_n + c->blocks_n, 0);
	check_int(d->blocks_n, 0); /* only messages have blocks */
}

/* Text that a strict parser refuses but real agents write. */
static void test_mended_text(void)
{
	static const struct {
		struct str in;
		const char *want;
	} rows[] = {
		{STR("a\\u0000b"), "a"},
		{STR("cut \\ud83d"), "cut \xef\xbf\xbd"},
		{STR("cut \\ud83dx"), "cut \xef\xbf\xbdx"},
		{STR("cut \\udE00!"), "cut \xef\xbf\xbd!"},
		{STR("\\ud83d\\ud83d\\ude00"), "\xef\xbf\xbd\xf0\x9f\x98\x80"},
		{STR("\\ud83d\\n"), "\xef\xbf\xbd\n"},
		{STR("pair \\ud83d\\ude00"), "pair \xf0\x9f\x98\x80"},
		{STR("not \\\\ud83d one"), "not \\ud83d one"},
		{STR("raw \xff\xfe bytes"), "raw \xef\xbf\xbd\xef\xbf\xbd bytes"},
		{STR("half \xe2\x82"), "half \xef\xbf\xbd\xef\xbf\xbd"},
		{STR("high \xed\xa0\xbd"), "high \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(buf_donep) struct buf line = BUF_INIT(1000);
		_cleanup_(agent_event_freep) struct agent_event *e = NULL;

		must(buf_add_str(&line, STR("{\"type\":\"x\",\"session_id\":\"")) == 0 &&
			buf_add_str(&line, rows[i].in) == 0 && buf_add_str(&line, STR("\"}")) == 0);
		e = parse(buf_str(&line));
		if (!e) {
			tap_fail("row %zu was not parsed", i);
			continue;
		}
		check_z(e->session_id.p, rows[i].want);
	}
}

static void test_numbers(void)
{
	EVENT(big, "{\"type\":\"x\",\"n\":123456789012345678901234567890,\"i\":7}");
	EVENT(digits, "{\"type\":\"x\",\"n\":-0.1e-400}");

	must(big);
	check(json_number_value(json_object_get(big->raw, "n")) > 1e29);
	check(digits == NULL || json_is_real(json_object_get(digits->raw, "n")));
}

static char *repeat(const char *unit, size_t n, const char *before, const char *after)
{
	struct buf b = BUF_INIT(64 << 20);

	must(buf_add_str(&b, str_from(before)) == 0);
	for (size_t i = 0; i < n; i++)
		must(buf_add_str(&b, str_from(unit)) == 0);
	must(buf_add_str(&b, str_from(after)) == 0 && buf_cstr(&b));
	return b.mem;
}

static void test_bombs(void)
{
	_cleanup_(freep) char *deep = repeat("[", 3000000, "{\"type\":\"x\",\"a\":", "");
	_cleanup_(freep) char *wide = repeat("0,", 3000000, "{\"type\":\"x\",\"a\":[", "0]}");
	_cleanup_(freep) char *level = repeat("[", 5000, "{\"type\":\"x\",\"a\":", "");
	_cleanup_(freep) char *plain = repeat("a,[{:", 1000000, "{\"type\":\"x\",\"a\":\"", "\"}");
	struct agent_event *e = NULL;

	check_int(agent_event_parse(str_from(deep), &e, NULL), 1);
	check_int(agent_event_parse(str_from(wide), &e, NULL), 1);
	check_int(agent_event_parse(str_from(level), &e, NULL), 1);
	check_int(agent_event_parse(str_from(plain), &e, NULL), 0); /* one long string */
	must(e);
	check(e->size >= 5000000);
	agent_event_free(e);
}

static void test_from_json(void)
{
	_cleanup_json_ json_t *object = json_pack("{s:s,s:s}", "type", "system", "subtype", "init");
	_cleanup_json_ json_t *other = json_array();
	_cleanup_(agent_event_freep) struct agent_event *e = NULL;
	struct agent_event *none = NULL;

	must(agent_event_from_json(object, &e, NULL) == 0);
	check_str(e->subtype, "init");
	check_int(agent_event_from_json(other, &none, NULL), 1);
	check_int(agent_event_from_json(NULL, &none, NULL), 1);
}

int main(void)
{
	run_test(test_types);
	run_test(test_what_is_no_event);
	run_test(test_unknown_is_kept);
	run_test(test_blocks);
	run_test(test_wrong_types_read_as_empty);
	run_test(test_mended_text);
	run_test(test_numbers);
	run_test(test_bombs);
	run_test(test_from_json);
	return tap_done();
}
