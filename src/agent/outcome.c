/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/outcome.h"

/* The rows named here are those of the table in the header. */

#define TOO_LONG STR("Prompt is too long")
#define API_ERROR STR("API Error: ")

void agent_markers_scan(struct agent_markers *m, struct str line, bool is_stderr)
{
	if (!is_stderr && !m->prompt_too_long)
		m->prompt_too_long = str_find(line, TOO_LONG) < line.n;
	if (!m->api_error_4)
		m->api_error_4 = str_find(line, STR("API Error: 4")) < line.n;
}

/* Whether the text of an error result begins with TOO_LONG. A quotation further on means
 * nothing. */
static bool is_too_long(const struct agent_transcript *t)
{
	return str_starts(str_from(t->result), TOO_LONG);
}

static int api_status(const struct agent_transcript *t)
{
	struct str s = str_from(t->result);
	int status = 0;

	if (t->api_error_status)
		return t->api_error_status;
	if (!str_starts(s, API_ERROR))
		return 0;
	s = str_from_index(s, API_ERROR.n);
	for (size_t i = 0; i < 3; i++) {
		if (i >= s.n || s.p[i] < '0' || s.p[i] > '9')
			return 0;
		status = status * 10 + (s.p[i] - '0');
	}
	return status;
}

static bool is_about_the_conversation(int status)
{
	switch (status) {
	case 401:
	case 402:
	case 403:
	case 404:
	case 408:
	case 429:
		return false;
	default:
		return status >= 400 && status <= 499;
	}
}

/* Whether the agent does not have the session that it should continue. */
static bool is_session_lost(const struct agent_transcript *t)
{
	return str_starts(str_from(t->errors), AGENT_SESSION_LOST);
}

/* Rows 4 to 9. */
static enum agent_outcome with_result(const struct agent_ending *ending,
	const struct agent_transcript *t, enum agent_detail *detail)
{
	bool error = agent_transcript_is_error(t);

	if (error && is_too_long(t))
		return AGENT_PROMPT_TOO_LONG;
	if (error && (is_about_the_conversation(api_status(t)) || is_session_lost(t)))
		return AGENT_SESSION_CORRUPTED;
	if (!error && ending->exit_code == 0)
		return AGENT_SUCCESS;
	if (ending->oom_killed && ending->exit_code != 0)
		*detail = AGENT_DETAIL_OUT_OF_MEMORY;
	return AGENT_CONTAINER_FAILED;
}

/* Rows 10 to 13. */
static enum agent_outcome without_result(
	const struct agent_ending *ending, const struct agent_markers *m)
{
	if (ending->exit_code == 0)
		return AGENT_SUCCESS;
	if (m->prompt_too_long)
		return AGENT_PROMPT_TOO_LONG;
	return m->api_error_4 ? AGENT_SESSION_CORRUPTED : AGENT_CONTAINER_FAILED;
}

enum agent_outcome agent_outcome_classify(const struct agent_ending *ending,
	const struct agent_transcript *t, const struct agent_markers *m,
	enum agent_detail *ret_detail)
{
	enum agent_detail ignored, *detail = ret_detail ? ret_detail : &ignored;
	bool has_result = t->results > 0 && (t->has_verdict || ending->exit_code == 0);
	bool completed = has_result && !agent_transcript_is_error(t) && ending->exit_code == 0;

	*detail = AGENT_DETAIL_NONE;
	if (ending->timed_out)
		return AGENT_TIMEOUT;
	if (ending->cancelled && !completed) {
		*detail = AGENT_DETAIL_CANCELLED;
		return AGENT_CONTAINER_FAILED;
	}
	if (ending->oom_killed && ending->exit_code != 0 && !has_result) {
		*detail = AGENT_DETAIL_OUT_OF_MEMORY;
		return AGENT_CONTAINER_FAILED;
	}
	return has_result ? with_result(ending, t, detail) : without_result(ending, m);
}

static const struct outcome {
	const char *name;
	int exit_status;
} outcomes[] = {
	[AGENT_SUCCESS] = {"success", 0},
	[AGENT_TIMEOUT] = {"timeout", 124},
	[AGENT_PROMPT_TOO_LONG] = {"prompt_too_long", 3},
	[AGENT_SESSION_CORRUPTED] = {"session_corrupted", 4},
	[AGENT_CONTAINER_FAILED] = {"container_failed", 1},
};

/* A caller of the library may have any number. */
static const struct outcome *outcome_find(enum agent_outcome outcome)
{
	return &outcomes[(size_t)outcome < ARRAY_SIZE(outcomes) ? outcome : AGENT_CONTAINER_FAILED];
}

const char *agent_outcome_name(enum agent_outcome outcome)
{
	return outcome_find(outcome)->name;
}

int agent_outcome_exit_status(enum agent_outcome outcome)
{
	return outcome_find(outcome)->exit_status;
}

const char *agent_detail_name(enum agent_detail detail)
{
	static const char *const names[] = {[AGENT_DETAIL_NONE] = NULL,
		[AGENT_DETAIL_CANCELLED] = "cancelled",
		[AGENT_DETAIL_OUT_OF_MEMORY] = "out_of_memory"};

	return names[detail];
}
