/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How much memory sandboxes of this process can have: what the machine has, and no more than the
 * control groups give in which it runs (a container's, a job's of CI). */

#include <stdint.h>

struct memory {
	uint64_t total, available; /* bytes; a cache that can be dropped at once is available */
};

/* UINT64_MAX in both if the machine does not say what it has. */
void memory_read(struct memory *ret);

/* Lowers *m to what this group (a directory of version 1 or 2) and those above it give. */
void memory_bound(struct memory *m, const char *group);
