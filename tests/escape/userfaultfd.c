/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: hold the kernel at a page fault, as exploits do
 * Wall: seccomp: userfaultfd is refused; there is no /dev/userfaultfd */
#include "attempt.h"

int main(void)
{
	REFUSED(syscall(SYS_userfaultfd, 0));
	REFUSED(syscall(SYS_userfaultfd, 1));
	REFUSED(open("/dev/userfaultfd", O_RDWR));
	return verdict();
}
