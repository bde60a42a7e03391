/* SPDX-License-Identifier: Apache-2.0 */
/* Tries to break INV-NARROW: a child behind the broker's own filter makes each call that it must
 * not make. (tests/integration/test-narrow asks the running program.) */
#include "broker/state.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <tap.h>
#include <unistd.h>

enum outcome { PASSES, REFUSED, KILLED, OTHER };

/* What comes of a call behind the filter. Arguments are such that it does no harm where it passes.
 */
static enum outcome attempt(long nr, long a, long b, long c, long d)
{
	pid_t pid = fork();
	int status = -1;

	must(pid >= 0);
	if (pid == 0) {
		long r = 9; /* not _exit(): a sanitizer would do more than the filter allows */

		if (narrow_last(NULL) == 0)
			r = syscall(nr, a, b, c, d, -1L, 0L) < 0 && errno == EPERM ? REFUSED
										   : PASSES;
		syscall(__NR_exit_group, r);
	}
	must(waitpid(pid, &status, 0) == pid);
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGSYS ? KILLED : OTHER;
	return WIFEXITED(status) && WEXITSTATUS(status) <= REFUSED
		       ? (enum outcome)WEXITSTATUS(status)
		       : OTHER;
}

static void opens_and_runs_nothing(void)
{
	check_int(attempt(__NR_openat, AT_FDCWD, (long)"/dev/null", O_RDONLY, 0), REFUSED);
	check_int(attempt(__NR_openat2, AT_FDCWD, (long)"/dev/null", 0, 0), REFUSED);
#ifdef __NR_open
	check_int(attempt(__NR_open, (long)"/dev/null", O_RDONLY, 0, 0), REFUSED);
	check_int(attempt(__NR_fork, 0, 0, 0, 0), REFUSED);
	check_int(attempt(__NR_vfork, 0, 0, 0, 0), REFUSED);
#endif
	check_int(attempt(__NR_clone, SIGCHLD, 0, 0, 0), REFUSED);
	check_int(attempt(__NR_clone3, 0, 0, 0, 0), REFUSED);
	check_int(attempt(__NR_execve, (long)"/", 0, 0, 0), KILLED);
	check_int(attempt(__NR_execveat, -1, (long)"", 0, 0), KILLED);
	check_int(attempt(__NR_ptrace, 0, 0, 0, 0), KILLED);
	check_int(attempt(__NR_process_vm_readv, 1, 0, 0, 0), KILLED);
	check_int(attempt(__NR_kill, 1, 0, 0, 0), REFUSED);
	check_int(attempt(__NR_io_uring_setup, 1, 0, 0, 0), REFUSED);
}

static void sockets_are_tcp_and_udp(void)
{
	check_int(
		attempt(__NR_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP, 0), PASSES);
	check_int(attempt(__NR_socket, AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, 0, 0), PASSES);
	check_int(attempt(__NR_socket, AF_UNIX, SOCK_STREAM, 0, 0), REFUSED);
	check_int(attempt(__NR_socket, AF_NETLINK, SOCK_RAW, 0, 0), REFUSED);
	check_int(attempt(__NR_socket, AF_INET, SOCK_RAW, IPPROTO_TCP, 0), REFUSED);
	check_int(attempt(__NR_socket, AF_INET, SOCK_DGRAM, IPPROTO_ICMP, 0), REFUSED);
	check_int(attempt(__NR_bind, -1, 0, 0, 0), REFUSED);
	check_int(attempt(__NR_listen, -1, 1, 0, 0), REFUSED);
	check_int(attempt(__NR_accept4, -1, 0, 0, 0), REFUSED);
}

static void runs_no_new_code(void)
{
	check_int(attempt(__NR_mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS), PASSES);
	check_int(attempt(__NR_mmap, 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS),
		REFUSED);
	check_int(attempt(__NR_mprotect, 0, 0, PROT_WRITE | PROT_EXEC, 0), REFUSED);
	check_int(attempt(__NR_pkey_mprotect, 0, 0, PROT_EXEC, -1), REFUSED);
	check_int(attempt(__NR_personality, 0xffffffff, 0, 0, 0), REFUSED);
}

static void signals_nobody(void)
{
	check_int(attempt(__NR_tgkill, getppid(), getppid(), 0, 0), REFUSED);
	check_int(attempt(__NR_fcntl, 0, F_SETOWN, getppid(), 0), REFUSED);
	check_int(attempt(__NR_fcntl, 0, F_GETFL, 0, 0), PASSES);
}

int main(void)
{
	run_test(opens_and_runs_nothing);
	run_test(sockets_are_tcp_and_udp);
	run_test(runs_no_new_code);
	run_test(signals_nobody);
	return tap_done();
}
