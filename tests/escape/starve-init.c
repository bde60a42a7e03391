/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: make process 1, which belongs to the same user, helpless: its limits, its place in the
 *    queues for processors and disks
 * Wall: seccomp: no such call for process 1 */
#include "attempt.h"

#include <sched.h>
#include <sys/resource.h>

int main(void)
{
	struct rlimit few = {4, 4}, now;
	struct sched_param param = {0};
	unsigned attr[12] = {48, SCHED_IDLE};
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	REFUSED(prlimit(1, RLIMIT_NOFILE, &few, NULL));
	REFUSED(prlimit(1, RLIMIT_NPROC, &few, &now));
	REFUSED(setpriority(PRIO_PROCESS, 1, 19));
	REFUSED(setpriority(PRIO_PGRP, 1, 19));
	REFUSED(sched_setscheduler(1, SCHED_IDLE, &param));
	REFUSED(sched_setparam(1, &param));
	REFUSED(sched_setaffinity(1, sizeof(one), &one));
	REFUSED(syscall(SYS_sched_setattr, 1, attr, 0));
	REFUSED(syscall(SYS_ioprio_set, 1 /* a process */, 1, 3 << 13));
	REFUSED(syscall(SYS_ioprio_set, 2 /* a group */, 1, 3 << 13));
	REFUSED(syscall(SYS_sched_setaffinity, 0xff00000001ULL, sizeof(one), &one));
	/* Of one's own all that works. */
	if (prlimit(getpid(), RLIMIT_NOFILE, NULL, &now) < 0 ||
		setpriority(PRIO_PROCESS, 0, 19) < 0 ||
		sched_setaffinity(0, sizeof(one), &one) < 0 ||
		sched_setscheduler(getpid(), SCHED_IDLE, &param) < 0) {
		printf("of one's own: %s\n", strerror(errno));
		return BROKEN;
	}
	return verdict();
}
