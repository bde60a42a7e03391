/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_EVENT_H
#define CLOCHE_EVENT_H
/* Events: what an agent prints in the stream-json format of Claude Code, one JSON object per line.
 * The events.jsonl of an execution context has the same format. Every line can be hostile: members
 * that are missing or have a wrong type read as empty or 0, and memory is bounded.
 *
 * A handle may be used by one thread at a time; different threads may use different handles. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum cloche_event_type {
	CLOCHE_EVENT_OTHER, /* see cloche_event_type_name() */
	CLOCHE_EVENT_SYSTEM,
	CLOCHE_EVENT_ASSISTANT,
	CLOCHE_EVENT_USER,
	CLOCHE_EVENT_RESULT,
};

/* Token counts. */
typedef struct cloche_event_usage {
	uint64_t input_tokens, output_tokens;
	uint64_t cache_creation_input_tokens, cache_read_input_tokens;
	const char *extra; /* all other counts, as a JSON object; "{}" if there are none */
} cloche_event_usage;

/* What a result reports. The strings are borrowed from the event or stream that filled it. */
typedef struct cloche_event_result {
	const char *session_id; /* NULL: none */
	uint64_t duration_ms;
	double total_cost_usd;
	uint64_t num_turns;
	bool is_error; /* is_error is true, or the subtype begins with "error" */
	cloche_event_usage usage;
} cloche_event_result;

typedef struct cloche_event cloche_event;

/* Parse one line (length bytes, borrowed for the call; surrounding blanks are ignored) into a new
 * event, which the caller frees. CLOCHE_E_PROTOCOL: the line is not an event (not JSON, not an
 * object, or no string "type"). CLOCHE_E_LIMIT: it has more than 16 MiB. */
CLOCHE_API int cloche_event_parse(
	const char *line, size_t length, cloche_event **ret, cloche_err *err);
/* NULL is fine. */
CLOCHE_API void cloche_event_free(cloche_event *event);

CLOCHE_API enum cloche_event_type cloche_event_type_of(const cloche_event *event);
/* All are borrowed until the event is freed, and "" if the event has no such member. A NUL becomes
 * a blank. */
CLOCHE_API const char *cloche_event_type_name(const cloche_event *event);
CLOCHE_API const char *cloche_event_subtype(const cloche_event *event);
CLOCHE_API const char *cloche_event_session_id(const cloche_event *event);
/* Not "" if a subagent is speaking. */
CLOCHE_API const char *cloche_event_parent_tool_use_id(const cloche_event *event);
/* For an assistant event: its text blocks, separated by blank lines. For a result: its text, or its
 * list of errors, one per line. */
CLOCHE_API const char *cloche_event_text(const cloche_event *event);
/* The first tool that the assistant uses; use cloche_event_block_at() for all of them. */
CLOCHE_API const char *cloche_event_tool_name(const cloche_event *event);
/* True for a result that is an error, and for a user event in which a tool reports an error. */
CLOCHE_API bool cloche_event_is_error(const cloche_event *event);
/* For a result, fill *ret (borrowed until the event is freed) and return 1. For any other event,
 * return 0 and leave *ret alone. */
CLOCHE_API int cloche_event_result_of(const cloche_event *event, cloche_event_result *ret);
/* Return the whole event as one line of JSON, without a newline; borrowed until the event is freed.
 * NULL if out of memory. */
CLOCHE_API const char *cloche_event_json(cloche_event *event);

enum cloche_event_block_type {
	CLOCHE_EVENT_BLOCK_TEXT,
	CLOCHE_EVENT_BLOCK_TOOL_USE,
	CLOCHE_EVENT_BLOCK_TOOL_RESULT,
};

/* A block of an assistant's or user's message. Members without a value are "". */
typedef struct cloche_event_block {
	enum cloche_event_block_type type;
	const char *text;      /* of a text block; of a tool result if that is a single text */
	const char *id;        /* of a tool use, or of the tool use that a result answers */
	const char *tool_name; /* of a tool use */
	const char *json;      /* the tool's input (an object) or its result, as JSON */
	bool is_error;         /* of a tool result */
} cloche_event_block;

/* Fill *ret with block i and return 1, or return 0 if there are no more. i counts from 0 and skips
 * blocks of other types. CLOCHE_E_NO_MEMORY. Borrowed until the next call. */
CLOCHE_API int cloche_event_block_at(
	cloche_event *event, size_t i, cloche_event_block *ret, cloche_err *err);

/* --- a sequence of events --- */

typedef struct cloche_event_stream cloche_event_stream;

/* Return an empty sequence, or NULL if out of memory. A sequence does not keep events. It keeps at
 * most the last ten texts, the texts of results (together 16 MiB) and one incomplete line (16
 * MiB). */
CLOCHE_API cloche_event_stream *cloche_event_stream_new(void);
/* NULL is fine. */
CLOCHE_API void cloche_event_stream_free(cloche_event_stream *stream);

/* Call fn on the feeding thread for each event, which is borrowed for the call. fn may be NULL. */
typedef void (*cloche_event_typed_fn)(cloche_event *event, void *user);
CLOCHE_API void cloche_event_stream_on_event(
	cloche_event_stream *stream, cloche_event_typed_fn fn, void *user);

/* Feed the next bytes (borrowed for the call), split at any point. Lines that are not events, or
 * are longer than 16 MiB, are skipped and counted. After CLOCHE_E_NO_MEMORY the rest of the bytes
 * is lost. */
CLOCHE_API int cloche_event_stream_feed(
	cloche_event_stream *stream, const void *data, size_t length, cloche_err *err);
/* End the input: handle a last line without a newline. More may still be fed afterwards. */
CLOCHE_API int cloche_event_stream_end(cloche_event_stream *stream, cloche_err *err);
/* Feed a whole file and end the input, like the two functions above. The file may grow
 * meanwhile. */
CLOCHE_API int cloche_event_stream_feed_file(
	cloche_event_stream *stream, const char *path, cloche_err *err);

/* The number of events so far, and of skipped lines (empty lines are not counted). */
CLOCHE_API uint64_t cloche_event_stream_events(const cloche_event_stream *stream);
CLOCHE_API uint64_t cloche_event_stream_skipped(const cloche_event_stream *stream);
/* Return the session of the last result that names one, or else of the last system/init event, or
 * NULL. Borrowed until more is fed. */
CLOCHE_API const char *cloche_event_stream_session_id(const cloche_event_stream *stream);
/* Summarize the results: fill *ret (borrowed until more is fed, or until the next call) and return
 * 1. If there were several results, durations and turns are added up, and everything else is that
 * of the last one. The session is that of cloche_event_stream_session_id(). If there was no result,
 * return 0 and leave *ret alone. CLOCHE_E_NO_MEMORY. */
CLOCHE_API int cloche_event_stream_result(
	cloche_event_stream *stream, cloche_event_result *ret, cloche_err *err);
/* Return the answer of the agent: if several results have a text, all of these texts; else what the
 * agent said last (starting at an earlier text if that is much longer); else the result's text;
 * else a sentence saying that there was no output. Borrowed until more is fed, or until the next
 * call. NULL if out of memory. */
CLOCHE_API const char *cloche_event_stream_response(cloche_event_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
