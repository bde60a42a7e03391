/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/lines.h"
#include "agent/transcript.h"
#include "base/fd.h"
#include "tap.h"

#include <fcntl.h>
#include <unistd.h>

static int add_line(struct str line, void *data)
{
	_cleanup_(agent_event_freep) struct agent_event *e = NULL;

	if (agent_event_parse(line, &e, NULL) == 0)
		must(agent_transcript_add(data, e, NULL) == 0);
	return 0;
}

static void add(struct agent_transcript *t, const char *text)
{
	struct lines l = LINES_INIT(1 << 20);

	must(lines_feed(&l, str_from(text), add_line, t) == 0 && lines_end(&l, add_line, t) == 0);
	lines_done(&l);
}

#define TRANSCRIPT(name, text)                                                                     \
	_cleanup_(agent_transcript_donep) struct agent_transcript name;                            \
	must(agent_transcript_init(&name, AGENT_TRANSCRIPT_MAX, NULL) == 0);                       \
	add(&name, text)

#define SAID(s)                                                                                    \
	"{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"" s       \
	"\"}]}}\n"
#define RESULT(members) "{\"type\":\"result\"," members "}\n"

static void check_response(const char *text, const char *want)
{
	_cleanup_(freep) char *got = NULL;

	TRANSCRIPT(t, text);
	check_int(agent_transcript_response(&t, &got, NULL), 0);
	check_z(got, want);
}

static void check_summary(const char *text, const char *want)
{
	_cleanup_(freep) char *got = NULL;

	TRANSCRIPT(t, text);
	check_int(agent_transcript_error_summary(&t, &got, NULL), 0);
	check_z(got, want);
}

static void check_session(const char *text, const char *want)
{
	TRANSCRIPT(t, text);
	check_z(agent_transcript_session_id(&t), want);
}

#define INIT(id) "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"" id "\"}\n"

static void test_session_id(void)
{
	check_session("", NULL);
	check_session(INIT("a"), "a");
	check_session(INIT("a") INIT("b"), "b");
	check_session(INIT("a") RESULT("\"session_id\":\"r\""), "r");
	check_session(INIT("a") RESULT("\"session_id\":\"\""), "a");
	check_session(RESULT("\"session_id\":\"r1\"") RESULT("\"session_id\":\"r2\""), "r2");
	check_session(RESULT("\"session_id\":\"r1\"") RESULT("\"session_id\":5"), "r1");
	check_session("{\"type\":\"system\",\"subtype\":\"status\",\"session_id\":\"x\"}", NULL);
	check_session("{\"type\":\"assistant\",\"session_id\":\"x\"}", NULL);
}

static void test_response(void)
{
	check_response("", AGENT_NO_OUTPUT);
	check_response(SAID("one") SAID("two"), "two");
	check_response(SAID("one") RESULT("\"result\":\"final\""), "one");
	check_response(RESULT("\"result\":\"final\""), "final");
	check_response(RESULT("\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"obj\"},"
			      "{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"two\"}]}"),
		"obj\n\ntwo");
	check_response(RESULT("\"result\":[1]"), AGENT_NO_OUTPUT);
	/* two blocks of one event */
	check_response("{\"type\":\"assistant\",\"message\":{\"content\":["
		       "{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"tool_use\",\"name\":\"x\"},"
		       "{\"type\":\"text\",\"text\":\"b\"}]}}",
		"a\n\nb");
	/* a tool call after the last text is no text */
	check_response(SAID("said") "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":"
				    "\"tool_use\",\"id\":\"x\",\"name\":\"Bash\",\"input\":{}}]}}",
		"said");
	/* several results: all of them */
	check_response(SAID("x") RESULT("\"result\":\"r1\"") SAID("y") RESULT("\"result\":\"r2\""),
		"r1\n\nr2");
	check_response(SAID("x") RESULT("\"result\":\"r1\"") RESULT("\"result\":\"\""), "x");
}

