/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_WATCH_H
#define CLOCHE_WATCH_H
/* Asking a person about what a sandbox's allowlist refuses. As long as somebody watches, a request
 * that a rule could allow waits for an answer, for a minute at most; then it is refused, as it is
 * if nobody watches. Addresses, what was denied, and what no rule can allow are never asked. A
 * watch may be used by one thread at a time. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "instance.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cloche_watch cloche_watch;

/* Texts are terminated; the room has chosen them, so they may hold any other bytes. */
typedef struct cloche_question {
	size_t size;         /* of this struct */
	uint32_t number;     /* for the answer */
	bool withdrawn;      /* it needs no answer any more; nothing else is set */
	uint32_t pid;        /* of the process that asks, as it is known inside; 0: not known */
	const char *program; /* its path or name; "": not known */
	const char *method;
	const char *url;    /* cut after some 2,000 bytes */
	const char *always; /* what CLOCHE_ANSWER_ALWAYS would allow: a host, or a URL */
} cloche_question;

typedef enum cloche_answer {
	CLOCHE_ANSWER_NO,
	CLOCHE_ANSWER_ONCE,   /* allow this request */
	CLOCHE_ANSWER_ALWAYS, /* add a rule, as cloche_instance_add_allowlist() does: for the
				 host if no rule names it, else for just such requests. Also keep
				 it for the workspace: cloche_sandbox_use_project() adds it after
				 cloche_sandbox_load_config() of the user's own file */
} cloche_answer;

/* Watch a sandbox from now on. instance is copied. CLOCHE_E_UNSUPPORTED if it has no network. */
CLOCHE_API int cloche_watch_new(
	const cloche_instance *instance, cloche_watch **ret, cloche_err *err);
/* Return a descriptor (owned by the watch) that is readable when cloche_watch_next() has
 * something. */
CLOCHE_API int cloche_watch_fd(const cloche_watch *watch);
/* Return 1 with the next question in *ret, valid until the next call; 0 if there is none now; or a
 * negated error code, CLOCHE_E_BROKEN when the sandbox has ended. Does not wait. */
CLOCHE_API int cloche_watch_next(cloche_watch *watch, const cloche_question **ret, cloche_err *err);
/* Answer a question. One that needs no answer any more is no error. If CLOCHE_ANSWER_ALWAYS cannot
 * be kept for the workspace, that is an error, and it holds in this sandbox all the same. */
CLOCHE_API int cloche_watch_answer(
	cloche_watch *watch, uint32_t number, cloche_answer answer, cloche_err *err);
/* Watch no longer. NULL is fine. */
CLOCHE_API void cloche_watch_free(cloche_watch *watch);

#ifdef __cplusplus
}
#endif
#endif
