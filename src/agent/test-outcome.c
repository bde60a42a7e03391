/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/outcome.h"
#include "tap.h"

static const char *const no_result = "{\"type\":\"system\",\"subtype\":\"init\"}";

#define RESULT(members) "{\"type\":\"result\"," members "}"
#define GOOD RESULT("\"subtype\":\"success\",\"is_error\":false,\"result\":\"done\"")
#define API(status)                                                                                \
	RESULT("\"subtype\":\"success\",\"is_error\":true,\"api_error_status\":" #status           \
	       ",\"result\":\"x\"")
#define ERROR_TEXT(text) RESULT("\"subtype\":\"success\",\"is_error\":true,\"result\":\"" text "\"")

/* One row of a table: how it ended, the last event, a raw line on stdout and one on stderr. */
struct row {
	const char *name;
	struct agent_ending ending;
	const char *event, *out, *diag;
	const char *outcome, *detail;
};

static void check_row(const struct row *row)
{
	_cleanup_(agent_transcript_donep) struct agent_transcript t;
	_cleanup_(agent_event_freep) struct agent_event *e = NULL;
	struct agent_markers m = {.api_error_4 = false};
	enum agent_detail detail = AGENT_DETAIL_CANCELLED;
	const char *got;

	must(agent_transcript_init(&t, AGENT_TRANSCRIPT_MAX, NULL) == 0);
	must(agent_event_parse(str_from(row->event), &e, NULL) == 0);
	must(agent_transcript_add(&t, e, NULL) == 0);
	agent_markers_scan(&m, str_from(row->event), false);
	agent_markers_scan(&m, str_from(row->out), false);
	agent_markers_scan(&m, str_from(row->diag), true);
	got = agent_outcome_name(agent_outcome_classify(&row->ending, &t, &m, &detail));
	if (strcmp(got, row->outcome) != 0)
		tap_fail("%s: got %s, want %s", row->name, got, row->outcome);
	check_z(agent_detail_name(detail), row->detail);
	check_z(agent_outcome_name(agent_outcome_classify(&row->ending, &t, &m, NULL)),
		row->outcome);
}

#define LONG_LINE "Prompt is too long"
#define API_LINE "API Error: 400 {\"type\":\"error\"}"
#define CODE(n)                                                                                    \
	{                                                                                          \
		.exit_code = (n)                                                                   \
	}
#define TIMED                                                                                      \
	{                                                                                          \
		.exit_code = 143, .timed_out = true                                                \
	}
#define STOPPED                                                                                    \
	{                                                                                          \
		.exit_code = 143, .cancelled = true                                                \
	}
#define OOM(n)                                                                                     \
	{                                                                                          \
		.exit_code = (n), .oom_killed = true                                               \
	}

