/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that wait for an answer: what is read, written, given and refused, and what the filter of
 * sockets leaves to be asked for. */
#include "base/fd.h"
#include "jail/asked.h"
#include "jail/caps.h"
#include "jail/seccomp.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int channel[2]; /* the listener comes over it */

static void send_listener(int listener)
{
	union fd_control control;
	char byte = 0;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	fd_attach(&msg, &control, &listener, 1);
	if (listener < 0 || sendmsg(channel[1], &msg, 0) != 1)
		_exit(99);
	close(listener);
}

static int take_listener(void)
{
	union fd_control control;
	char byte;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	int fd = -1;

	must(recvmsg(channel[0], &msg, MSG_CMSG_CLOEXEC) == 1 && fd_detach(&msg, &fd, 1) == 1);
	return fd;
}

/* Starts a child behind the filter that does fn and ends with what it returns. */
static pid_t start(int (*fn)(void), int *ret_listener)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	pid_t pid;

	must(fd_socketpair(SOCK_SEQPACKET, channel) == 0);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (caps_no_new_privs(&err) < 0)
			_exit(98);
		send_listener(seccomp_install_dialling());
		_exit(fn());
	}
	must(pid > 0);
	*ret_listener = take_listener();
	close(channel[0]);
	close(channel[1]);
	return pid;
}

static int status_of(pid_t pid)
{
	int status = 0;

	must(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static const struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = 0x3412};

static int connects(void)
{
	struct sockaddr_in got = {0};
	socklen_t n = sizeof(got);
	char byte = 0;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || fcntl(fd, F_GETFD) != FD_CLOEXEC)
		return 1;
	if (connect(fd, (const struct sockaddr *)&there, sizeof(there)) < 0)
		return 2;
	if (read(fd, &byte, 1) != 1 || byte != 'x')
		return 3;
	if (getpeername(fd, (struct sockaddr *)&got, &n) < 0 || got.sin_port != there.sin_port)
		return 4;
	return getsockname(fd, (struct sockaddr *)&got, &n) < 0 && errno == ENOTUNIQ ? 0 : 5;
}

static void a_call_is_answered(void)
{
	struct sockaddr_in got = {0};
	struct stat st, own;
	struct asked a;
	int listener, pair[2];
	pid_t pid = start(connects, &listener);

	must(fd_socketpair(SOCK_STREAM, pair) == 0 && fstat(pair[0], &own) == 0);
	must(asked_take(listener, &a) == 0);
	check_int(a.call, SYS_socket);
	check_int(a.thread, pid);
	check_int((int)a.args[0], AF_INET);
	check(asked_is_valid(&a));
	check_int(asked_stat(&a, 9999, &st), -EBADF);
	check_int(asked_give(&a, pair[0], true), 0);
	check(!asked_is_valid(&a));
	check_int(asked_give(&a, pair[0], true), -ENOENT);
	close(pair[0]);

	must(asked_take(listener, &a) == 0);
	check_int(a.call, SYS_connect);
	check_int(asked_stat(&a, (int)a.args[0], &st), 0);
	check(S_ISSOCK(st.st_mode) && st.st_ino == own.st_ino);
	check_int(asked_read(&a, a.args[1], &got, sizeof(got)), 0);
	check(memcmp(&got, &there, sizeof(got)) == 0);
	check_int(asked_read(&a, 0, &got, sizeof(got)), -EFAULT);
	check_int(asked_read(&a, UINT64_MAX - 4, &got, sizeof(got)), -EFAULT);
	check_int(asked_write(&a, 16, &got, sizeof(got)), -EFAULT);
	check_int((int)write(pair[1], "x", 1), 1);
	asked_answer(&a, 0);

	must(asked_take(listener, &a) == 0);
	check_int(a.call, SYS_getpeername);
	check_int(asked_write(&a, a.args[1], &there, sizeof(there)), 0);
	asked_answer(&a, 0);
	/* An answer that has come is not changed by a second one. */
	asked_answer(&a, -EIO);

	must(asked_take(listener, &a) == 0);
	check_int(a.call, SYS_getsockname);
	asked_answer(&a, -ENOTUNIQ);
	check_int(status_of(pid), 0);
	check(asked_take(listener, &a) < 0);
	close(pair[1]);
	close(listener);
}

