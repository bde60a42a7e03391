/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/lines.h"
#include "base/buf.h"
#include "fs/fs.h"
#include "tap.h"
#include "torture.h"
#include <cloche/event.h>

#include <jansson.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE(text) text "\n"
#define INIT LINE("{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"i\",\"model\":\"m\"}")
#define SAY(s)                                                                                     \
	LINE("{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"" s  \
	     "\"}]}}")
#define RESULT(members) LINE("{\"type\":\"result\"," members "}")
#define COUNTS                                                                                     \
	"\"duration_ms\":40,\"num_turns\":3,\"total_cost_usd\":0.25,\"usage\":{\"input_tokens\":"  \
	"3,\"output_tokens\":5,\"cache_creation_input_tokens\":7,\"cache_read_input_tokens\":9,"   \
	"\"service_tier\":\"standard\"}"

static cloche_event *parse(struct str line)
{
	cloche_event *event = NULL;
	cloche_err err = CLOCHE_ERR_INIT;

	if (cloche_event_parse(line.p, line.n, &event, &err) < 0)
		tap_fail("%s", err.message);
	must(event);
	return event;
}

static void test_types(void)
{
	static const struct {
		const char *line, *name;
		enum cloche_event_type type;
	} rows[] = {
		{"{\"type\":\"system\"}", "system", CLOCHE_EVENT_SYSTEM},
		{"{\"type\":\"assistant\"}\r\n", "assistant", CLOCHE_EVENT_ASSISTANT},
		{" {\"type\":\"user\"}", "user", CLOCHE_EVENT_USER},
		{"{\"type\":\"result\"}", "result", CLOCHE_EVENT_RESULT},
		{"{\"type\":\"stream_event\"}", "stream_event", CLOCHE_EVENT_OTHER},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		cloche_event *e = parse(str_from(rows[i].line));

		check_int(e->type, rows[i].type);
		check_z(e->type_name, rows[i].name);
		check_z(e->subtype, "");
		check_z(e->session_id, "");
		check_z(e->parent_tool_use_id, "");
		check_z(e->text, "");
		check_z(e->tool_name, "");
		check(!e->is_error);
		cloche_event_free(e);
	}
	cloche_event_free(NULL);
}

static void test_an_assistant_speaks(void)
{
	static const char line[] =
		"{\"type\":\"assistant\",\"session_id\":\"s\",\"parent_tool_use_id\":\"p\","
		"\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"one\\u0000two\"},"
		"{\"type\":\"thinking\"},{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"Bash\","
		"\"input\":{\"command\":\"ls\"}},{\"type\":\"text\",\"text\":\"three\"},"
		"{\"type\":\"tool_use\",\"name\":\"Read\",\"input\":7}]}}";
	cloche_event *e = parse(str_from(line));
	cloche_event_block block;

	check_z(e->text, "one two\n\nthree");
	check_z(e->tool_name, "Bash");
	check_z(e->session_id, "s");
	check_z(e->parent_tool_use_id, "p");
	check(!e->result);
	must(cloche_event_block_at(e, 0, &block, NULL) == 1);
	check_int(block.type, CLOCHE_EVENT_BLOCK_TEXT);
	check_z(block.text, "one two");
	check_z(block.json, "");
	must(cloche_event_block_at(e, 1, &block, NULL) == 1);
	check_int(block.type, CLOCHE_EVENT_BLOCK_TOOL_USE);
	check_z(block.id, "t");
	check_z(block.tool_name, "Bash");
	check_z(block.json, "{\"command\":\"ls\"}");
	check_z(block.text, "");
	must(cloche_event_block_at(e, 3, &block, NULL) == 1);
	check_z(block.tool_name, "Read");
	check_z(block.json, "");
	check_int(cloche_event_block_at(e, 4, &block, NULL), 0);
	check(strstr(cloche_event_json(e), "\"parent_tool_use_id\":\"p\"") != NULL);
	check(cloche_event_json(e) == cloche_event_json(e));
	cloche_event_free(e);
}

static void test_a_tool_answers(void)
{
	cloche_event *e =
		parse(STR("{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\","
			  "\"tool_use_id\":\"t\",\"content\":\"no\",\"is_error\":true},{\"type\":"
			  "\"tool_result\",\"content\":[{\"type\":\"text\"}]}]}}"));
	cloche_event_block block;

	check(e->is_error);
	must(cloche_event_block_at(e, 0, &block, NULL) == 1);
	check_int(block.type, CLOCHE_EVENT_BLOCK_TOOL_RESULT);
	check_z(block.id, "t");
	check_z(block.text, "no");
	check_z(block.json, "\"no\"");
	check(block.is_error);
	must(cloche_event_block_at(e, 1, &block, NULL) == 1);
	check_z(block.text, "");
	check_z(block.json, "[{\"type\":\"text\"}]");
	check(!block.is_error);
	cloche_event_free(e);
}

