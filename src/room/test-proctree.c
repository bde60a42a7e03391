/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "room/proctree.h"
#include "tap.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BALLAST = 32 << 20, WORK_USEC = 100000, FICKLE = 50 };

/* A child that has touched memory, made a child of its own, and waits. */
static pid_t start_family(void)
{
	int fds[2];
	char byte;
	pid_t pid;

	must(fd_pipe(fds) == 0);
	pid = fork();
	must(pid >= 0);
	if (pid == 0) {
		char *ballast = malloc(BALLAST);
		pid_t grandchild = ballast ? fork() : -1;

		if (grandchild < 0)
			_exit(1);
		/* It must not stay when the child is killed. */
		if (grandchild == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
			_exit(1);
		if (grandchild > 0) {
			memset(ballast, 1, BALLAST);
			(void)!write(fds[1], ballast, 1);
		}
		pause();
		_exit(0);
	}
	must(read(fds[0], &byte, 1) == 1);
	close(fds[0]);
	close(fds[1]);
	return pid;
}

static void work(void)
{
	while (clock() < WORK_USEC * (CLOCKS_PER_SEC / 1000000))
		;
}

static void counts_what_is_below(void)
{
	struct room_usage before, u;
	pid_t pid;

	must(proctree_read(getpid(), &before));
	pid = start_family();
	check(proctree_read(getpid(), &u));
	check_int(u.pids, before.pids + 2);
	check(u.memory_bytes >= before.memory_bytes + BALLAST);
	check(proctree_read(pid, &u));
	check_int(u.pids, 2);
	check(u.memory_bytes >= BALLAST && u.memory_bytes < 4ULL * BALLAST);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	/* The grandchild has gone to somebody else. */
	check(proctree_read(getpid(), &u));
	check_int(u.pids, before.pids);
	check(!proctree_read(pid, &u));
}

/* A command that has ended is part of what its room has used. */
static void counts_the_time_of_the_dead(void)
{
	struct room_usage before, after;
	pid_t pid;

	must(proctree_read(getpid(), &before));
	pid = fork();
	must(pid >= 0);
	if (pid == 0) {
		work();
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	check(proctree_read(getpid(), &after));
	check(after.cpu_usec > before.cpu_usec);
}

/* Ends as soon as its child is stopped: then the child belongs to nobody any more. */
_Noreturn static void be_fickle(int tell)
{
	pid_t child = fork();

	if (child == 0)
		for (;;)
			pause();
	(void)!write(tell, &child, sizeof(child));
	(void)waitpid(child, NULL, WUNTRACED);
	_exit(0);
}

static void what_was_stopped_is_killed(void)
{
	for (int i = 0; i < FICKLE; i++) {
		int fds[2];
		pid_t root, child = 0;

		must(fd_pipe(fds) == 0);
		root = fork();
		if (root == 0)
			be_fickle(fds[1]);
		must(root > 0 && read(fds[0], &child, sizeof(child)) == sizeof(child) && child > 0);
		close(fds[0]);
		close(fds[1]);
		(void)proctree_signal_below(root, SIGKILL);
		must(waitpid(root, NULL, 0) == root);
		/* It is ours now. */
		for (int turn = 0; waitpid(child, NULL, WNOHANG) == 0; turn++) {
			usleep(1000);
			if (turn < 10000)
				continue;
			tap_fail("it was left");
			kill(child, SIGKILL);
			return;
		}
	}
}

int main(void)
{
	struct room_usage u;

	/* Some kernels keep no lists of children. */
	if (access("/proc/thread-self/children", R_OK) < 0 || !proctree_read(getpid(), &u)) {
		printf("1..0 # SKIP the kernel does not list children in /proc\n");
		return 0;
	}
	run_test(counts_what_is_below);
	run_test(counts_the_time_of_the_dead);
	must(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
	run_test(what_was_stopped_is_killed);
	return tap_done();
}
