/* SPDX-License-Identifier: Apache-2.0 */
/* Tries to break INV-NARROW: a child behind the broker's own filter makes each call that it must
 * not make. (tests/integration/test-narrow asks the running program.) */
#include "broker/narrow.h"
#include "narrowed.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

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

static void dials_nobody(void)
{
	check_int(attempt(__NR_socket, AF_INET, SOCK_STREAM, 0, 0), KILLED);
	check_int(attempt(__NR_socket, AF_INET6, SOCK_DGRAM, 0, 0), KILLED);
	check_int(attempt(__NR_connect, -1, 0, 0, 0), KILLED);
}

int main(void)
{
	narrowed_by = broker_narrow_last;
	run_test(opens_and_runs_nothing);
	run_test(sockets_are_tcp_and_udp);
	run_test(runs_no_new_code);
	run_test(signals_nobody);
	narrowed_by = broker_narrow_offline;
	run_test(opens_and_runs_nothing);
	run_test(dials_nobody);
	run_test(runs_no_new_code);
	run_test(signals_nobody);
	return tap_done();
}
