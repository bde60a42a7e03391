/* SPDX-License-Identifier: Apache-2.0 */
#include "narrowed.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int (*narrowed_by)(struct cloche_err *err);

enum outcome attempt(long nr, long a, long b, long c, long d)
{
	pid_t pid = fork();
	int status = -1;

	must(pid >= 0);
	if (pid == 0) {
		long r = 9; /* not _exit(): a sanitizer would do more than the filter allows */

		if (narrowed_by(NULL) == 0)
			r = syscall(nr, a, b, c, d, -1L, 0L) < 0 && errno == EPERM ? REFUSED
										   : PASSES;
		syscall(__NR_exit_group, r);
	}
	must(waitpid(pid, &status, 0) == pid);
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGSYS ? KILLED : OTHER;
	return WIFEXITED(status) && WEXITSTATUS(status) <= REFUSED
		       ? (enum outcome)WEXITSTATUS(status)
		       : OTHER;
}

void runs_no_new_code(void)
{
	check_int(attempt(__NR_mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS), PASSES);
	check_int(attempt(__NR_mmap, 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS),
		REFUSED);
	check_int(attempt(__NR_mprotect, 0, 0, PROT_WRITE | PROT_EXEC, 0), REFUSED);
	check_int(attempt(__NR_pkey_mprotect, 0, 0, PROT_EXEC, -1), REFUSED);
	check_int(attempt(__NR_personality, 0xffffffff, 0, 0, 0), REFUSED);
}

void signals_nobody(void)
{
	check_int(attempt(__NR_tgkill, getppid(), getppid(), 0, 0), REFUSED);
	check_int(attempt(__NR_fcntl, 0, F_SETOWN, getppid(), 0), REFUSED);
	check_int(attempt(__NR_fcntl, 0, F_GETFL, 0, 0), PASSES);
}
