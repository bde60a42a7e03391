/* SPDX-License-Identifier: Apache-2.0 */
/* Stopping the room's processes while a client is connected (SIGSTOP to the room). */
#include "supervisor/supervisor.h"

#include <signal.h>

void peer_pause(struct peer *p)
{
	struct supervisor *s = p->sup;
	struct task *t, *tmp;

	if (!s->room || p->paused)
		return;
	p->paused = true;
	s->peers.paused++;
	HASH_ITER (hh, s->tasks.known, t, tmp)
		t->paused = t->tty;
	(void)s->room->provider->kill(s->room, SIGSTOP, NULL);
	/* Init, which the signal has stopped too, must go on, as it starts the next processes. */
	(void)kill(s->room->pid, SIGCONT);
}

void peer_resume(struct peer *p)
{
	struct supervisor *s = p->sup;

	if (!p->paused)
		return;
	p->paused = false;
	if (--s->peers.paused == 0 && s->room)
		(void)s->room->provider->kill(s->room, SIGCONT, NULL);
}
