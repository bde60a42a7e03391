/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One event of an agent's output in the stream-json form: a JSON object on a line, with its kind in
 * the member "type". Unknown members are kept unchanged; members of a wrong type read as empty. */

#include "base/err.h"
#include "base/json.h"

/* A line with more values than this is not an event: parsing would take far more memory than its
 * length. Each value is counted as AGENT_EVENT_VALUE_COST bytes. */
#define AGENT_EVENT_VALUES_MAX (256U << 10)
#define AGENT_EVENT_VALUE_COST 96U

enum agent_event_type {
	AGENT_EVENT_UNKNOWN, /* an unknown type: see type_name and raw */
	AGENT_EVENT_SYSTEM,
	AGENT_EVENT_ASSISTANT,
	AGENT_EVENT_USER,
	AGENT_EVENT_RESULT,
};

enum agent_block_type {
	AGENT_BLOCK_TEXT,
	AGENT_BLOCK_TOOL_USE,
	AGENT_BLOCK_TOOL_RESULT,
};

/* A content block of an assistant or user message. Everything is borrowed from the event's raw. */
struct agent_block {
	enum agent_block_type type;
	struct str text;       /* text: the text */
	struct str id;         /* tool_use: its id; tool_result: the id it answers */
	struct str name;       /* tool_use: the tool */
	const json_t *input;   /* tool_use: an object, or NULL */
	const json_t *content; /* tool_result: a string or an array, or NULL */
	bool is_error;         /* tool_result */
};

/* Views are borrowed from raw and live as long as the event. Strings that are missing are empty. */
struct agent_event {
	enum agent_event_type type;
	json_t *raw; /* the whole object, owned; use json_incref to keep it */
	struct str type_name;
	struct str subtype;
	struct str session_id;
	struct str parent_tool_use_id; /* not empty: from a subagent */
	struct agent_block *blocks; /* assistant and user only; other kinds of block are left out */
	size_t blocks_n;
	size_t size; /* bytes of memory that it takes, roughly; 0 from agent_event_from_json */
};

/* Parse one line (without its newline; blanks around it are ignored). Return 0 and a new event in
 * *ret, 1 if the line is not an event (not JSON, not an object, no string "type"), or -E_NO_MEMORY.
 * Bytes that are not UTF-8 and lone surrogate escapes become U+FFFD, so that the event is not lost;
 * integers beyond 64 bits become reals. */
_warn_unused_ int agent_event_parse(
	struct str line, struct agent_event **ret, struct cloche_err *err);

/* Wrap an object that is already parsed (takes a new reference). Return as agent_event_parse(). */
_warn_unused_ int agent_event_from_json(
	json_t *object, struct agent_event **ret, struct cloche_err *err);

/* Return a terminated copy of a text; a NUL, which would cut it short, becomes a blank. NULL if
 * memory runs out. */
char *agent_text_dup(struct str s);

/* Free the event and its reference to raw. e may be NULL. Return NULL. */
struct agent_event *agent_event_free(struct agent_event *e);
DEFINE_CLEANUP(struct agent_event, agent_event_free)
