/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Everything that one run of an agent said and reported, gathered event by event. */

#include "agent/event.h"

/* The token counts that are always there; a result may have more. */
#define AGENT_USAGE(F)                                                                             \
	F(input_tokens)                                                                            \
	F(output_tokens)                                                                           \
	F(cache_creation_input_tokens)                                                             \
	F(cache_read_input_tokens)
#define AGENT_USAGE_KEY(name) #name,

/* The response of a successful run without output. */
#define AGENT_NO_OUTPUT "No output received from Claude."
/* Bytes of memory for the events of one run; further events are left out. */
#define AGENT_TRANSCRIPT_MAX (64U << 20)

/* One text that the agent said: the text blocks of one event. */
struct agent_text {
	char *text;
	size_t n;     /* bytes */
	size_t chars; /* Unicode characters */
};

/* The last texts of a run: enough for the response (five) and for ten lines of an error. */
#define AGENT_TEXTS_KEPT 10

struct agent_texts {
	struct agent_text v[AGENT_TEXTS_KEPT]; /* oldest first */
	size_t n;                              /* of v in use */
};

/* Read the members, but change them only with the functions below. */
struct agent_transcript {
	json_t *events;   /* array of raw events in order, owned; those beyond max are left out */
	size_t max, kept; /* bytes of memory for events: allowed, used */

	char *result_session_id; /* of the last result event that had one; NULL: none */
	char *init_session_id;   /* of the last system/init event; NULL: none */
	char *model;             /* from system/init; NULL: none */

	unsigned results; /* result events seen */
	/* Of the result events: duration and turns are sums, everything else is from the last one.
	 * Members of a wrong type or sign count as zero. */
	uint64_t duration_ms;
	uint64_t num_turns;
	double total_cost_usd;
	json_t *usage; /* object, owned; NULL: none */
	bool is_error;
	bool has_verdict;     /* it says whether it is an error: by is_error or a subtype */
	int api_error_status; /* HTTP status of the failed API request; 0: none given */
	char *subtype;        /* "success", "error_max_turns", …; NULL: none */
	char *result;         /* text of the last result that had one; NULL: none */
	char *errors;         /* the list "errors" of the last one, one per line; NULL: none */
	unsigned results_with_text;
	struct buf results_text; /* all of them, separated by a blank line */

	struct agent_texts said; /* by assistant events */
	uint64_t tool_errors;
	uint64_t web_search_count, web_fetch_count;
};

/* max: AGENT_TRANSCRIPT_MAX, or another limit on the bytes of events kept. */
_warn_unused_ int agent_transcript_init(
	struct agent_transcript *t, size_t max, struct cloche_err *err);
void agent_transcript_done(struct agent_transcript *t);
static inline void agent_transcript_donep(struct agent_transcript *t)
{
	agent_transcript_done(t);
}

/* Add the next event (keeps a reference to its raw). Return 0 or -E_NO_MEMORY. */
_warn_unused_ int agent_transcript_add(
	struct agent_transcript *t, const struct agent_event *e, struct cloche_err *err);

/* The same for a line of the agent's output, for lines_feed(); transcript is a struct
 * agent_transcript. A line that is not an event is left out. */
_warn_unused_ int agent_transcript_add_line(struct str line, void *transcript);

/* Whether the last result is an error: is_error is true, or its subtype begins with "error". */
bool agent_transcript_is_error(const struct agent_transcript *t);

/* Return the session to resume: the result's, else that of system/init, else NULL. Borrowed. */
const char *agent_transcript_session_id(const struct agent_transcript *t);

/* Get the response of a successful run, a new string in *ret. It is never blank: the last resort is
 * AGENT_NO_OUTPUT. If several results have text, it is all of them; else the last text said,
 * together with an earlier, much longer one and all since (an agent often ends with a short
 * remark). */
_warn_unused_ int agent_transcript_response(
	const struct agent_transcript *t, char **ret, struct cloche_err *err);

/* Explain why a run failed, in at most ten lines: a new string in *ret, or NULL if there is no
 * text. */
_warn_unused_ int agent_transcript_error_summary(
	const struct agent_transcript *t, char **ret, struct cloche_err *err);

/* Return a new object with the token counts that are always there, 0 for each that the usage of a
 * result (NULL: none) does not have as a number, and with everything else in it. NULL on lack of
 * memory. */
json_t *agent_usage(const json_t *reported);
