/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How a run of an agent ended.
 *
 * The first row that fits decides:
 *
 *  how the process ended | what the agent reported            | outcome            detail
 *  ----------------------+------------------------------------+--------------------------------
 *  1 by our timeout      | anything                           | timeout            -
 *  2 we stopped it       | anything but row 8                 | container_failed   cancelled
 *  3 out of memory       |                                    |
 *    and exit != 0       | no result event                    | container_failed   out_of_memory
 *  4 any                 | result, error, "Prompt is too long"| prompt_too_long    -
 *  5 any                 | result, error, API status 4xx that |
 *                        |   is about the conversation        | session_corrupted  -
 *  6 out of memory       | result, any other error; or a      |
 *    and exit != 0       |   success                          | container_failed   out_of_memory
 *  7 any                 | result, any other error            | container_failed   -
 *  8 exit 0              | result, success                    | success            -
 *  9 exit != 0           | result, success                    | container_failed   -
 * 10 exit 0              | no result event                    | success            -
 * 11 exit != 0           | none; marker "Prompt is too long"  | prompt_too_long    -
 * 12 exit != 0           | none; marker "API Error: 4"        | session_corrupted  -
 * 13 exit != 0           | none                               | container_failed   -
 *
 * If the process did not exit with 0, a result that has neither is_error nor a subtype counts as
 * none: it says nothing about how the run went, so the markers count.
 *
 * A result is an error when is_error is true or its subtype begins with "error": the CLI reports a
 * failed API request as subtype "success" with is_error true, and exits with 1. The API status is
 * api_error_status, else the number after a leading "API Error: " of the result's text. 401, 402,
 * 403 (the account), 404 (the model), 408 and 429 (the moment) say nothing about the conversation:
 * a new start would lose the session and fix nothing, so they are row 7. "No conversation found" at
 * the beginning of the result's errors, for a --resume of a missing session, counts as row 5. */

#include "agent/transcript.h"

enum agent_outcome {
	AGENT_SUCCESS,
	AGENT_TIMEOUT,
	AGENT_PROMPT_TOO_LONG,
	AGENT_SESSION_CORRUPTED,
	AGENT_CONTAINER_FAILED,
};

enum agent_detail {
	AGENT_DETAIL_NONE,
	AGENT_DETAIL_CANCELLED,
	AGENT_DETAIL_OUT_OF_MEMORY,
};

/* Marker strings found in raw lines; only used if no result event came that counts. */
struct agent_markers {
	bool prompt_too_long; /* "Prompt is too long" on standard output */
	bool api_error_4;     /* "API Error: 4" on standard output or error */
};

/* With this begin the errors of a result if the agent does not have the session to continue. */
#define AGENT_SESSION_LOST STR("No conversation found")

/* Search one raw line for the markers. */
void agent_markers_scan(struct agent_markers *m, struct str line, bool is_stderr);

/* How the process ended. */
struct agent_ending {
	int exit_code;   /* 128+n for a signal */
	bool timed_out;  /* we ended it because its time was over */
	bool cancelled;  /* we ended it on request */
	bool oom_killed; /* the room ran out of memory */
};

/* Classify by the table above. *ret_detail may be NULL. Never fails. */
enum agent_outcome agent_outcome_classify(const struct agent_ending *ending,
	const struct agent_transcript *t, const struct agent_markers *m,
	enum agent_detail *ret_detail);

/* "success", "timeout", "prompt_too_long", "session_corrupted", "container_failed". */
const char *agent_outcome_name(enum agent_outcome outcome);
/* "cancelled", "out_of_memory"; NULL for none. */
const char *agent_detail_name(enum agent_detail detail);
/* Return the exit status of `cloche agent`: 0, 124, 3, 4, 1. */
int agent_outcome_exit_status(enum agent_outcome outcome);
