/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shows how much was copied, on standard error if that is a terminal, after a second. */

#include <stdbool.h>
#include <stdint.h>

struct progress {
	uint64_t began; /* now_usec() */
	bool shown;
};

void progress_begin(struct progress *p);
/* user is the struct progress (cloche_files_progress_fn). */
void progress_show(uint64_t bytes, void *user);
/* Clear the line. */
void progress_end(struct progress *p);