static int binds(void)
{
	struct sockaddr name;
	socklen_t n = sizeof(name);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	return fd >= 0 && getsockname(fd, &name, &n) == 0 && name.sa_family == AF_UNIX ? 0 : 1;
}

static void a_call_is_let_through(void)
{
	struct asked a;
	int listener;
	pid_t pid = start(binds, &listener);

	must(asked_take(listener, &a) == 0);
	check_int(a.call, SYS_getsockname);
	asked_let(&a);
	check_int(status_of(pid), 0);
	close(listener);
}

static int waits(void)
{
	(void)socket(AF_INET6, SOCK_STREAM, 0);
	return 1;
}

static void a_dead_caller_gets_nothing(void)
{
	struct asked a;
	struct stat st;
	char byte;
	int listener;
	pid_t pid = start(waits, &listener);

	must(asked_take(listener, &a) == 0);
	kill(pid, SIGKILL);
	check_int(status_of(pid), 100 + SIGKILL);
	check(!asked_is_valid(&a));
	check(asked_read(&a, 4096, &byte, 1) < 0);
	check(asked_write(&a, 4096, &byte, 1) < 0);
	check(asked_stat(&a, 0, &st) < 0);
	check(asked_give(&a, 0, false) < 0);
	asked_answer(&a, 0);
	asked_let(&a);
	close(listener);
}

/* Each row fails without anybody being asked, or works. */
static int refusals(void)
{
	const struct sched_param ordinary = {0};
	const struct rlimit limit = {16, 16};
	int one = 1, pair[2];
	pid_t parent = getppid();

#define FAILS(call, with)                                                                          \
	do {                                                                                       \
		errno = 0;                                                                         \
		if ((call) != -1 || errno != (with))                                               \
			return __LINE__ & 255;                                                     \
	} while (0)
	FAILS(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), ESOCKTNOSUPPORT);
	FAILS(socket(AF_UNIX, SOCK_RAW, 0), ESOCKTNOSUPPORT);
	FAILS(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), ESOCKTNOSUPPORT);
	FAILS(socketpair(AF_UNIX, SOCK_RAW | SOCK_NONBLOCK, 0, pair), ESOCKTNOSUPPORT);
	FAILS((int)syscall(SYS_socket, AF_UNIX | 1ULL << 32, SOCK_DGRAM | 1ULL << 40, 0),
		ESOCKTNOSUPPORT);
	FAILS(socket(AF_NETLINK, SOCK_RAW, 0), EAFNOSUPPORT);
	FAILS((int)syscall(SYS_prlimit64, parent, RLIMIT_NOFILE, &limit, NULL), EPERM);
	FAILS((int)syscall(SYS_sched_setscheduler, parent, SCHED_BATCH, &ordinary), EPERM);
	FAILS(setpriority(PRIO_PROCESS, (id_t)parent, 5), EPERM);
	FAILS(setpriority(PRIO_USER, 0, 5), EPERM);
	FAILS(msgget(IPC_PRIVATE, 0600), ENOSYS);
	FAILS((int)syscall(SYS_shmget, IPC_PRIVATE, 4096, 0600), ENOSYS);
	FAILS((int)syscall(SYS_mq_open, "x", O_RDWR, 0, NULL), ENOSYS);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0 ||
		setsockopt(pair[0], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0 ||
		setsockopt(pair[0], IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) < 0 ||
		setpriority(PRIO_PROCESS, 0, 19) < 0 ||
		syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit, NULL) < 0)
		return 255;
	return 0;
}

static void nobody_is_asked(void)
{
	struct pollfd p = {.events = POLLIN};
	int status, listener;
	pid_t pid = start(refusals, &listener);

	p.fd = listener;
	/* Readable if somebody asks; hung up when the child is gone. */
	must(poll(&p, 1, -1) == 1);
	check(!(p.revents & POLLIN));
	status = status_of(pid);
	check_int(status, 0);
	close(listener);
}

int main(void)
{
	run_test(a_call_is_answered);
	run_test(a_call_is_let_through);
	run_test(a_dead_caller_gets_nothing);
	run_test(nobody_is_asked);
	return tap_done();
}
