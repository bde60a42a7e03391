/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_PLANTED_H
#define CLOCHE_PLANTED_H
/* What a sandbox left in directories that it was granted and the host would run or obey without
 * being asked: hooks and configurations of git, settings of editors and shells, ... (the whole
 * list: docs/design/workspace.md). When a sandbox ends these are looked for; what would run by
 * itself is set aside (renamed), the rest is named. What was found is kept until it is taken. */

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One thing. The strings are borrowed for the call of cloche_planted_fn. Paths are of the host;
 * bytes in them that are no UTF-8 are replaced, but not in `quoted` and `restore`. */
typedef struct cloche_planted {
	const char *sandbox;   /* the id of the one that left it */
	const char *path;      /* where it is, or was */
	const char *quoted;    /* the same as one word of a shell, safe to show on a terminal */
	const char *what;      /* in words, such as "a hook of git" */
	const char *set_aside; /* the path that it has now; NULL: it was only named */
	const char *restore;   /* a command for a shell that puts it back; NULL as set_aside */
} cloche_planted;

typedef void (*cloche_planted_fn)(const cloche_planted *thing, void *user);

/* Calls fn with everything that is to be told, and forgets it then. sandbox: an id, to take what
 * that one left; NULL: what all have left whose makers are not there any more to take it, crashed
 * ones (which are looked through now) among them. Nothing to tell is no error. Any thread may call
 * it. Returns 0 or a negated error code. */
CLOCHE_API int cloche_planted_take(
	const char *sandbox, cloche_planted_fn fn, void *user, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
