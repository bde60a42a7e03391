/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "init/init.h"
#include "tap.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 300, STEP_USEC = 20, SPIN_USEC = 500, PATIENCE = 250 };

static void spin_until(uint64_t when)
{
	uint64_t now = clock_mono_usec();

	if (now + SPIN_USEC < when)
		usleep((useconds_t)(when - SPIN_USEC - now));
	while (clock_mono_usec() < when)
		;
}

/* A command that has a child from a certain moment on, which lives on if it is overlooked. */
static pid_t start(uint64_t when)
{
	pid_t pid = fork();

	must(pid >= 0);
	if (pid == 0) {
		setsid();
		spin_until(when);
		(void)!fork();
		for (;;)
			pause();
	}
	return pid;
}

static void what_is_started_meanwhile_ends(void)
{
	unsigned survived = 0, rounds = tap_rounds(ROUNDS);

	/* What loses its parent becomes our child. */
	must(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
	for (unsigned i = 0; i < rounds; i++) {
		uint64_t at = clock_mono_usec() + 3000;
		struct proc p = {.pid = start(at + i % 100 * STEP_USEC), .birth = -1};
		pid_t left;
		int status;

		spin_until(at);
		tree_signal(&p, SIGKILL);
		must(waitpid(p.pid, &status, 0) == p.pid);
		usleep(1000);
		while ((left = waitpid(-1, &status, WNOHANG)) > 0)
			;
		/* 0: there is a child that has not ended. On a busy machine the killed end late. */
		for (unsigned k = 0; left == 0 && k < PATIENCE; k++) {
			usleep(20000);
			left = waitpid(-1, &status, WNOHANG);
		}
		if (left == 0) {
			survived++;
			tree_kill_children();
			(void)waitpid(-1, &status, 0);
		}
	}
	check_int(survived, 0);
}

int main(void)
{
	run_test(what_is_started_meanwhile_ends);
	return tap_done();
}
