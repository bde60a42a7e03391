/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: trace init, read and write its memory, take its control socket
 * Wall: not dumpable: the kernel refuses tracers of init */
#include "attempt.h"

#include <sys/ptrace.h>
#include <sys/uio.h>

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

int main(void)
{
	char buf[16];
	struct iovec here = {buf, sizeof(buf)}, there = {(void *)0x400000, sizeof(buf)};
	int pidfd = (int)syscall(SYS_pidfd_open, 1, 0), fd;

	REFUSED(ptrace(PTRACE_ATTACH, 1, NULL, NULL));
	REFUSED(ptrace(PTRACE_SEIZE, 1, NULL, NULL));
	REFUSED(process_vm_readv(1, &here, 1, &there, 1, 0));
	REFUSED(process_vm_writev(1, &here, 1, &there, 1, 0));
	for (fd = 0; fd < 8; fd++)
		refused("pidfd_getfd of init", syscall(SYS_pidfd_getfd, pidfd, fd, 0));
	REFUSED(syscall(SYS_kcmp, getpid(), 1, 0, 0, 3));
	return verdict();
}
