/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: take the machine from others: negative nice, real time, the killer's favour, higher
 *    limits
 * Wall: capabilities: neither SYS_NICE nor SYS_RESOURCE */
#include "attempt.h"

#include <sched.h>
#include <sys/resource.h>

int main(void)
{
	struct sched_param fifo = {.sched_priority = 1};
	struct rlimit core = {RLIM_INFINITY, RLIM_INFINITY}, nice = {40, 40};

	REFUSED(setpriority(PRIO_PROCESS, 0, -20));
	REFUSED(sched_setscheduler(0, SCHED_FIFO, &fifo));
	REFUSED(sched_setscheduler(0, SCHED_RR, &fifo));
	REFUSED(setrlimit(RLIMIT_NICE, &nice));
	REFUSED(setrlimit(RLIMIT_RTPRIO, &nice));
	REFUSED(syscall(SYS_prlimit64, 1, RLIMIT_NOFILE, &core, NULL));
	/* Answered with a success that changes nothing. */
	(void)setrlimit(RLIMIT_CORE, &core);
	if (getrlimit(RLIMIT_CORE, &core) < 0 || core.rlim_max > 1)
		escaped("core files");
	return verdict();
}
