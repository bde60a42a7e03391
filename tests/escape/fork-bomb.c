/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: use up the process table
 * Wall: control group, or the user namespace's own count: the limit of --pids
 * Limits: --pids 64 */
#include "attempt.h"

#include <pthread.h>
#include <sys/wait.h>

static void *wait_long(void *arg)
{
	pause();
	return arg;
}

int main(void)
{
	pthread_attr_t small;
	pthread_t t;
	int n = 0, threads = 0, i;

	for (i = 0; i < 400; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			pause();
			_exit(0);
		}
		if (pid < 0)
			break;
		n++;
	}
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	while (threads < 400 && pthread_create(&t, &small, wait_long, NULL) == 0)
		threads++;
	printf("%d processes, %d threads\n", n, threads);
	if (n + threads > 64)
		escaped("more than were allowed");
	kill(-1, SIGKILL);
	return verdict();
}