static void check_result(const cloche_event_result *r)
{
	check_int(r->duration_ms, 40);
	check_int(r->num_turns, 3);
	check(r->total_cost_usd == 0.25);
	check_int(r->usage.input_tokens, 3);
	check_int(r->usage.output_tokens, 5);
	check_int(r->usage.cache_creation_input_tokens, 7);
	check_int(r->usage.cache_read_input_tokens, 9);
	check_z(r->usage.extra, "{\"service_tier\":\"standard\"}");
}

static void test_a_result(void)
{
	cloche_event *e = parse(
		STR(RESULT("\"session_id\":\"s\",\"is_error\":true,\"result\":\"no\"," COUNTS)));
	const cloche_event_result *r = e->result;

	must(r);
	check_result(r);
	check_z(r->session_id, "s");
	check(r->is_error && e->is_error);
	check_z(e->text, "no");
	cloche_event_free(e);
	e = parse(STR(RESULT("\"subtype\":\"error_max_turns\",\"errors\":[\"a\",\"b\"]")));
	r = e->result;
	must(r);
	check(r->is_error && r->session_id == NULL && r->duration_ms == 0);
	check_z(r->usage.extra, "{}");
	check_z(e->text, "a\nb");
	cloche_event_free(e);
	/* What is hostile counts as nothing. */
	e = parse(STR(RESULT("\"duration_ms\":-1,\"num_turns\":\"x\",\"total_cost_usd\":[],"
			     "\"usage\":{\"input_tokens\":-5,\"output_tokens\":1e300}")));
	r = e->result;
	must(r);
	check(r->duration_ms == 0 && r->num_turns == 0 && !(r->total_cost_usd > 0));
	check(r->usage.input_tokens == 0 && r->usage.output_tokens == 0);
	cloche_event_free(e);
}

static void test_what_is_no_event(void)
{
	static const char *const lines[] = {"", "  ", "x", "{", "[]", "null", "7", "\"type\"", "{}",
		"{\"type\":7}", "{\"type\":\"x\"}{}"};
	cloche_event *event = NULL;
	cloche_err err = CLOCHE_ERR_INIT;
	char *huge;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		check_int(cloche_event_parse(lines[i], strlen(lines[i]), &event, &err),
			-CLOCHE_E_PROTOCOL);
	check(err.message[0]);
	/* Too long, too many values, too deep. */
	huge = malloc(LINES_MAX_DEFAULT + 1);
	must(huge);
	memset(huge, ' ', LINES_MAX_DEFAULT + 1);
	check_int(cloche_event_parse(huge, LINES_MAX_DEFAULT + 1, &event, &err), -CLOCHE_E_LIMIT);
	memset(huge, '[', 100000);
	check_int(cloche_event_parse(huge, 100000, &event, &err), -CLOCHE_E_PROTOCOL);
	memcpy(huge, "{\"type\":[", 9);
	memset(huge + 9, ',', 1 << 20);
	check_int(cloche_event_parse(huge, 1 << 20, &event, &err), -CLOCHE_E_PROTOCOL);
	free(huge);
	check(!event);
}

static void count_event(cloche_event *event, void *user)
{
	check(event->type_name[0] != '\0');
	++*(unsigned *)user;
}

/* However it is cut into pieces. */
static cloche_event_stream *read_in_pieces(const char *text, size_t piece, unsigned *seen)
{
	cloche_event_stream *stream = cloche_event_stream_new(count_event, seen);
	size_t n = strlen(text);

	must(stream);
	for (size_t i = 0; i < n; i += piece)
		must(cloche_event_stream_feed(stream, text + i, MIN(piece, n - i), NULL) == 0);
	must(cloche_event_stream_end(stream, NULL) == 0);
	return stream;
}

static void test_a_sequence(void)
{
	static const char text[] = INIT "\n\nno event\n[1]\n" SAY("first") SAY(
		"last") "{\"type\":\"result\",\"session_id\":\"r\",\"is_error\":false," COUNTS "}";

	for (size_t piece = 1; piece < sizeof(text); piece += 7) {
		unsigned seen = 0;
		cloche_event_stream *stream = read_in_pieces(text, piece, &seen);
		const cloche_event_summary *all = cloche_event_stream_summary(stream);
		const cloche_event_result *r = all->result;

		check_int(all->events, 4);
		check_int(all->skipped, 2);
		check_int(seen, 4);
		must(r);
		check_result(r);
		check(!r->is_error);
		check_z(r->session_id, "r");
		check_z(all->session_id, "r");
		check_z(all->response, "last");
		cloche_event_stream_free(stream);
	}
	cloche_event_stream_free(NULL);
}

static void test_session_id_without_a_result(void)
{
	unsigned seen = 0;
	cloche_event_stream *stream = read_in_pieces(INIT, 100, &seen);

	check_z(cloche_event_stream_summary(stream)->session_id, "i");
	check(!cloche_event_stream_summary(stream)->result);
	/* A result that names none leaves it; one that does is first. */
	must(cloche_event_stream_feed(stream, STR(RESULT("\"session_id\":\"\"")).p,
		     strlen(RESULT("\"session_id\":\"\"")), NULL) == 0);
	must(cloche_event_stream_summary(stream)->result);
	check_z(cloche_event_stream_summary(stream)->result->session_id, "i");
	cloche_event_stream_free(stream);
	stream = read_in_pieces("", 1, &seen);
	check(cloche_event_stream_summary(stream)->session_id == NULL);
	check(cloche_event_stream_summary(stream)->response[0] != '\0');
	cloche_event_stream_free(stream);
}

