/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_SESSION_H
#define CLOCHE_SESSION_H
/* Reads an execution context (the directory that a task leaves): also while a task uses it, and
 * after a crash at any moment. Who drives an agent without cloche/task.h can write one, too. A
 * handle may be used by one thread at a time; strings are borrowed until it changes or is freed. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "event.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cloche_session cloche_session;

/* Loads the context, for reading alone. CLOCHE_E_NOT_FOUND if the directory holds none. The
 * caller frees *ret. */
CLOCHE_API int cloche_session_load(const char *dir, cloche_session **ret, cloche_err *err);
/* Opens the context for writing; makes it, and its directory, if there is none. context_id names
 * a new one (NULL: generated); of one that is there it has to be the same, or NULL
 * (CLOCHE_E_USAGE). The context is locked until *ret, which the caller frees, is freed:
 * CLOCHE_E_BUSY while a task or another handle has it. A damaged file is kept under another name,
 * and a new one begun: cloche_session_warning() says so. */
CLOCHE_API int cloche_session_open(
	const char *dir, const char *context_id, cloche_session **ret, cloche_err *err);
/* What a person should know of the opening, in a sentence; NULL: nothing. */
CLOCHE_API const char *cloche_session_warning(const cloche_session *session);
/* NULL is fine. */
CLOCHE_API void cloche_session_free(cloche_session *session);

CLOCHE_API const char *cloche_session_context_id(const cloche_session *session);
/* NULL: none. */
CLOCHE_API const char *cloche_session_model(const cloche_session *session);
CLOCHE_API const char *cloche_session_id_for_resume(const cloche_session *session);
CLOCHE_API const char *cloche_session_last_successful_response(const cloche_session *session);
CLOCHE_API size_t cloche_session_reply_count(const cloche_session *session);
/* The document in the form of context.json, events included. NULL on lack of memory. */
CLOCHE_API const char *cloche_session_json(cloche_session *session);

/* What writes replaces context.json as a whole and atomically before it returns: a reader, and
 * whoever comes after a crash, finds all of it or nothing. CLOCHE_E_DENIED: the handle is one of
 * cloche_session_load(). */

/* The model that later executions have unless they name one; copied. NULL or "": none. */
CLOCHE_API int cloche_session_set_model(
	cloche_session *session, const char *model, cloche_err *err);

/* What a run of an agent left. All borrowed for the call; zero it before it is filled. Bytes that
 * are no UTF-8 become U+FFFD. */
typedef struct cloche_session_reply {
	const char *session_id; /* NULL: from events (the last result's, else of system/init) */
	uint64_t duration_ms;
	double total_cost_usd; /* 0 or more, finite */
	uint64_t num_turns;
	bool is_error;
	cloche_event_usage usage;  /* extra NULL: {} */
	const char *request_text;  /* NULL: null */
	const char *response_text; /* NULL: null */
	const char *events;        /* an event a line, as the agent printed them; NULL: none */
	size_t events_length;      /* bytes of events. What is no event is left out, and what is
				    * beyond 64 MiB of memory */
} cloche_session_reply;

/* Replaces the last reply if its request text is the same (or both have none): all of it but its
 * timestamp and members that are not in the struct, its events included. Else a reply of now is
 * added. So calling it again and again while an agent works keeps one reply. It cannot tell a
 * prompt that was executed twice in a row from one whose reply has grown, also if a task left
 * the last reply: a task itself, cloche_task_execute(), adds one each time.
 * events.jsonl, which tasks write, is not touched. CLOCHE_E_USAGE: total_cost_usd or usage.extra
 * cannot be. */
CLOCHE_API int cloche_session_update_or_add_reply(
	cloche_session *session, const cloche_session_reply *reply, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
