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
	CLOCHE_EVENT_OTHER, /* see type_name */
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

/* What a result reports. */
typedef struct cloche_event_result {
	size_t size;            /* of this struct in the library: later versions append members */
	const char *session_id; /* NULL: none */
	uint64_t duration_ms;
	double total_cost_usd;
	uint64_t num_turns;
	bool is_error; /* is_error is true, or the subtype begins with "error" */
	cloche_event_usage usage;
} cloche_event_result;

/* An event. Strings are "" if it has no such member; a NUL in them becomes a blank. */
typedef struct cloche_event {
	size_t size; /* of this struct in the library: later versions append members */
	enum cloche_event_type type;
	const char *type_name, *subtype, *session_id, *parent_tool_use_id;
	/* For an assistant event: its text blocks, separated by blank lines. For a result: its
	 * text, or its list of errors, one per line. */
	const char *text;
	const char *tool_name; /* the first tool that the assistant uses; the blocks have all */
	bool is_error; /* a result that is an error, or a tool reports an error to the assistant */
	const cloche_event_result *result; /* NULL: the event is not a result */
} cloche_event;

/* Parse one line (length bytes, borrowed for the call; surrounding blanks are ignored) into a new
 * event, which the caller frees. CLOCHE_E_PROTOCOL: the line is not an event (not JSON, not an
 * object, or no string "type"). CLOCHE_E_LIMIT: it has more than 16 MiB. */
CLOCHE_API int cloche_event_parse(
	const char *line, size_t length, cloche_event **ret, cloche_err *err);
/* NULL is fine. Everything that was borrowed from the event goes with it. */
CLOCHE_API void cloche_event_free(cloche_event *event);

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

/* Called on the feeding thread for each event, which is borrowed for the call. */
typedef void (*cloche_event_fn)(cloche_event *event, void *user);

/* Return an empty sequence, or NULL if out of memory. fn may be NULL. A sequence does not keep
 * events. It keeps at most the last ten texts, the texts of results (together 16 MiB) and one
 * incomplete line (16 MiB). */
CLOCHE_API cloche_event_stream *cloche_event_stream_new(cloche_event_fn fn, void *user);
/* NULL is fine. */
CLOCHE_API void cloche_event_stream_free(cloche_event_stream *stream);

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

/* What a sequence says so far. */
typedef struct cloche_event_summary {
	size_t size;              /* of this struct in the library: later versions append members */
	uint64_t events, skipped; /* skipped: lines that are no events (empty ones do not count) */
	/* Of the last result that names one, or else of the last system/init event. NULL: none. */
	const char *session_id;
	/* The results: if there are several, durations and turns are added up, and everything else
	 * is that of the last one, with session_id as above. NULL: there is none. */
	const cloche_event_result *result;
	/* The answer of the agent: if several results have a text, all of these texts; else what
	 * the agent said last (starting at an earlier text if that is much longer); else the
	 * result's text; else a sentence saying that there was no output. */
	const char *response;
} cloche_event_summary;

/* Return the summary, borrowed until more is fed or until the next call; NULL if out of memory. */
CLOCHE_API const cloche_event_summary *cloche_event_stream_summary(cloche_event_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