/* A process that never writes a newline, and then goes on as if nothing were. */
static void test_a_line_without_end(void)
{
	cloche_event_stream *stream = cloche_event_stream_new(NULL, NULL);
	char *piece = malloc(1 << 20);

	must(stream && piece);
	memset(piece, 'x', 1 << 20);
	for (int i = 0; i < 40; i++)
		must(cloche_event_stream_feed(stream, piece, 1 << 20, NULL) == 0);
	must(cloche_event_stream_feed(
		     stream, "\n" SAY("still here"), strlen("\n" SAY("still here")), NULL) == 0);
	check_int(cloche_event_stream_summary(stream)->skipped, 1);
	check_z(cloche_event_stream_summary(stream)->response, "still here");
	cloche_event_stream_free(stream);
	free(piece);
}

static void test_a_recorded_file(void)
{
	const char *shared = getenv("CLOCHE_SHARED");
	cloche_event_stream *stream = cloche_event_stream_new(NULL, NULL);
	cloche_err err = CLOCHE_ERR_INIT;
	const cloche_event_result *r;
	char path[512];

	must(stream);
	check_int(cloche_event_stream_feed_file(stream, "/nonexistent/x", &err), -CLOCHE_E_SYSTEM);
	check_int(cloche_event_stream_feed_file(stream, "/", &err), -CLOCHE_E_SYSTEM);
	snprintf(path, sizeof(path), "%s/data/claude/claude-stream.jsonl",
		shared ? shared : SOURCE_DIR "/../shared");
	if (access(path, R_OK) < 0) {
		tap_skip("the recorded transcripts are not there (CLOCHE_SHARED)");
		cloche_event_stream_free(stream);
		return;
	}
	must(cloche_event_stream_feed_file(stream, path, &err) == 0);
	check_int(cloche_event_stream_summary(stream)->events, 6);
	check_int(cloche_event_stream_summary(stream)->skipped, 0);
	r = cloche_event_stream_summary(stream)->result;
	must(r);
	check_z(r->session_id, "0e5a3761-da72-49aa-8eec-0b8cefa35d95");
	check_int(r->num_turns, 2);
	check(r->total_cost_usd > 0.18650 && r->total_cost_usd < 0.18652);
	check(r->usage.output_tokens > 0 && strstr(r->usage.extra, "service_tier") != NULL);
	cloche_event_stream_free(stream);
}

/* --- every allocation fails once --- */

/* See agent/test-torture.c. */
static void *json_malloc(size_t n)
{
	bool buffer = n >= 32 && (n & (n - 1)) == 0;

	return buffer ? __real_malloc(n) : malloc(n);
}

static bool went_wrong(int r)
{
	if (r < 0)
		check_int(r, -CLOCHE_E_NO_MEMORY);
	if (!torture_failed)
		check(r >= 0);
	return r < 0;
}

static void one_event(void)
{
	static const char line[] = SAY("cut \\ud83d") RESULT("\"result\":\"x\"," COUNTS);
	cloche_event *event = NULL;
	cloche_event_block block;
	cloche_err err = CLOCHE_ERR_INIT;

	if (!went_wrong(cloche_event_parse(line, strlen(SAY("cut \\ud83d")), &event, &err)) &&
		!went_wrong(cloche_event_block_at(event, 0, &block, &err)))
		check(cloche_event_json(event) || torture_failed);
	cloche_event_free(event);
}

static void a_stream(void)
{
	static const char text[] = INIT SAY("a") RESULT("\"result\":\"x\"," COUNTS);
	unsigned seen = 0;
	cloche_event_stream *stream = cloche_event_stream_new(count_event, &seen);
	cloche_err err = CLOCHE_ERR_INIT;
	const cloche_event_summary *all;

	check(stream || torture_failed);
	if (!stream)
		return;
	if (!went_wrong(cloche_event_stream_feed(stream, text, strlen(text), &err))) {
		all = cloche_event_stream_summary(stream);
		check(all || torture_failed);
		if (all)
			check_result(all->result);
	}
	cloche_event_stream_free(stream);
}

static void test_lack_of_memory(void)
{
	json_set_alloc_funcs(json_malloc, free);
	torture(one_event);
	torture(a_stream);
}

int main(void)
{
	run_test(test_types);
	run_test(test_an_assistant_speaks);
	run_test(test_a_tool_answers);
	run_test(test_a_result);
	run_test(test_what_is_no_event);
	run_test(test_a_sequence);
	run_test(test_session_id_without_a_result);
	run_test(test_a_line_without_end);
	run_test(test_a_recorded_file);
	run_test(test_lack_of_memory);
	return tap_done();
}
