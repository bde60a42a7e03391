/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The document of context.json: its members and replies. No files here. Included only by store.c.
 *
 * An unfinished reply has one more member, "events_offset": the start of its events in
 * events.jsonl. */

#include "session/store.h"

#define REPLY_PENDING "events_offset"

/* Make a new document without replies in *ret. */
_warn_unused_ int document_new(const char *context_id, json_t **ret, struct cloche_err *err);

/* Parse a file's text and check it. A "task_id" becomes "execution_context_id", which is "" if
 * there is neither; a reply without usage gets counts of 0. Return 0, -E_CORRUPT with the reason,
 * or -E_NO_MEMORY. */
_warn_unused_ int document_parse(struct str text, json_t **ret, struct cloche_err *err);

/* Write the file's text to out. If it would be larger than out allows, events of the oldest replies
 * are removed from it (and from the document). */
_warn_unused_ int document_write(json_t *doc, struct buf *out, struct cloche_err *err);

json_t *document_replies(const json_t *doc);

/* Set the members of a reply and keep its other members. */
_warn_unused_ int reply_set(
	json_t *reply, const struct session_reply *from, struct cloche_err *err);

/* Make an unfinished reply with the current time, whose events begin at offset. */
_warn_unused_ int reply_pending_new(
	const char *request_text, uint64_t offset, json_t **ret, struct cloche_err *err);

/* Make a finished reply with the current time. */
_warn_unused_ int reply_new(const struct session_reply *from, json_t **ret, struct cloche_err *err);

bool reply_is_pending(const json_t *reply);

/* Complete a pending reply from the events before the crash. */
_warn_unused_ int reply_rebuild(json_t *reply, const json_t *events, struct cloche_err *err);

/* Return the agent's session: the reply's own, else from its events, else a null view. */
struct str reply_session_id(const json_t *reply);

/* Return whether the agent did not have the session that it was to continue. */
bool reply_lost_session(const json_t *reply);
