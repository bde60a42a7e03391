/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The document of context.json: its members, its replies. No files here. Only store.c includes
 * this.
 *
 * A reply under way has one member more, "events_offset": where its events begin in events.jsonl.
 */

#include "session/store.h"

#define REPLY_PENDING "events_offset"

/* A new document without replies in *ret. */
_warn_unused_ int document_new(const char *context_id, json_t **ret, struct cloche_err *err);

/* Parses a file's text and checks it; a "task_id" becomes "execution_context_id". Returns 0,
 * -E_CORRUPT with the reason, -E_NO_MEMORY. */
_warn_unused_ int document_parse(struct str text, json_t **ret, struct cloche_err *err);

/* The file's text into out; events of the oldest replies are left out of it (and of the document)
 * if it would be larger than out may be. */
_warn_unused_ int document_write(json_t *doc, struct buf *out, struct cloche_err *err);

json_t *document_replies(const json_t *doc);

/* Sets the members of a reply, keeps others that it has. */
_warn_unused_ int reply_set(
	json_t *reply, const struct session_reply *from, struct cloche_err *err);

/* A new reply of now that is under way and has its events from offset on. */
_warn_unused_ int reply_pending_new(
	const char *request_text, uint64_t offset, json_t **ret, struct cloche_err *err);

/* A new finished reply of now. */
_warn_unused_ int reply_new(const struct session_reply *from, json_t **ret, struct cloche_err *err);

bool reply_is_pending(const json_t *reply);

/* Completes a pending reply from the events that came before the crash. */
_warn_unused_ int reply_rebuild(json_t *reply, const json_t *events, struct cloche_err *err);

/* The agent's session: the reply's own, else from its events; the null view: none. */
struct str reply_session_id(const json_t *reply);
