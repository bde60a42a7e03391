/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: make system calls by another table, which the filter does not know: i386, x32
 * Wall: seccomp: the process is killed */
#include "attempt.h"

#include <sys/wait.h>

#ifdef __x86_64__
static long i386(long nr)
{
	long r;

	__asm__ volatile("int $0x80" : "=a"(r) : "a"(nr), "b"(0), "c"(0), "d"(0) : "memory");
	return r;
}

static int child(int which)
{
	/* mount, unshare, keyctl of i386; getpid of x32 */
	static const long numbers[] = {21, 310, 288};

	if (which < 3)
		return i386(numbers[which]) != -38 /* ENOSYS: the kernel has no such table */;
	return syscall(0x40000000L + SYS_getpid) > 0;
}

int main(void)
{
	for (int i = 0; i < 4; i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0)
			_exit(child(i));
		if (waitpid(pid, &status, 0) != pid)
			return BROKEN;
		printf("call %d: status %#x\n", i, (unsigned)status);
		if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
			escaped("a call of another table");
	}
	return verdict();
}
#else
int main(void)
{
	return CANNOT_TRY;
}
#endif
