/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Calls of other processes that change the mode of what is there (chmod(2) and its kin). */

#include "jail/asked.h"

struct mode_call {
	int dir;       /* as in the call */
	uint64_t path; /* in the caller's memory; 0: dir itself */
	mode_t mode;
	int flags;
};

/* Return false if it is another call. */
bool mode_read_call(const struct asked *a, struct mode_call *ret);
/* Open the target as the caller would (O_PATH). Return the descriptor, or -errno for the caller.
 * Whether the caller was still there has to be asked afterwards (asked_is_valid()). */
_warn_unused_ int mode_open(const struct asked *a, const struct mode_call *q);
