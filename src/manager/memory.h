/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How much memory the sandboxes of this process can have: the machine's memory, limited by the
 * control groups in which the process runs (of a container or a CI job). */

#include <stdint.h>

struct memory {
	uint64_t total,
		available; /* bytes; cache that can be dropped at once counts as available */
};

/* Both are UINT64_MAX if the machine's memory is not known. */
void memory_read(struct memory *ret);

/* Lower *m to the limits of this group (a directory of version 1 or 2) and of its parents. */
void memory_bound(struct memory *m, const char *group);
