/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The time of the last cleanup after crashed sandboxes, and the last failure of one. Both are in a
 * file in the directory of all sandboxes, for status output. */

#include <stdint.h>

enum { CLEANUP_ERROR_MAX = 512 };

struct cleanup {
	uint64_t at_usec;  /* since 1970; 0: never */
	uint64_t error_at; /* 0: nothing has failed */
	char error[CLEANUP_ERROR_MAX];
};

/* Note a cleanup. error: NULL if nothing failed; an older error stays. Best effort. */
void cleanup_note(int base, const char *error);
void cleanup_read(int base, struct cleanup *ret);
