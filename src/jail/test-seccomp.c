/* SPDX-License-Identifier: Apache-2.0 */
/* What a program of ours can do once it has narrowed itself: arguments that count, and the pid that
 * is put into the filter. (The calls as such: the tests of each program.) */
#include "jail/narrow.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs fn in a child behind the filter of a program; returns its wait status. */
static int filtered(enum seccomp_filter program, int (*fn)(void))
{
	pid_t pid = fork();
	int status = -1;

	must(pid >= 0);
	if (pid == 0) /* not _exit(): a sanitizer would do more than the filter allows */
		syscall(__NR_exit_group, narrow_program(program, NULL) < 0 ? 99 : fn());
	must(waitpid(pid, &status, 0) == pid);
	return status;
}

static int refused_call(void)
{
	return syscall(__NR_listen, 0, 1) < 0 && errno == EPERM ? 7 : 1;
}

static int executable_memory(void)
{
	void *plain, *exec;

	plain = (void *)syscall(
		__NR_mmap, NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	exec = (void *)syscall(
		__NR_mmap, NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return plain != MAP_FAILED && exec == MAP_FAILED && errno == EPERM ? 7 : 1;
}

static bool refused(long r)
{
	return r < 0 && errno == EPERM;
}

static int families(void)
{
	long v4 = syscall(__NR_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	long v6 = syscall(__NR_socket, AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (refused(v4) || refused(v6))
		return 1;
	if (refused(syscall(__NR_socket, AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, IPPROTO_UDP)) ||
		refused(syscall(__NR_socket, AF_INET6, SOCK_STREAM, IPPROTO_TCP)))
		return 3;
	if (!refused(syscall(__NR_socket, AF_INET, SOCK_RAW, IPPROTO_TCP)) ||
		!refused(syscall(__NR_socket, AF_INET, SOCK_SEQPACKET, 0)) ||
		!refused(syscall(__NR_socket, AF_INET, SOCK_DGRAM, IPPROTO_ICMP)) ||
		!refused(syscall(__NR_socket, AF_INET6, SOCK_STREAM, 132 /* SCTP */)) ||
		!refused(syscall(__NR_socket, AF_INET, SOCK_STREAM, 262 /* MPTCP */)))
		return 4;
	return refused(syscall(__NR_socket, AF_UNIX, SOCK_STREAM, 0)) &&
			       refused(syscall(__NR_socket, AF_NETLINK, SOCK_RAW, 0)) &&
			       refused(syscall(__NR_socket, AF_VSOCK, SOCK_STREAM, 0))
		       ? 7
		       : 2;
}

static int flags(void)
{
	if (syscall(__NR_fcntl, 1, F_GETFL) < 0 || syscall(__NR_fcntl, 1, F_GETFD) < 0 ||
		syscall(__NR_fcntl, 1, F_DUPFD_CLOEXEC, 3) < 0)
		return 1;
	return refused(syscall(__NR_fcntl, 1, F_SETOWN, 1)) &&
			       refused(syscall(__NR_fcntl, 1, F_SETSIG, SIGKILL)) &&
			       refused(syscall(__NR_fcntl, 1, F_DUPFD, 3))
		       ? 7
		       : 2;
}

static pid_t other;

static int policies(void)
{
	const struct sched_param p = {0};

	if (syscall(__NR_sched_setscheduler, 0, SCHED_BATCH, &p) < 0 ||
		syscall(__NR_sched_setscheduler, 0, SCHED_OTHER, &p) < 0)
		return 1;
	return refused(syscall(__NR_sched_setscheduler, 0, SCHED_FIFO, &p)) &&
			       refused(syscall(__NR_sched_setscheduler, 0,
				       SCHED_BATCH | SCHED_RESET_ON_FORK, &p)) &&
			       refused(syscall(__NR_sched_setscheduler, other, SCHED_BATCH, &p))
		       ? 7
		       : 2;
}

static int signals(void)
{
	/* Signal 0 asks whether one may be sent. */
	return refused(syscall(__NR_tgkill, other, other, 0)) ? 7 : 2;
}

static int aborts(void)
{
	abort();
	return 1;
}

static int opens(void)
{
	return (int)syscall(__NR_openat, AT_FDCWD, "/", O_RDONLY, 0) < 0 ? 1 : 2;
}

#ifdef __x86_64__
static int x32_call(void)
{
	return (int)syscall(0x40000000 | 1, 1, "", 0) < 0 ? 1 : 2;
}
#endif

static void test_allows_and_refuses(void)
{
	int status = filtered(SECCOMP_BROKER, refused_call);

	check(WIFEXITED(status));
	check_int(WEXITSTATUS(status), 7);
	status = filtered(SECCOMP_BROKER, executable_memory);
	check(WIFEXITED(status));
	check_int(WEXITSTATUS(status), 7);
}

static void test_arguments(void)
{
	int status = filtered(SECCOMP_BROKER, families);

	check(WIFEXITED(status));
	check_int(WEXITSTATUS(status), 7);
	status = filtered(SECCOMP_BROKER, flags);
	check(WIFEXITED(status));
	check_int(WEXITSTATUS(status), 7);
	other = getpid(); /* the parent of who asks */
	status = filtered(SECCOMP_BROKER, signals);
	check(WIFEXITED(status));
	check_int(WEXITSTATUS(status), 7);
	status = filtered(SECCOMP_BROKER, policies);
	check(WIFEXITED(status));
	check_int(WEXITSTATUS(status), 7);
	status = filtered(SECCOMP_BROKER, aborts);
	/* musl signals by a call that is refused, and crashes then. */
	check(WIFSIGNALED(status) && (WTERMSIG(status) == SIGABRT || WTERMSIG(status) == SIGSEGV));
}

static void test_kills(void)
{
	int status = filtered(SECCOMP_GATEWAY, opens);

	check(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
#ifdef __x86_64__
	status = filtered(SECCOMP_BROKER, x32_call);
	check(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
#endif
}

int main(void)
{
	run_test(test_allows_and_refuses);
	run_test(test_arguments);
	run_test(test_kills);
	return tap_done();
}
