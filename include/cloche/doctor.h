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
	enum cloche_check_state state; /* degraded: cloche works, with less */
	const char *detail;            /* what was found, or the exact blocker */
	const char *advice;            /* what to do, or "" */
} cloche_check;

/* Makes every check and calls fn with each; strings are borrowed during the call. Returns 0 if a
 * sandbox can be made here, 1 if not, negative on failure. Leaves nothing behind. */
CLOCHE_API int cloche_doctor(
	void (*fn)(const cloche_check *check, void *user), void *user, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
