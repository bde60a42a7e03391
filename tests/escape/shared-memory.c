/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: use up memory by System V segments, which outlive their makers
 * Wall: ipc namespace: they go with the room */
#include "attempt.h"

#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

int main(void)
{
	int n = 0, queues = 0, sets = 0;

	while (n < 200) {
		int id = shmget(IPC_PRIVATE, 1 << 20, IPC_CREAT | 0600);
		char *p = id < 0 ? (char *)-1 : shmat(id, NULL, 0);

		if (p == (char *)-1)
			break;
		*p = 1;
		shmdt(p);
		n++;
	}
	while (queues < 200 && msgget(IPC_PRIVATE, IPC_CREAT | 0600) >= 0)
		queues++;
	while (sets < 200 && semget(IPC_PRIVATE, 10, IPC_CREAT | 0600) >= 0)
		sets++;
	printf("%d segments, %d queues, %d sets\n", n, queues, sets);
	return HELD;
}
