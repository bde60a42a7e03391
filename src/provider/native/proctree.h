/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Adds up from /proc what a process and everything below it use: for rooms without a control group,
 * and for what a group does not count. Also ends a part of such a tree. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct proctree_usage {
	uint64_t cpu_usec;     /* of living processes, and of all that were waited for */
	uint64_t memory_bytes; /* private memory (not files); what processes still share after a
				* fork is counted for each */
	uint64_t pids;         /* threads */
	uint64_t io_read_bytes, io_write_bytes; /* to and from storage */
};

/* Add up the usage of process `root` (as we see it) and all its descendants. Processes come and go
 * meanwhile, so the result is a sample. Values that we may not read count as 0. Return false if
 * root itself is gone. */
bool proctree_read(pid_t root, struct proctree_usage *ret);

/* Call visit() for root and its descendants until it returns false; dir is the process's folder of
 * /proc (O_PATH, borrowed). */
void proctree_each(pid_t root, bool (*visit)(void *user, pid_t pid, int dir), void *user);

/* Kill what belongs to the process whose pid is `leader` in the pid namespace of root (its process
 * 1, as we see it): its session, and everything that descends from it through living parents,
 * whatever user they run as now. Return false if nothing was killed. */
bool proctree_kill(pid_t root, pid_t leader);

/* Signal every process of the pid namespace whose process 1 is `init` (as we see it), including
 * that one, if the kernel delivers the signal to it. */
void proctree_signal_namespace(pid_t init, int sig);
