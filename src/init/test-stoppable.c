/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "init/stoppable.h"
#include "tap.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TRIES = 100, HIGH = 900 };

/* Return 0 if nobody else holds birth once the call has returned. As in a room, the descriptor has
 * a higher number than those that are opened after it. */
static int lead(void)
{
	int ends[2], birth;
	struct pollfd p;

	if (setsid() < 0 || fd_pipe(ends) < 0)
		return 2;
	birth = fcntl(ends[1], F_DUPFD_CLOEXEC, HIGH);
	close(ends[1]);
	for (int i = 0; i < HIGH / 2; i++)
		(void)fcntl(ends[0], F_DUPFD_CLOEXEC, HIGH / 4);
	stoppable_make(birth);
	close(birth);
	p = (struct pollfd){.fd = ends[0]};
	return birth >= 0 && poll(&p, 1, 0) == 1 && p.revents == POLLHUP ? 0 : 1;
}

static void nobody_else_holds_it(void)
{
	/* The tender is a child of this process. */
	for (int i = 0; i < TRIES; i++) {
		int status;
		pid_t pid;

		fflush(stdout);
		pid = fork();
		if (pid == 0)
			_exit(lead());
		must(pid > 0 && waitpid(pid, &status, 0) == pid);
		check_int(WEXITSTATUS(status), 0);
	}
}

static void they_end_with_the_leader(void)
{
	int n = 0;

	while (waitpid(-1, NULL, 0) > 0)
		n++;
	check_int(n, TRIES);
}

int main(void)
{
	run_test(nobody_else_holds_it);
	run_test(they_end_with_the_leader);
	return tap_done();
}
