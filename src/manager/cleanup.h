/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* When what crashed sandboxes left was last removed, and what could not be: in a file of the
 * directory of all sandboxes, for whoever asks for their status. */

#include <stdint.h>

enum { CLEANUP_ERROR_MAX = 512 };

struct cleanup {
	uint64_t at_usec;  /* since 1970; 0: never */
	uint64_t error_at; /* 0: nothing has failed */
	char error[CLEANUP_ERROR_MAX];
};

/* error: NULL if nothing failed; an older one stays. Best effort. */
void cleanup_note(int base, const char *error);
void cleanup_read(int base, struct cleanup *ret);
