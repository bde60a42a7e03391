/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The control group of one room, wherever it can be had: in a version 2 tree that was delegated to
 * us, in a scope that systemd makes for us, or in version 1 with a directory in each controller's
 * hierarchy. */

#include "base/buf.h"
#include "base/err.h"
#include "provider/cgroup-find.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct cgroup_limits {
	uint64_t memory_bytes, cpus_milli, pids; /* 0: none */
};

struct cgroup {
	int version;                /* 1 or 2; 0: there is none */
	char *path[CGROUP_N];       /* directory per controller; version 2 uses only the first (the
				     * processes are in a group below it). NULL if that
				     * controller is not used */
	int dirfd;                  /* version 2: for CLONE_INTO_CGROUP; else -1 */
	char reason[CGROUP_N][400]; /* why a wanted controller could not be had, or "" */
	char *scope;                /* unit of systemd's that the group is in, or NULL */
	uint64_t memory_peak, pids_peak; /* the most that cgroup_read_usage has seen */
};

#define CGROUP_INIT ((struct cgroup){.dirfd = -1})

/* Makes a group named `name` with these limits, in `parent` (a version 2 directory) or, if that
 * is NULL, wherever this process may: beside or below its own group. For that it may move this
 * process (and, if nothing but its own group was delegated to it, those that share the group) to
 * another group of the same delegation. Limits that cannot be had leave a reason; cgroup_lacks
 * tells. Fails only if something is broken (and then leaves nothing). */
_warn_unused_ int cgroup_make(const char *parent, const char *name,
	const struct cgroup_limits *limits, struct cgroup *ret, struct cloche_err *err);

/* Appends, in the form of cgroup_record, every group that cgroup_make might make for the same
 * arguments: written down before it makes one, nothing is lost when its caller dies half-way. */
_warn_unused_ int cgroup_plan(const char *parent, const char *name,
	const struct cgroup_limits *limits, struct buf *out, struct cloche_err *err);

/* The reason why the limit of that controller is not in force; NULL if it is (or none was
 * wanted). */
const char *cgroup_lacks(const struct cgroup *g, enum cgroup_controller c);

/* Moves a process into the group (version 1; version 2 does it at birth through dirfd). */
_warn_unused_ int cgroup_add(const struct cgroup *g, pid_t pid, struct cloche_err *err);

struct cgroup_usage {
	uint64_t cpu_usec, memory_bytes, memory_peak_bytes, pids, pids_peak, oom_kills;
	uint64_t io_read_bytes, io_write_bytes; /* version 2 alone */
	bool pids_refused;
};

/* What is not counted is 0. If the kernel keeps no peak (cgroup_keeps_peaks), the peak is the
 * most that calls of this function have seen. */
void cgroup_read_usage(struct cgroup *g, struct cgroup_usage *ret);

/* Whether the kernel keeps both peaks by itself. */
bool cgroup_keeps_peaks(const struct cgroup *g);

/* Sends sig to every process in the group. SIGKILL goes through cgroup.kill if there is one. */
void cgroup_kill(const struct cgroup *g, int sig);

/* Removes the directories, waiting up to a second for the last processes to vanish, and frees the
 * rest. All is empty after it. */
void cgroup_remove(struct cgroup *g);

/* One line of text per directory, and the removal of what such a line names after a crash: kills
 * what runs there first. Only directories that lie in a cgroup hierarchy and bear the name of a
 * room's group are touched. */
_warn_unused_ int cgroup_record(const struct cgroup *g, struct buf *out);
_warn_unused_ int cgroup_reap(struct str line, struct cloche_err *err);
