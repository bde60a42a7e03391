/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_SESSION_H
#define CLOCHE_SESSION_H
/* Reads an execution context (the directory that a task leaves): also while a task uses it, and
 * after a crash at any moment. One thread at a time; strings are borrowed until it is freed. */

#include <stddef.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cloche_session cloche_session;

/* Loads the context. CLOCHE_E_NOT_FOUND where the directory holds none. */
CLOCHE_API int cloche_session_load(const char *dir, cloche_session **ret, cloche_err *err);
CLOCHE_API void cloche_session_free(cloche_session *session);

CLOCHE_API const char *cloche_session_context_id(const cloche_session *session);
/* NULL: none. */
CLOCHE_API const char *cloche_session_model(const cloche_session *session);
CLOCHE_API const char *cloche_session_id_for_resume(const cloche_session *session);
CLOCHE_API const char *cloche_session_last_successful_response(const cloche_session *session);
CLOCHE_API size_t cloche_session_reply_count(const cloche_session *session);
/* The document in the form of context.json, events included. NULL on lack of memory. */
CLOCHE_API const char *cloche_session_json(cloche_session *session);

#ifdef __cplusplus
}
#endif
#endif