static void test_long_answer_before_a_remark(void)
{
	check_response(SAID("12345678") SAID("ab"), "12345678\n\nab");
	check_response(SAID("1234567") SAID("ab"), "ab");
	/* from the latest such text to the end */
	check_response(
		SAID("abcdefgh") SAID("12345678") SAID("mid") SAID("ab"), "12345678\n\nmid\n\nab");
	/* among the last five only */
	check_response(SAID("12345678") SAID("m1") SAID("m2") SAID("m3") SAID("ab"),
		"12345678\n\nm1\n\nm2\n\nm3\n\nab");
	check_response(
		SAID("12345678") SAID("m0") SAID("m1") SAID("m2") SAID("m3") SAID("ab"), "ab");
	/* lengths are in characters: four of two bytes each are not eight */
	check_response(SAID("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9") SAID("ab"), "ab");
	check_response(SAID("1234") SAID("\xc3\xa9"), "1234\n\n\xc3\xa9");
}

static void test_error_summary(void)
{
	check_summary("", NULL);
	check_summary(RESULT("\"result\":\" API Error: 529 \""), "API Error: 529");
	check_summary(SAID(" a ") SAID("b\\nc"), "a\nb\nc");
	check_summary(SAID("a")
			      RESULT("\"result\":\"1\\n2\\n3\\n4\\n5\\n6\\n7\\n8\\n9\\n10\\n11\""),
		"2\n3\n4\n5\n6\n7\n8\n9\n10\n11");
	check_summary(RESULT("\"result\":\"first\"") RESULT("\"is_error\":true"), "first");
	check_summary(SAID("a") RESULT("\"errors\":[\"No conversation found\",1,\"x\"]"),
		"No conversation found\nx");
}

static void test_results_are_summed(void)
{
	TRANSCRIPT(t,
		RESULT("\"duration_ms\":100,\"num_turns\":2,\"total_cost_usd\":0.5,"
		       "\"is_error\":true,\"subtype\":\"success\",\"api_error_status\":429,"
		       "\"usage\":{\"input_tokens\":1}")
			RESULT("\"duration_ms\":50,\"num_turns\":3,\"total_cost_usd\":0.75,"
			       "\"is_error\":false,\"subtype\":\"success\",\"api_error_status\":"
			       "null,"
			       "\"usage\":{\"input_tokens\":7,\"service_tier\":\"standard\"}"));
	_cleanup_json_ json_t *usage = NULL;

	check_int(t.results, 2);
	check_int(t.duration_ms, 150);
	check_int(t.num_turns, 5);
	check(t.total_cost_usd == 0.75);
	check(!t.is_error);
	check_int(t.api_error_status, 0);
	usage = agent_usage(t.usage);
	must(usage);
	check_int(json_integer_value(json_object_get(usage, "input_tokens")), 7);
	check_int(json_integer_value(json_object_get(usage, "output_tokens")), 0);
	check_str(json_str_at(usage, "service_tier"), "standard");
	check_int(json_object_size(usage), 5);
}

static void test_wrong_numbers_count_as_zero(void)
{
	static const char *const bad[] = {
		"\"12\"", "-5", "null", "true", "[1]", "{}", "-0.5", "1e300"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_(buf_donep) struct buf b = BUF_INIT(1000);

		must(buf_printf(&b,
			     RESULT("\"duration_ms\":%s,\"num_turns\":%s,\"total_cost_usd\":%s,"
				    "\"api_error_status\":%s,\"is_error\":\"no\",\"usage\":3"),
			     bad[i], bad[i], i == 7 ? "\"x\"" : bad[i], bad[i]) == 0 &&
			buf_cstr(&b));
		TRANSCRIPT(t, buf_cstr(&b));
		check_int(t.results, 1);
		check_int(t.duration_ms, 0);
		check_int(t.num_turns, 0);
		check(!(t.total_cost_usd < 0) && !(t.total_cost_usd > 0));
		check_int(t.api_error_status, 0);
		check(!t.is_error);
		check(t.usage == NULL);
	}
}

