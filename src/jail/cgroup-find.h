/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where this process is in the machine's control group hierarchies. Used by cgroup.c and probe.c.
 */

#include "jail/cgroup.h"

struct cgroup_place {
	char *v2;           /* our own group in the version 2 hierarchy, or NULL */
	char *v1[CGROUP_N]; /* and in each version 1 hierarchy */
};

/* Reads /proc/self/{cgroup,mountinfo}; what is not mounted is NULL. */
_warn_unused_ int cgroup_find(struct cgroup_place *ret, struct cloche_err *err);
void cgroup_place_done(struct cgroup_place *p);

/* "memory", "pids", "cpu", "cpuacct". */
const char *cgroup_controller_name(enum cgroup_controller c);

/* Whether the words in the file dir/name (controllers of a version 2 group) include `word`. */
bool cgroup_file_has(const char *dir, const char *name, const char *word);

/* The nearest group at or above `from` whose children have all of these controllers (bits) and
 * where we may make some: heap, or NULL. */
char *cgroup_find_v2_parent(const char *from, unsigned controllers);
