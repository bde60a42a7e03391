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
 * The order in a run is: session_open_unwritten, session_begin_reply (context.json then has an
 * unfinished reply), session_add_event for each event, session_finish_reply. After a crash in
 * between, the next cloche_session_open (or _load) finds the unfinished reply and rebuilds it from
 * events.jsonl.
 *
 * An older session.json with "task_id" is read if there is no context.json; the next write converts
 * it. Unknown members, at the top and in replies, are kept. */

#include "agent/outcome.h"
#include "session/events.h"
#include <cloche/session.h>

#define SESSION_FILE "context.json"
#define SESSION_FILE_OLD "session.json"
/* The largest context.json read or written. When it would be larger, the events of the oldest
 * replies are left out; events.jsonl still has them. */
#define SESSION_FILE_MAX (256U << 20)

DEFINE_CLEANUP(cloche_session, cloche_session_free)

/* As cloche_session_open(), which makes the directory if it is missing (a link that a room may have
 * left on the way to it, or one that leads into credentials, is refused with -E_DENIED), but a new
 * context gets its file, and a damaged file its other name (context.json.damaged-TIME), when the
 * session is first written. Until then everything is as it was, in case that nothing comes of
 * it. A reply that was unfinished stays so if the session is freed. */
_warn_unused_ int session_open_unwritten(
	const char *dir, const char *context_id, cloche_session **ret, struct cloche_err *err);

/* Both are borrowed. */
const char *session_dir(const cloche_session *s);
/* Return its descriptor, borrowed. */
int session_dir_fd(const cloche_session *s);
/* The reply as an object in the form of the file; index below cloche_session_reply_count(). */
const json_t *session_reply(const cloche_session *s, size_t index);

/* Return the part of cloche_session_warning() that is true before the session was written: which
 * file is damaged, and why. NULL: none. Borrowed. */
const char *session_damage(const cloche_session *s);

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

/* Return what a transcript says. Everything is borrowed from it and from the caller. */
struct session_reply session_reply_from(const struct agent_transcript *t,
	enum agent_outcome outcome, uint64_t wall_ms, const char *request_text,
	const char *response_text);

/* Append an unfinished reply with the request, write the file, and open events.jsonl. */
_warn_unused_ int session_begin_reply(
	cloche_session *s, const char *request_text, struct cloche_err *err);

/* Append an event of the unfinished reply to events.jsonl; context.json is not changed. */
_warn_unused_ int session_add_event(
	cloche_session *s, const struct agent_event *e, struct cloche_err *err);

/* Replace the unfinished reply by the finished one and write the file. */
_warn_unused_ int session_finish_reply(
	cloche_session *s, const struct session_reply *reply, struct cloche_err *err);

/* For use without begin and finish: replace the last reply if its request text is the same, else
 * append; then write the file. */
_warn_unused_ int session_update_or_add_reply(
	cloche_session *s, const struct session_reply *reply, struct cloche_err *err);
