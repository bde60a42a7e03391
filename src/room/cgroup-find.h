/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Finds this process in the machine's control group hierarchies. */

#include "base/err.h"
#include "base/str.h"

enum cgroup_controller {
	CGROUP_MEMORY,
	CGROUP_PIDS,
	CGROUP_CPU,
	CGROUP_CPUACCT,
	CGROUP_CPUSET,
	CGROUP_IO,
	CGROUP_N
};

struct cgroup_place {
	char *v2;           /* our own group in the version 2 hierarchy, or NULL */
	char *v2_mount;     /* where that hierarchy is mounted */
	char *v1[CGROUP_N]; /* our own group in each version 1 hierarchy */
};

/* Read /proc/self/{cgroup,mountinfo}. Hierarchies that are not mounted are NULL. */
_warn_unused_ int cgroup_find(struct cgroup_place *ret, struct cloche_err *err);

/* The same from the text of those two files. Return 0 or -ENOMEM. */
_warn_unused_ int cgroup_find_in(struct str groups, struct str mountinfo, struct cgroup_place *ret);

void cgroup_place_done(struct cgroup_place *p);

static inline void cgroup_place_donep(struct cgroup_place *p)
{
	cgroup_place_done(p);
}

/* Return "memory", "pids", "cpu", "cpuacct", "cpuset" or "io". */
const char *cgroup_controller_name(enum cgroup_controller c);
