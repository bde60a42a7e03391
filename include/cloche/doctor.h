/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_DOCTOR_H
#define CLOCHE_DOCTOR_H
/* What works on this machine, what does not, and what to do about it. */

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum cloche_check_state {
	CLOCHE_CHECK_OK,
	CLOCHE_CHECK_DEGRADED, /* cloche works with limitations */
	CLOCHE_CHECK_MISSING,
	CLOCHE_CHECK_UNKNOWN, /* of a place: its provider cannot say */
};

typedef struct cloche_check {
	const char *name; /* "user namespaces" */
	enum cloche_check_state state;
	const char *detail; /* what was found, or the exact blocker */
	const char *advice; /* what to do, or "" */
} cloche_check;

/* Run every check of this machine (place NULL) and call fn with each result. The strings are
 * borrowed for the call. Return 0 if a sandbox can be made here (by provider "landlock" alone, if a
 * check is missing), 1 if not, negative on failure. Nothing is left behind.
 *
 * Do the same for a place where rooms of a provider are made: what `--provider` and `--place` name.
 * The checks are those of the connection and then of the other machine, where a small program is
 * copied, as for a room. What is in the way there is a check that is missing. It takes a minute
 * and a half at most. Return 0 if a sandbox can be made there (or may be: a check is unknown), 1 if
 * not, negative on failure: the provider is unknown, or has no places (CLOCHE_E_UNSUPPORTED). */
CLOCHE_API int cloche_doctor(const char *provider, const char *place,
	void (*fn)(const cloche_check *check, void *user), void *user, cloche_err *err);

#ifdef __cplusplus
}
#endif
#endif
