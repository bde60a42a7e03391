/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_SESSION_H
#define CLOCHE_SESSION_H
/* Reads an execution context (the directory that a task leaves), even while a task is using it or
 * after a crash at any moment. Programs that drive an agent without cloche/task.h can write one,
 * too. A handle may be used by one thread at a time. Strings are borrowed until the handle changes
 * or is freed. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "event.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cloche_session cloche_session;

/* Load the context, read-only. CLOCHE_E_NOT_FOUND if the directory holds none. The caller frees
 * *ret. */
CLOCHE_API int cloche_session_load(const char *dir, cloche_session **ret, cloche_err *err);
/* Open the context for writing; create it, and its directory, if it does not exist. context_id
 * names a new context (NULL: generated), or one without a name; for any other it must be the same
 * or NULL (CLOCHE_E_USAGE). The caller frees *ret. Until then the context is locked: CLOCHE_E_BUSY
 * if a task or another handle has it. A damaged file is kept under another name and a new one is
 * started; the info's warning reports this. */
CLOCHE_API int cloche_session_open(
	const char *dir, const char *context_id, cloche_session **ret, cloche_err *err);
/* NULL is fine. */
CLOCHE_API void cloche_session_free(cloche_session *session);

/* What a context says. Strings are NULL if there is none. */
typedef struct cloche_session_info {
	size_t size;            /* of this struct in the library: later versions append members */
	const char *context_id; /* "" if somebody else has written the context without a name */
	const char *model;      /* for executions that name none */
	const char *id_for_resume;
	const char *last_successful_response;
	size_t reply_count;
	const char *warning; /* what the user should know about the opening, in one sentence */
} cloche_session_info;
/* Return what the context says now. Never NULL; the struct is borrowed until the next call. */
CLOCHE_API const cloche_session_info *cloche_session_info_of(const cloche_session *session);

/* Return the document in the format of context.json, with events. NULL if out of memory. */
CLOCHE_API const char *cloche_session_json(cloche_session *session);

/* The functions that write replace context.json atomically before they return: readers, also after
 * a crash, see either the old or the new file. CLOCHE_E_DENIED if the handle comes from
 * cloche_session_load(). */

/* Set the model for later executions that do not name one; copied. NULL or "": none. */
CLOCHE_API int cloche_session_set_model(
	cloche_session *session, const char *model, cloche_err *err);

/* The reply of one agent run. Everything is borrowed for the call.
 * Bytes that are not UTF-8 become U+FFFD. */
typedef struct cloche_session_reply {
	size_t size;            /* of this struct; error.h */
	const char *session_id; /* NULL: from events (the last result, else system/init) */
	uint64_t duration_ms;
	double total_cost_usd; /* 0 or more, finite */
	uint64_t num_turns;
	bool is_error;
	cloche_event_usage usage;  /* extra NULL means {} */
	const char *request_text;  /* NULL is stored as null */
	const char *response_text; /* NULL is stored as null */
	const char *events;        /* one per line, as the agent printed them; NULL: none */
	size_t events_length;      /* in bytes. Lines that are not events are left out, and so is
				    * everything beyond 64 MiB of memory */
} cloche_session_reply;

#define CLOCHE_SESSION_REPLY_INIT                                                                  \
	{                                                                                          \
		sizeof(cloche_session_reply), NULL, 0, 0, 0, false, {0, 0, 0, 0, NULL}, NULL,      \
			NULL, NULL, 0                                                              \
	}

/* Replace the last reply if it has the same request text (or neither has one): everything but its
 * timestamp and the members that are not in the struct, and including its events. Otherwise add a
 * reply with the current time. Repeated calls while an agent works therefore keep a single reply. A
 * prompt that was executed twice in a row cannot be distinguished from a reply that has grown, even
 * if a task left the last reply; cloche_task_execute() itself always adds one. events.jsonl, which
 * tasks write, is not touched. CLOCHE_E_USAGE: total_cost_usd or usage.extra is invalid. */
CLOCHE_API int cloche_session_update_or_add_reply(
	cloche_session *session, const cloche_session_reply *reply, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
