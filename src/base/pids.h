/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A set of processes by their pids, in the order in which they were added. */

#include "base/macro.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct pids {
	pid_t *all;
	size_t n;
	size_t room;         /* of all */
	unsigned char *seen; /* a bit for each pid */
};

/* Free the memory of the set, which is empty and usable after it. */
void pids_done(struct pids *p);

bool pids_has(const struct pids *p, pid_t pid);

/* Add pid, which must not be in the set. Return false if there is no memory, or no process can
 * have such a pid. */
_warn_unused_ bool pids_add(struct pids *p, pid_t pid);
