/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Adds up from /proc what a process and everything below it use: for rooms without a control group,
 * and for what a group does not count. Also ends a part of such a tree. */

#include "provider/provider.h"

/* Add up the usage of process `root` (as we see it) and all its descendants: the time of living
 * processes and of all that were waited for; private memory (not files; what processes still share
 * after a fork is counted for each); threads; bytes to and from storage. Processes come and go
 * meanwhile, so the result is a sample. Values that we may not read count as 0. Return false if
 * root itself is gone. */
bool proctree_read(pid_t root, struct room_usage *ret);
/* Add the bytes that an open "io" of a process tells. */
void proctree_add_io(int fd, struct room_usage *sum);
/* Add such a sample to the usage that was known: its peaks are the highest values seen. */
void proctree_add_sample(struct room_usage *u, const struct room_usage *now);

/* Call visit() for root and its descendants until it returns false; dir is the process's folder of
 * /proc (O_PATH, borrowed). */
void proctree_each(pid_t root, bool (*visit)(void *user, pid_t pid, int dir), void *user);

/* Kill what belongs to the process below root whose pid is `leader`: its session, and everything
 * that descends from it through living parents, whatever user they run as now. namespaced: root is
 * process 1 of a pid namespace, and leader a pid in that. Return false if nothing was killed. */
bool proctree_kill(pid_t root, bool namespaced, pid_t leader);
/* Signal everything that descends from root through living parents, and not root itself. Return
 * false if there is nothing. */
bool proctree_signal_below(pid_t root, int sig);

/* Signal every process of the pid namespace whose process 1 is `init` (as we see it), including
 * that one, if the kernel delivers the signal to it. */
void proctree_signal_namespace(pid_t init, int sig);
