/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: trace and signal a process of another user of the room
 * Wall: capabilities: neither SYS_PTRACE nor KILL */
#include "attempt.h"

#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

int main(void)
{
	char byte, buf[8];
	int ready[2];
	pid_t pid;

	if (pipe(ready) < 0)
		return BROKEN;
	pid = fork();
	if (pid == 0) {
		if (setresgid(1000, 1000, 1000) < 0 || setresuid(1000, 1000, 1000) < 0)
			_exit(CANNOT_TRY);
		(void)!write(ready[1], "x", 1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1) {
		printf("there is one user\n");
		return CANNOT_TRY;
	}
	struct iovec here = {buf, sizeof(buf)}, there = {(void *)&byte, 1};
	REFUSED(ptrace(PTRACE_ATTACH, pid, NULL, NULL));
	REFUSED(process_vm_readv(pid, &here, 1, &there, 1, 0));
	REFUSED(kill(pid, SIGKILL));
	return verdict();
}
