/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: root in a room has no CAP_KILL, so init may not signal a process that has
 * changed its user. In that case it forks a child that becomes that user and sends the signal; the
 * reaper takes the child like any other. */
#include "init/init.h"
#include "ipc/control.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Get the present user of a process, which may differ from the user that it was started as. */
static bool signal_find_user(pid_t pid, uid_t *ret)
{
	char path[32], text[1024], *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	/* The name comes first; a newline in it is written as two characters. */
	at = strstr(text, "\nUid:");
	return at && sscanf(at + 5, "%u", ret) == 1;
}

void signal_one(pid_t target, int signo)
{
	uid_t uid;

	if (kill(target, signo) == 0 || errno != EPERM || !signal_find_user(target, &uid))
		return;
	if (fork() == 0) {
		if (setresuid(uid, uid, uid) == 0)
			kill(target, signo);
		_exit(0);
	}
}

void signal_deliver(const struct roomctl_signal *m, const struct proc *p)
{
	/* Outside a pid namespace -1 would mean every process of the user. */
	if (m->scope == CTL_SCOPE_ROOM) {
		if (getpid() == 1)
			kill(-1, m->signo);
		return;
	}
	if (!p)
		return;
	/* Once a process has executed its command it leads a session and a group of its own. Its
	 * pid stays its own until it is reaped, which happens only between two messages. */
	if (m->scope == CTL_SCOPE_PROCESS || p->birth >= 0) {
		signal_one(p->pid, m->signo);
	} else if (m->scope == CTL_SCOPE_TREE) {
		tree_signal(p, m->signo);
	} else {
		kill(-p->pid, m->signo);
		tree_signal_group(p, m->signo);
	}
}
