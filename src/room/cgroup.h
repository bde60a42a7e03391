/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The control group of one room, wherever it can be had: in a version 2 tree that was delegated to
 * us, in a scope that systemd makes for us, or in version 1 with a directory in each controller's
 * hierarchy. */

#include "provider/provider.h"
#include "room/cgroup-find.h"

struct cgroup_limits {
	uint64_t of[CGROUP_N]; /* bytes, processes, thousandths of a cpu; 0: none */
};

struct cgroup {
	int version;                /* 1 or 2; 0: there is none */
	char *path[CGROUP_N];       /* directory per controller; version 2 uses only the first (the
				     * processes are in a group below it). NULL if that
				     * controller is not used */
	int dirfd;                  /* version 2: for CLONE_INTO_CGROUP; else -1 */
	char reason[CGROUP_N][400]; /* why a wanted controller could not be had, or "" */
	char *scope;                /* systemd unit that the group is in, or NULL */
	uint64_t memory_peak, pids_peak; /* the highest values that cgroup_read_usage has seen */
};

#define CGROUP_INIT ((struct cgroup){.dirfd = -1})

/* Return the directory with the files of that controller, or NULL. */
static inline const char *cgroup_dir(const struct cgroup *g, enum cgroup_controller c)
{
	return g->version == 2 ? g->path[0] : g->path[c];
}

/* Make a group named `name` with these limits, in `parent` (a version 2 directory) or, if that is
 * NULL, wherever this process may: beside or below its own group. For that it may move this process
 * (and, if only its own group was delegated to it, the processes that share the group) to another
 * group of the same delegation. A limit that cannot be enforced leaves a reason; see cgroup_lacks.
 * Fail only if something is broken, and then leave nothing behind. */
_warn_unused_ int cgroup_make(const char *parent, const char *name,
	const struct cgroup_limits *limits, struct cgroup *ret, struct cloche_err *err);

/* Append, in the form of cgroup_record, every group that cgroup_make might make for the same
 * arguments. If this is written down before cgroup_make is called, nothing is lost when its caller
 * dies half-way. */
_warn_unused_ int cgroup_plan(const char *parent, const char *name,
	const struct cgroup_limits *limits, struct buf *out, struct cloche_err *err);

/* Bound what sockets hold, for a memory limit of that many bytes, in a group that somebody else has
 * made. Return 0 or -errno. Version 2 counts it by itself. */
_warn_unused_ int cgroup_bound_sockets(const struct cgroup *g, uint64_t memory_bytes);

/* Return the reason why the limit of that controller is not in force; NULL if it is (or none was
 * wanted). */
const char *cgroup_lacks(const struct cgroup *g, enum cgroup_controller c);

/* Move a process into the group (version 1; with version 2 it is born there through dirfd). */
_warn_unused_ int cgroup_add(const struct cgroup *g, pid_t pid, struct cloche_err *err);

/* Read the usage; values that are not counted are 0 (bytes of storage are in version 2 alone). If
 * the kernel keeps no peak (cgroup_keeps_peaks), the peak is the highest value that calls of this
 * function have seen. */
void cgroup_read_usage(struct cgroup *g, struct room_usage *ret);

/* Return whether the kernel keeps both peaks. */
bool cgroup_keeps_peaks(const struct cgroup *g);

/* Send sig to every process in the group. SIGKILL goes through cgroup.kill if there is one. */
void cgroup_kill(const struct cgroup *g, int sig);

/* Remove the directories, waiting up to a second for the last processes to vanish, and free the
 * rest. Afterwards g is empty. */
void cgroup_remove(struct cgroup *g);

/* Append one line of text per directory; and, after a crash, kill what runs in the group that such
 * a line names, and remove it. Only directories that lie in a cgroup hierarchy and have the name of
 * a room's group are touched. */
_warn_unused_ int cgroup_record(const struct cgroup *g, struct buf *out);
_warn_unused_ int cgroup_reap(struct str line, struct cloche_err *err);
/* Return whether the group of such a line exists. */
bool cgroup_is_there(struct str line);
