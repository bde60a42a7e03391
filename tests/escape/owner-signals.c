/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: have the kernel signal a process of the host: owners of descriptors, leases, directory
 *    notification, timers
 * Wall: pid namespace: a number means a process of the room */
#include "attempt.h"

#include <time.h>

int main(void)
{
	int victim = canary_number("CANARY_PID"), pipes[2], lease, dir, r;
	struct f_owner_ex owner = {F_OWNER_PID, victim};
	struct f_owner_ex group = {F_OWNER_PGRP, victim};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGTERM};
	timer_t timer;

	if (pipe(pipes) < 0)
		return BROKEN;
	REFUSED(fcntl(pipes[0], F_SETOWN, victim));
	REFUSED(fcntl(pipes[0], F_SETOWN, -victim));
	REFUSED(fcntl(pipes[0], F_SETOWN_EX, &owner));
	REFUSED(fcntl(pipes[0], F_SETOWN_EX, &group));
	fcntl(pipes[0], F_SETSIG, SIGTERM);
	fcntl(pipes[0], F_SETFL, O_ASYNC | O_NONBLOCK);
	(void)!write(pipes[1], "x", 1);
	lease = open("/ro/file", O_RDONLY | O_CLOEXEC);
	r = fcntl(lease, F_SETLEASE, F_RDLCK);
	printf("lease: %s\n", r < 0 ? strerror(errno) : "taken, and gone with the room");
	REFUSED(fcntl(lease, F_SETOWN, victim));
	dir = open("/workspace", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	REFUSED(fcntl(dir, F_SETOWN, victim));
	event._sigev_un._tid = victim;
	REFUSED(timer_create(CLOCK_MONOTONIC, &event, &timer));
	return verdict();
}
