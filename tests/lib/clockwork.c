/* SPDX-License-Identifier: Apache-2.0 */
#include "clockwork.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct clockwork {
	uint64_t now;
	uint64_t seen; /* what a process has read last */
} * clockwork;
static bool clock_is_held;

uint64_t __wrap_clock_mono_usec(void);

uint64_t __wrap_clock_mono_usec(void)
{
	uint64_t now;

	if (!clock_is_held)
		return __real_clock_mono_usec();
	now = __atomic_load_n(&clockwork->now, __ATOMIC_SEQ_CST);
	__atomic_store_n(&clockwork->seen, now, __ATOMIC_SEQ_CST);
	return now;
}

static void clock_follow(void)
{
	clock_is_held = true;
}

void clock_hold(void)
{
	if (clockwork)
		return;
	clockwork = mmap(NULL, sizeof(*clockwork), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (clockwork == MAP_FAILED || pthread_atfork(NULL, NULL, clock_follow) != 0) {
		printf("Bail out! no clock\n");
		exit(1);
	}
	clockwork->now = __real_clock_mono_usec();
}

void clock_hold_here(void)
{
	clock_hold();
	clock_follow();
}

void clock_pass(pid_t pid, uint64_t usec)
{
	uint64_t now = clockwork->now + usec;

	__atomic_store_n(&clockwork->now, now, __ATOMIC_SEQ_CST);
	/* Where it waits, it does so for as long as it thought right before. To be stopped and go
	 * on interrupts that (signal(7)). */
	while (pid > 0 && __atomic_load_n(&clockwork->seen, __ATOMIC_SEQ_CST) != now) {
		if (kill(pid, SIGSTOP) < 0 || waitpid(pid, NULL, WUNTRACED) != pid ||
			kill(pid, SIGCONT) < 0) {
			printf("Bail out! no process to pass the time\n");
			exit(1);
		}
		usleep(500);
	}
}

uint64_t clock_held(void)
{
	return clockwork->now;
}
