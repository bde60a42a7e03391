/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: stay when the room has ended: two forks, sessions of one's own, all signals ignored, a
 *    sibling of one's parent
 * Wall: pid namespace: the kernel kills everything in it when process 1 ends */
#include "attempt.h"

#include <sched.h>

static void stay(void)
{
	int sig;

	setsid();
	for (sig = 1; sig < 65; sig++)
		signal(sig, SIG_IGN);
	close(0);
	close(1);
	close(2);
	for (;;)
		pause();
}

int main(void)
{
	int i;

	for (i = 0; i < 3; i++) {
		pid_t pid = i < 2 ? fork()
				  : (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);

		if (pid == 0) {
			setsid();
			if (fork() == 0)
				stay();
			if (i != 1)
				stay();
			_exit(0);
		}
		if (pid < 0)
			printf("held: %s\n", strerror(errno));
	}
	usleep(20000);
	/* The runner looks whether they are gone. */
	return HELD;
}
