/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: change the machine: clock, swap, accounting, ports, quotas, host name of all
 * Wall: seccomp: refused
 * Behind it: capabilities in the first user namespace */
#include "attempt.h"

#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>

int main(void)
{
	struct timeval tv;
	struct timespec ts;
	struct timex tx = {.modes = ADJ_OFFSET};

	/* To what it is: should a wall be down, the machine does not suffer. */
	gettimeofday(&tv, NULL);
	clock_gettime(CLOCK_REALTIME, &ts);
	REFUSED(settimeofday(&tv, NULL));
	REFUSED(clock_settime(CLOCK_REALTIME, &ts));
	REFUSED(adjtimex(&tx));
	REFUSED(clock_adjtime(CLOCK_REALTIME, &tx));
	REFUSED(syscall(SYS_swapon, "/ro/file", 0));
	REFUSED(syscall(SYS_swapoff, "/ro/file"));
	REFUSED(syscall(SYS_acct, "/workspace/acct"));
	REFUSED(syscall(SYS_quotactl, 0x800002 << 8, "/dev/vda", 0, NULL));
	REFUSED(syscall(SYS_vhangup));
#ifdef SYS_iopl
	REFUSED(syscall(SYS_iopl, 3));
	REFUSED(syscall(SYS_ioperm, 0x70, 2, 1));
	REFUSED(syscall(SYS_modify_ldt, 1, NULL, 0));
#endif
	return verdict();
}
