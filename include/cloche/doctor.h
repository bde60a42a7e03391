/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_DOCTOR_H
#define CLOCHE_DOCTOR_H
/* What works on this machine, what does not, and what to do about it. */

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum cloche_check_state { CLOCHE_CHECK_OK, CLOCHE_CHECK_DEGRADED, CLOCHE_CHECK_MISSING };

typedef struct cloche_check {
	const char *name;              /* "user namespaces" */
	enum cloche_check_state state; /* degraded: cloche works with limitations */
	const char *detail;            /* what was found, or the exact blocker */
	const char *advice;            /* what to do, or "" */
} cloche_check;

/* Run every check and call fn with each result. The strings are borrowed for the call. Return 0 if
 * a sandbox can be made here (by provider "landlock" alone, if a check is missing), 1 if not,
 * negative on failure. Nothing is left behind. */
CLOCHE_API int cloche_doctor(
	void (*fn)(const cloche_check *check, void *user), void *user, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
