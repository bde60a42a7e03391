/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: find System V and POSIX objects of the host: shared memory, queues, semaphores
 * Wall: ipc namespace
 * Behind it: the same */
#include "attempt.h"

#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

int main(void)
{
	key_t key = (key_t)canary_number("CANARY_KEY");
	int id;

	REFUSED(shmget(key, 0, 0));
	REFUSED(msgget(key, 0));
	REFUSED(semget(key, 0, 0));
	for (id = 0; id < 64; id++) {
		struct shmid_ds ds;

		if (shmctl(id, SHM_STAT, &ds) >= 0)
			escaped("a segment of shared memory");
	}
	REFUSED(mq_open("/cloche-canary", O_RDONLY));
	unreadable("/dev/shm/cloche-canary");
	return verdict();
}
