/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_EVENT_H
#define CLOCHE_EVENT_H
/* What an agent prints in the stream-json form of Claude Code, which is also what events.jsonl of
 * an execution context holds: a JSON object on each line, an event. Every line may be hostile: what
 * is missing or has a wrong type reads as empty or 0, and memory is bounded.
 *
 * A handle may be used by one thread at a time; different handles by different threads. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum cloche_event_type {
	CLOCHE_EVENT_OTHER, /* cloche_event_type_name() still tells */
	CLOCHE_EVENT_SYSTEM,
	CLOCHE_EVENT_ASSISTANT,
	CLOCHE_EVENT_USER,
	CLOCHE_EVENT_RESULT,
};

/* Counts of tokens. */
typedef struct cloche_event_usage {
	uint64_t input_tokens, output_tokens;
	uint64_t cache_creation_input_tokens, cache_read_input_tokens;
	const char *extra; /* what else was counted, as a JSON object; "{}": nothing */
} cloche_event_usage;

/* What results report. Strings are borrowed from whoever gave it. */
typedef struct cloche_event_result {
	const char *session_id; /* NULL: none */
	uint64_t duration_ms;
	double total_cost_usd;
	uint64_t num_turns;
	bool is_error; /* is_error is true, or the subtype begins with "error" */
	cloche_event_usage usage;
} cloche_event_result;

typedef struct cloche_event cloche_event;

/* Parses one line (length bytes, borrowed for the call; blanks around it are ignored) into a new
 * event, which the caller frees. CLOCHE_E_PROTOCOL: it is no event (no JSON, not an object, no
 * string "type"). CLOCHE_E_LIMIT: it has more than 16 MiB. */
CLOCHE_API int cloche_event_parse(
	const char *line, size_t length, cloche_event **ret, cloche_err *err);
/* NULL is fine. */
CLOCHE_API void cloche_event_free(cloche_event *event);

CLOCHE_API enum cloche_event_type cloche_event_type_of(const cloche_event *event);
/* All borrowed until the event is freed, and "" if there is none. A NUL becomes a blank. */
CLOCHE_API const char *cloche_event_type_name(const cloche_event *event);
CLOCHE_API const char *cloche_event_subtype(const cloche_event *event);
CLOCHE_API const char *cloche_event_session_id(const cloche_event *event);
/* Not "": a subagent speaks. */
CLOCHE_API const char *cloche_event_parent_tool_use_id(const cloche_event *event);
/* What the assistant says, a blank line between blocks; of a result its text, else its list of
 * errors, a line each. */
CLOCHE_API const char *cloche_event_text(const cloche_event *event);
/* The first tool that the assistant uses; cloche_event_block() has all. */
CLOCHE_API const char *cloche_event_tool_name(const cloche_event *event);
/* A result that is an error, or a user's event in which a tool reports one. */
CLOCHE_API bool cloche_event_is_error(const cloche_event *event);
/* Returns 1 and fills ret (borrowed until the event is freed) from a result; returns 0 of any other
 * event, and leaves ret alone. */
CLOCHE_API int cloche_event_result_of(const cloche_event *event, cloche_event_result *ret);
/* The whole event as one line of JSON, without a newline; borrowed until the event is freed. NULL
 * on lack of memory. */
CLOCHE_API const char *cloche_event_json(cloche_event *event);

enum cloche_event_block_type {
	CLOCHE_EVENT_BLOCK_TEXT,
	CLOCHE_EVENT_BLOCK_TOOL_USE,
	CLOCHE_EVENT_BLOCK_TOOL_RESULT,
};

/* A block of an assistant's or user's message; "" if a member has nothing. */
typedef struct cloche_event_block {
	enum cloche_event_block_type type;
	const char *text;      /* of a text; of a tool's result if that is one text */
	const char *id;        /* of the use of a tool; of the one that a result answers */
	const char *tool_name; /* of the use of a tool */
	const char *json;      /* input of the tool (an object), or its result, as JSON */
	bool is_error;         /* of a tool's result */
} cloche_event_block;

/* Returns 1 and fills ret with the i-th block (from 0; other kinds than these three are left out
 * and not counted); 0 behind the last; CLOCHE_E_NO_MEMORY. Borrowed until the next call. */
CLOCHE_API int cloche_event_block_at(
	cloche_event *event, size_t i, cloche_event_block *ret, cloche_err *err);

/* --- a sequence of events --- */

typedef struct cloche_event_stream cloche_event_stream;

/* An empty sequence. NULL on lack of memory. Events are not kept: at most the last ten texts, those
 * of results (together 16 MiB) and one line under way (16 MiB). */
CLOCHE_API cloche_event_stream *cloche_event_stream_new(void);
/* NULL is fine. */
CLOCHE_API void cloche_event_stream_free(cloche_event_stream *stream);

/* Called on the feeding thread with each event, which is borrowed for the call. NULL: nobody. */
typedef void (*cloche_event_typed_fn)(cloche_event *event, void *user);
CLOCHE_API void cloche_event_stream_on_event(
	cloche_event_stream *stream, cloche_event_typed_fn fn, void *user);

/* Takes the next bytes (borrowed for the call), cut anywhere. Lines that are no events, or longer
 * than 16 MiB, are skipped and counted. CLOCHE_E_NO_MEMORY: the rest of the bytes is lost. */
CLOCHE_API int cloche_event_stream_feed(
	cloche_event_stream *stream, const void *data, size_t length, cloche_err *err);
/* There is no more: takes a last line without newline. More may be fed all the same. */
CLOCHE_API int cloche_event_stream_end(cloche_event_stream *stream, cloche_err *err);
/* Takes a whole file, as both above; the file may grow meanwhile. */
CLOCHE_API int cloche_event_stream_feed_file(
	cloche_event_stream *stream, const char *path, cloche_err *err);

/* So far: events, and lines that were skipped (empty ones are not counted). */
CLOCHE_API uint64_t cloche_event_stream_events(const cloche_event_stream *stream);
CLOCHE_API uint64_t cloche_event_stream_skipped(const cloche_event_stream *stream);
/* The session of the last result that names one, else of the last event system/init; NULL: none.
 * Borrowed until more is fed. */
CLOCHE_API const char *cloche_event_stream_session_id(const cloche_event_stream *stream);
/* Returns 1 and fills ret (borrowed until more is fed, or the next call) from the results: of
 * several, the times and the turns together, all else of the last. The session is that of
 * cloche_event_stream_session_id(). Returns 0 if there was no result, and leaves ret alone;
 * CLOCHE_E_NO_MEMORY. */
CLOCHE_API int cloche_event_stream_result(
	cloche_event_stream *stream, cloche_event_result *ret, cloche_err *err);
/* The answer: of several results with text, all of them; else what was said last (with an earlier
 * text that is much longer, and all since), else the result's text, else a sentence that nothing
 * was said. Borrowed until more is fed, or the next call; NULL on lack of memory. */
CLOCHE_API const char *cloche_event_stream_response(cloche_event_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
