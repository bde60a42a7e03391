/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: signal processes of the host: by number, by group, all of them, by pidfd, with forged
 *    origin
 * Wall: pid namespace: they have no number here */
#include "attempt.h"

int main(void)
{
	int victim = canary_number("CANARY_PID"), sig;
	siginfo_t info = {.si_signo = SIGTERM, .si_code = SI_QUEUE};

	for (sig = 0; sig < 32; sig++) {
		if (kill(victim, sig) == 0 || kill(-victim, sig) == 0)
			escaped("kill");
		if (syscall(SYS_tkill, victim, sig) == 0)
			escaped("tkill");
	}
	REFUSED(syscall(SYS_rt_sigqueueinfo, victim, SIGTERM, &info));
	REFUSED(syscall(SYS_pidfd_open, victim, 0));
	/* Ourselves are not among them; whoever is, is in the room. */
	if (kill(-1, SIGTERM) < 0)
		printf("held: kill -1: %s\n", strerror(errno));
	return verdict();
}
