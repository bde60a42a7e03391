/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The execution context on disk: a directory with
 *   - context.json: its id, the model, and every reply with its events; replaced as a whole;
 *   - events.jsonl: the events of tasks' replies as they came, one per line, a blank line between
 *     replies;
 *   - claude/: the agent's own state (mounted into the room; we never read it).
 *
 * A user of the context holds a lock (flock) on the directory.
 *
 * The order in a run is: session_open or session_open_unwritten, session_begin_reply (context.json
 * then has an unfinished reply), session_add_event for each event, session_finish_reply. After a
 * crash in between, the next session_open (or session_load) finds the unfinished reply and rebuilds
 * it from events.jsonl.
 *
 * An older session.json with "task_id" is read if there is no context.json; the next write converts
 * it. Unknown members, at the top and in replies, are kept. */

#include "agent/outcome.h"
#include "session/events.h"

#define SESSION_FILE "context.json"
#define SESSION_FILE_OLD "session.json"
/* The largest context.json read or written. When it would be larger, the events of the oldest
 * replies are left out; events.jsonl still has them. */
#define SESSION_FILE_MAX (256U << 20)

struct session;

/* Open the directory (make it if missing; a link that a room may have left on the way to it, or one
 * that leads into credentials, is refused with -E_DENIED), take its lock, load its contents and
 * finish a reply that a crash left. A damaged file is kept as context.json.damaged-TIME and a new
 * one is begun; session_warning() then reports that. context_id names a new context (NULL: make a
 * new id), or one that has no name; for any other it must be NULL or the same (else -E_USAGE).
 * Return 0, -E_BUSY while another process uses the directory, or another error. */
_warn_unused_ int session_open(
	const char *dir, const char *context_id, struct session **ret, struct cloche_err *err);
/* The same, but a new context gets its file, and a damaged file its other name, when the session is
 * first written. Until then everything is as it was, in case that nothing comes of it. */
_warn_unused_ int session_open_unwritten(
	const char *dir, const char *context_id, struct session **ret, struct cloche_err *err);

/* Read a context that may be in use, without a lock and without changing anything. Return 0,
 * -E_NOT_FOUND if there is none, or -E_CORRUPT. Functions that write fail with -E_DENIED on it. */
_warn_unused_ int session_load(const char *dir, struct session **ret, struct cloche_err *err);

/* Free the session and release the lock. s may be NULL. Return NULL. An unfinished reply stays
 * unfinished on disk. */
struct session *session_free(struct session *s);
DEFINE_CLEANUP(struct session, session_free)

/* All are borrowed, and valid until the session changes. NULL: none. */
const char *session_dir(const struct session *s);
const char *session_context_id(const struct session *s);
const char *session_model(const struct session *s);
size_t session_replies(const struct session *s);
/* The reply as an object in the form of the file; index below session_replies. Borrowed. */
const json_t *session_reply(const struct session *s, size_t index);
/* The whole document in the form of the file. Borrowed. */
const json_t *session_document(const struct session *s);

/* Return a one-sentence warning for the user about the opening; NULL: none. Borrowed. It is true
 * once the session was written; session_damage() has only the part that is true before: which file
 * is damaged, and why. */
const char *session_warning(const struct session *s);
const char *session_damage(const struct session *s);

/* Return the latest session id of the agent: a reply's own, else that in its events, from the last
 * reply backwards. NULL: none. Borrowed. */
const char *session_id_for_resume(const struct session *s);

/* Return the response text of the last reply that has one and is not an error. NULL: none.
 * Borrowed. */
const char *session_last_successful_response(const struct session *s);

/* Set the model (copied), or remove it if model is NULL or "", and write the file. */
_warn_unused_ int session_set_model(struct session *s, const char *model, struct cloche_err *err);

/* Values of a reply from a finished run. Borrowed. */
struct session_reply {
	const char *session_id; /* NULL: taken from the events */
	uint64_t duration_ms, num_turns;
	double total_cost_usd;
	bool is_error;
	const json_t *usage;       /* object or NULL (all zero) */
	const char *request_text;  /* NULL: null */
	const char *response_text; /* NULL: null */
	const json_t *events;      /* array of raw events, or NULL for none */
};

/* Fill ret from a transcript. Strings are borrowed from t, and *ret_usage is a new reference that
 * ret->usage borrows. response_text is the caller's. */
_warn_unused_ int session_reply_from(const struct agent_transcript *t, enum agent_outcome outcome,
	uint64_t wall_ms, const char *request_text, const char *response_text,
	struct session_reply *ret, json_t **ret_usage, struct cloche_err *err);

/* Append an unfinished reply with the request, write the file, and open events.jsonl. */
_warn_unused_ int session_begin_reply(
	struct session *s, const char *request_text, struct cloche_err *err);

/* Append an event of the unfinished reply to events.jsonl; context.json is not changed. */
_warn_unused_ int session_add_event(
	struct session *s, const struct agent_event *e, struct cloche_err *err);

/* Replace the unfinished reply by the finished one and write the file. */
_warn_unused_ int session_finish_reply(
	struct session *s, const struct session_reply *reply, struct cloche_err *err);

/* For use without begin and finish: replace the last reply if its request text is the same, else
 * append; then write the file. */
_warn_unused_ int session_update_or_add_reply(
	struct session *s, const struct session_reply *reply, struct cloche_err *err);
