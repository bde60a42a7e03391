/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_PLANTED_H
#define CLOCHE_PLANTED_H
/* Planted files: files that a sandbox left in directories granted to it, and that the host would
 * run or obey without being asked, such as hooks and configurations of git, and settings of editors
 * and shells (the whole list: docs/design/workspace.md). When a sandbox ends, cloche searches for
 * them. What would run by itself is set aside (renamed), the rest is only reported. Findings are
 * kept until they are taken. */

#include "error.h"
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One finding. The strings are borrowed for the call of cloche_planted_fn. Paths are paths of the
 * host; bytes that are not UTF-8 are replaced, except in `quoted` and `restore`. */
typedef struct cloche_planted {
	const char *sandbox;   /* the id of the sandbox that left it */
	const char *path;      /* where it is, or was; "": `what` says what is not listed */
	const char *quoted;    /* path as one shell word, safe to print on a terminal */
	const char *what;      /* a description, such as "a hook of git" */
	const char *set_aside; /* its new path; NULL: it was only reported */
	const char *restore;   /* a shell command that puts it back; NULL if not set aside */
	bool notice; /* there is nothing to be looked at: `what` is a sentence about what happened
		      */
} cloche_planted;

typedef void (*cloche_planted_fn)(const cloche_planted *thing, void *user);

/* Call fn for each finding, then forget them. If sandbox is an id, take the findings of that
 * sandbox. If it is NULL, take those of all sandboxes whose creators no longer exist to take them,
 * including crashed sandboxes (which are searched now). It is not an error if there are none. May
 * be called by any thread. Return 0 or a negated error code. */
CLOCHE_API int cloche_planted_take(
	const char *sandbox, cloche_planted_fn fn, void *user, cloche_err *err);

/* The same, but keep the findings. */
CLOCHE_API int cloche_planted_look(
	const char *sandbox, cloche_planted_fn fn, void *user, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
