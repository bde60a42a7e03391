/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a process and everything below it use, added up from /proc: for rooms without a control
 * group, and for what a group does not count; and the end of a part of it. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct proctree_usage {
	uint64_t cpu_usec;     /* of the living and of all that were waited for */
	uint64_t memory_bytes; /* memory of their own (not files); what a fork still shares is
				* counted for both */
	uint64_t pids;         /* threads */
	uint64_t io_read_bytes, io_write_bytes; /* towards storage */
};

/* Adds up process `root` (as we see it) and all its descendants. They come and go meanwhile: the
 * result is a sample. What we may not read counts 0. False if root itself is gone. */
bool proctree_read(pid_t root, struct proctree_usage *ret);

/* Calls visit() for root and its descendants until it returns false; dir is the process's folder of
 * /proc (O_PATH, borrowed). */
void proctree_each(pid_t root, bool (*visit)(void *user, pid_t pid, int dir), void *user);

/* Kills what belongs to the process that is called `leader` in the pid namespace of root (its
 * process 1, as we see it): its session, and whatever descends from that by parents that live.
 * Whoever those have become makes no difference. False if nothing was killed. */
bool proctree_kill(pid_t root, pid_t leader);

/* Signals every process of the pid namespace whose process 1 this is (as we see it), that one
 * too, if the kernel lets it have the signal. */
void proctree_signal_namespace(pid_t init, int sig);