static void test_how_the_process_ended(void)
{
	static const struct row rows[] = {
		{"1", TIMED, no_result, "", "", "timeout", NULL},
		{"1 result", TIMED, GOOD, "", "", "timeout", NULL},
		{"1 markers", TIMED, no_result, LONG_LINE, API_LINE, "timeout", NULL},
		{"1 exit 0", {.timed_out = true}, GOOD, "", "", "timeout", NULL},
		{"2", STOPPED, no_result, "", "", "container_failed", "cancelled"},
		{"2 markers", STOPPED, no_result, LONG_LINE, "", "container_failed", "cancelled"},
		{"2 killed after a good result", STOPPED, GOOD, "", "", "container_failed",
			"cancelled"},
		{"2 no result", {.cancelled = true}, no_result, "", "", "container_failed",
			"cancelled"},
		{"2 too late", {.cancelled = true}, GOOD, "", "", "success", NULL},
		{"3", OOM(137), no_result, "", "", "container_failed", "out_of_memory"},
		{"3 markers", OOM(137), no_result, LONG_LINE, API_LINE, "container_failed",
			"out_of_memory"},
		{"6", OOM(137), ERROR_TEXT("x"), "", "", "container_failed", "out_of_memory"},
		{"6 after a good result", OOM(137), GOOD, "", "", "container_failed",
			"out_of_memory"},
		{"a child was killed, the agent went on", OOM(0), GOOD, "", "", "success", NULL},
		{"4 before 6", OOM(1), ERROR_TEXT(LONG_LINE), "", "", "prompt_too_long", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_row(&rows[i]);
}

static void test_structured_result(void)
{
	static const struct row rows[] = {
		{"4", CODE(1), ERROR_TEXT(LONG_LINE), "", "", "prompt_too_long", NULL},
		{"4 more", CODE(1), ERROR_TEXT(LONG_LINE " · 210000 tokens"), "", "",
			"prompt_too_long", NULL},
		{"4 exit 0", CODE(0), ERROR_TEXT(LONG_LINE), "", "", "prompt_too_long", NULL},
		{"4 quoted", CODE(1), ERROR_TEXT("it said: " LONG_LINE), "", "", "container_failed",
			NULL},
		{"5", CODE(1), API(400), "", "", "session_corrupted", NULL},
		{"5 exit 0", CODE(0), API(400), "", "", "session_corrupted", NULL},
		{"5 413", CODE(1), API(413), "", "", "session_corrupted", NULL},
		{"5 422", CODE(1), API(422), "", "", "session_corrupted", NULL},
		{"5 text", CODE(1), ERROR_TEXT("API Error: 400 bad"), "", "", "session_corrupted",
			NULL},
		{"5 status before text", CODE(1),
			RESULT("\"is_error\":true,\"api_error_status\":529,\"result\":\"API Error: "
			       "400\""),
			"", "", "container_failed", NULL},
		{"5 lost", CODE(1),
			RESULT("\"subtype\":\"error_during_execution\",\"is_error\":true,"
			       "\"errors\":[\"No conversation found with session ID: x\"]"),
			"", "", "session_corrupted", NULL},
		{"7 401", CODE(1), API(401), "", "", "container_failed", NULL},
		{"7 402", CODE(1), API(402), "", "", "container_failed", NULL},
		{"7 403", CODE(1), API(403), "", "", "container_failed", NULL},
		{"7 404", CODE(1), API(404), "", "", "container_failed", NULL},
		{"7 408", CODE(1), API(408), "", "", "container_failed", NULL},
		{"7 429", CODE(1), API(429), "", "", "container_failed", NULL},
		{"7 500", CODE(1), API(500), "", "", "container_failed", NULL},
		{"7 529", CODE(1), API(529), "", "", "container_failed", NULL},
		{"7 exit 0", CODE(0), API(529), "", "", "container_failed", NULL},
		{"7 no key", CODE(1), ERROR_TEXT("Not logged in"), "", "", "container_failed",
			NULL},
		{"7 no number", CODE(1), ERROR_TEXT("API Error: 4"), "", "", "container_failed",
			NULL},
		{"7 quoted", CODE(1), ERROR_TEXT("I saw API Error: 404 there"), "", "",
			"container_failed", NULL},
		{"7 subtype", CODE(1), RESULT("\"subtype\":\"error_max_turns\",\"is_error\":false"),
			"", "", "container_failed", NULL},
		{"7 subtype exit 0", CODE(0), RESULT("\"subtype\":\"error_max_turns\""), "", "",
			"container_failed", NULL},
		{"7 markers do not count", CODE(1), API(529), LONG_LINE, API_LINE,
			"container_failed", NULL},
		{"8", CODE(0), GOOD, "", "", "success", NULL},
		{"8 quoted", CODE(0), RESULT("\"result\":\"it was API Error: 404\""), API_LINE,
			LONG_LINE, "success", NULL},
		{"9", CODE(1), GOOD, "", "", "container_failed", NULL},
		{"9 quoted", CODE(1),
			RESULT("\"subtype\":\"success\",\"result\":\"API Error: 404 it said\""),
			API_LINE, "", "container_failed", NULL},
		{"9 by is_error alone", CODE(1),
			RESULT("\"is_error\":false,\"result\":\"" LONG_LINE "\""), "", "",
			"container_failed", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_row(&rows[i]);
}

static void test_markers_without_a_result(void)
{
	static const struct row rows[] = {
		{"10", CODE(0), no_result, "", "", "success", NULL},
		{"10 markers", CODE(0), no_result, LONG_LINE, API_LINE, "success", NULL},
		{"11", CODE(1), no_result, LONG_LINE, "", "prompt_too_long", NULL},
		{"11 inside", CODE(1), no_result, "{\"error\":\"" LONG_LINE "\"}", "",
			"prompt_too_long", NULL},
		{"11 before 12", CODE(1), no_result, LONG_LINE, API_LINE, "prompt_too_long", NULL},
		{"11 not on stderr", CODE(1), no_result, "", LONG_LINE, "container_failed", NULL},
		{"12 stderr", CODE(1), no_result, "", API_LINE, "session_corrupted", NULL},
		{"12 stdout", CODE(2), no_result, API_LINE, "", "session_corrupted", NULL},
		{"12 429", CODE(1), no_result, "API Error: 429", "", "session_corrupted", NULL},
		{"3 no verdict", OOM(137), RESULT("\"result\":\"" LONG_LINE "\""), "", "",
			"container_failed", "out_of_memory"},
		{"8 no verdict", CODE(0), RESULT("\"result\":\"" LONG_LINE "\""), API_LINE, "",
			"success", NULL},
		{"11 no verdict", CODE(1), RESULT("\"result\":\"Error: " LONG_LINE " for it\""), "",
			"", "prompt_too_long", NULL},
		{"12 no verdict", CODE(1), RESULT("\"result\":\"API Error: 400 bad\""), "", "",
			"session_corrupted", NULL},
		{"12 no verdict, of no type", CODE(1),
			RESULT("\"is_error\":null,\"subtype\":5,\"result\":\"no\""), "", API_LINE,
			"session_corrupted", NULL},
		{"13 no verdict", CODE(1), RESULT("\"result\":\"no\""), "", "", "container_failed",
			NULL},
		{"13 5xx", CODE(1), no_result, "API Error: 529", "", "container_failed", NULL},
		{"13", CODE(1), no_result, "", "", "container_failed", NULL},
		{"13 signal", CODE(139), no_result, "", "", "container_failed", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_row(&rows[i]);
}

static void test_exit_statuses(void)
{
	check_int(agent_outcome_exit_status(AGENT_SUCCESS), 0);
	check_int(agent_outcome_exit_status(AGENT_TIMEOUT), 124);
	check_int(agent_outcome_exit_status(AGENT_PROMPT_TOO_LONG), 3);
	check_int(agent_outcome_exit_status(AGENT_SESSION_CORRUPTED), 4);
	check_int(agent_outcome_exit_status(AGENT_CONTAINER_FAILED), 1);
}

int main(void)
{
	run_test(test_how_the_process_ended);
	run_test(test_structured_result);
	run_test(test_markers_without_a_result);
	run_test(test_exit_statuses);
	return tap_done();
}
