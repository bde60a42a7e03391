/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: root in a room has no CAP_KILL, so init may not signal what it started under
 * another user. It then forks a child that becomes that user and sends the signal; the reaper takes
 * the child like any other. */
#include "init.h"
#include "ipc/control.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

void signal_as(uid_t uid, pid_t target, int signo)
{
	pid_t child;

	if (kill(target, signo) == 0 || errno != EPERM)
		return;
	child = fork();
	if (child == 0) {
		if (setresuid(uid, uid, uid) == 0)
			kill(target, signo);
		_exit(0);
	}
}

void signal_deliver(const struct roomctl_signal *m, const struct proc *p)
{
	/* Outside a pid namespace -1 would be every process of the user. */
	if (m->scope == CTL_SCOPE_ROOM) {
		if (getpid() == 1)
			kill(-1, m->signo);
		return;
	}
	if (!p)
		return;
	/* A process leads a session and a group of its own from the start on; its number stays its
	 * own until it is reaped, which happens between two messages only. */
	if (m->scope == CTL_SCOPE_TREE)
		tree_signal(p, m->signo);
	else
		signal_as(p->uid, m->scope == CTL_SCOPE_GROUP ? -p->pid : p->pid, m->signo);
}
