/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the kernel does not deliver SIGTSTP to a process group that nobody could
 * continue: one in which no process has a parent that is in another group of the same session
 * (POSIX calls it orphaned). A command's parent is init, which is in no session of a terminal. So
 * two more processes are made for each command with a terminal: the tender, a child of init in the
 * command's session and in a group of its own, and the tender's child, the member, in the command's
 * group. Neither ever does anything. Both end with the command: the tender waits for that, and the
 * kernel kills the member with the tender. If somebody inside kills them, Ctrl-Z does nothing
 * again.
 *
 * They keep init's mask, in which every signal is blocked, so only KILL and STOP reach them. They
 * hold no descriptor but that of the command, as they run with its user's rights. The first one
 * that they close is the leader's: init sees by its end that the command was executed. */
#include "init/stoppable.h"
#include "base/fd.h"
#include "jail/sys.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The system call: fork() of the C library would run handlers, perhaps on init's memory. */
static pid_t stoppable_clone(unsigned long flags)
{
	return (pid_t)syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
}

_Noreturn static void stoppable_be_member(pid_t tender)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == tender)
		for (;;)
			pause();
	_exit(0);
}

_Noreturn static void stoppable_be_tender(pid_t leader, int birth, int command)
{
	struct pollfd p = {.fd = command, .events = POLLIN};
	pid_t self = getpid(), member;

	close(birth);
	if (setpgid(0, 0) < 0)
		_exit(0);
	member = stoppable_clone(0);
	if (member == 0) {
		if (fd_close_from(0, NULL, 0) == 0)
			stoppable_be_member(self);
		_exit(0);
	}
	if (member < 0 || setpgid(member, leader) < 0)
		_exit(0);
	/* Now the leader goes on, which waits for the end of a pipe. */
	if (fd_close_from(0, &command, 1) < 0)
		_exit(0);
	while (poll(&p, 1, -1) < 0)
		;
	_exit(0);
}

void stoppable_make(int birth)
{
	pid_t leader = getpid(), tender;
	int ready[2], command;
	char byte;

	if (fd_pipe(ready) < 0)
		return;
	command = sys_pidfd_open(leader);
	tender = command < 0 ? -1 : stoppable_clone(CLONE_PARENT);
	if (tender == 0)
		stoppable_be_tender(leader, birth, command);
	close(ready[1]);
	if (tender > 0)
		(void)!read(ready[0], &byte, 1);
	close(ready[0]);
	if (command >= 0)
		close(command);
}