static void test_sums_do_not_overflow(void)
{
	TRANSCRIPT(t,
		RESULT("\"duration_ms\":9223372036854775807,\"num_turns\":9223372036854775807")
			RESULT("\"duration_ms\":9223372036854775807,\"num_turns\":1"));
	check_int(t.duration_ms, INT64_MAX);
	check_int(t.num_turns, INT64_MAX);
}

static void test_tools_are_counted(void)
{
	TRANSCRIPT(t, "{\"type\":\"assistant\",\"message\":{\"content\":["
		      "{\"type\":\"tool_use\",\"name\":\"WebSearch\"},{\"type\":\"tool_use\","
		      "\"name\":\"WebFetch\"},"
		      "{\"type\":\"tool_use\",\"name\":\"WebFetch\"},{\"type\":\"tool_use\","
		      "\"name\":\"Bash\"}]}}\n"
		      "{\"type\":\"user\",\"message\":{\"content\":["
		      "{\"type\":\"tool_result\",\"is_error\":true},{\"type\":\"tool_result\"}]}}\n"
		      "{\"type\":\"system\",\"subtype\":\"api_retry\"}\n");
	check_int(t.web_search_count, 1);
	check_int(t.web_fetch_count, 2);
	check_int(t.tool_errors, 1);
	check_int(json_array_size(t.events), 3);
}

static void test_memory_is_bounded(void)
{
	_cleanup_(agent_transcript_donep) struct agent_transcript t;

	must(agent_transcript_init(&t, 2000, NULL) == 0);
	for (int i = 0; i < 1000; i++)
		add(&t, SAID("again and again"));
	add(&t, SAID("the end")
			RESULT("\"result\":\"the end\",\"session_id\":\"s\",\"num_turns\":9"));
	check(json_array_size(t.events) < 10);
	check(t.kept <= 2000);
	check_int(t.said.n, AGENT_TEXTS_KEPT);
	check_z(t.said.v[t.said.n - 1].text, "the end"); /* what matters still arrives */
	check_z(agent_transcript_session_id(&t), "s");
	check_int(t.num_turns, 9);
}

/* Transcripts of real runs, if they are at hand. */
static void check_recorded(
	const char *name, const char *session, unsigned turns, double cost, size_t events)
{
	const char *shared = getenv("CLOCHE_SHARED");
	_cleanup_(buf_donep) struct buf text = BUF_INIT(1 << 20);
	char path[512];

	snprintf(path, sizeof(path), "%s/data/claude/%s", shared ? shared : SOURCE_DIR "/../shared",
		name);
	if (access(path, R_OK) < 0) {
		tap_skip("the recorded transcripts are not there (CLOCHE_SHARED)");
		return;
	}
	must(fd_read_file(AT_FDCWD, path, &text, NULL) == 0 && buf_cstr(&text));
	TRANSCRIPT(t, buf_cstr(&text));
	check_z(agent_transcript_session_id(&t), session);
	check_int(t.num_turns, turns);
	check(t.total_cost_usd > cost - 1e-9 && t.total_cost_usd < cost + 1e-9);
	check_int(json_array_size(t.events), events);
	check_z(t.subtype, "success");
	check(!t.is_error);
}

static void test_recorded_runs(void)
{
	check_recorded(
		"claude-stream.jsonl", "0e5a3761-da72-49aa-8eec-0b8cefa35d95", 2, 0.18651, 6);
	check_recorded(
		"claude-resume.jsonl", "bba1b56b-952f-4c83-bb49-2654ef412ae4", 2, 0.173955, 6);
	check_recorded("claude-stream-partial.jsonl", "f0e00e7c-384a-4f42-86f3-cb921e63f7cf", 2,
		0.19092, 28);
}

int main(void)
{
	run_test(test_session_id);
	run_test(test_response);
	run_test(test_long_answer_before_a_remark);
	run_test(test_error_summary);
	run_test(test_results_are_summed);
	run_test(test_wrong_numbers_count_as_zero);
	run_test(test_sums_do_not_overflow);
	run_test(test_tools_are_counted);
	run_test(test_memory_is_bounded);
	run_test(test_recorded_runs);
	return tap_done();
}
