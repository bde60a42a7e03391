/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets of a room without a network namespace, and modes of files that the machine has too: a
 * child behind the filter calls, this process answers, and what goes to the gateway is looked at.
 */
#include "base/fd.h"
#include "init/dial.h"
#include "jail/caps.h"
#include "jail/seccomp.h"
#include "tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static struct dial dial;
static struct chan ours, theirs; /* the two ends of the gateway's channel */

static int pass_listener(int channel, int listener)
{
	union fd_control control;
	char byte = 0;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (listener >= 0) {
		fd_attach(&msg, &control, &listener, 1);
		return sendmsg(channel, &msg, 0) == 1 ? 0 : -1;
	}
	msg.msg_control = control.bytes;
	msg.msg_controllen = sizeof(control.bytes);
	if (recvmsg(channel, &msg, MSG_CMSG_CLOEXEC) == 1)
		(void)fd_detach(&msg, &listener, 1);
	return listener;
}

static char *own[2]; /* where modes may be changed */
static int go[2];    /* the child waits until a byte comes over it */

/* Does fn in a child and answers its calls until it ends. Returns what fn returned; 0: all is as it
 * should be. after: called in between, each time that nobody asks. */
static int serve(int (*fn)(void), void (*after)(void))
{
	struct pollfd polls[2 + DIAL_POLLS_MAX];
	int pair[2], channel[2], status = 0, pidfd;
	pid_t pid;

	must(fd_socketpair(SOCK_SEQPACKET, channel) == 0);
	must(fd_socketpair(SOCK_STREAM, pair) == 0);
	must(fd_socketpair(SOCK_STREAM, go) == 0);
	must(chan_init(&ours, pair[0], CAPTURE_MAX_PAYLOAD, 4 * CAPTURE_MAX_PAYLOAD) == 0);
	must(chan_init(&theirs, pair[1], CAPTURE_MAX_PAYLOAD, 4 * CAPTURE_MAX_PAYLOAD) == 0);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		close(pair[1]);
		if (caps_no_new_privs(NULL) < 0 ||
			pass_listener(channel[1], seccomp_install_dialling()) < 0)
			_exit(255);
		_exit(fn());
	}
	must(pid > 0);
	dial = (struct dial){.listener = pass_listener(channel[0], -1),
		.captured = true,
		.keep.own = own,
		.gateway = &ours};
	must(dial.listener >= 0);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	for (;;) {
		polls[0] = (struct pollfd){.fd = pidfd, .events = POLLIN};
		polls[1] = (struct pollfd){.fd = dial.listener, .events = POLLIN};
		must(poll(polls, 2 + dial_poll(&dial, polls + 2), -1) > 0);
		dial_look(&dial, polls + 2);
		if (polls[1].revents & POLLIN)
			dial_answer(&dial);
		if (polls[0].revents)
			break;
		if (after)
			after();
	}
	must(waitpid(pid, &status, 0) == pid);
	close(pidfd);
	dial_done(&dial);
	close(channel[0]);
	close(channel[1]);
	close(go[0]);
	close(go[1]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 254;
}

static void close_channel(void)
{
	chan_done(&ours);
	chan_done(&theirs);
}

#define WANT(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("# %s:%d: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno); \
			fflush(stdout);                                                            \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)
#define FAILS(call, with)                                                                          \
	do {                                                                                       \
		errno = 0;                                                                         \
		WANT((call) == -1 && errno == (with));                                             \
	} while (0)

/* Port 0x1234 of that address. */
static const struct sockaddr *to4(const char *text)
{
	static struct sockaddr_in a;

	a = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(0x1234)};
	inet_pton(AF_INET, text, &a.sin_addr);
	return (const struct sockaddr *)&a;
}

static const struct sockaddr *to6(const char *text, uint16_t port)
{
	static struct sockaddr_in6 a;

	a = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
	inet_pton(AF_INET6, text, &a.sin6_addr);
	return (const struct sockaddr *)&a;
}

enum { LEN4 = sizeof(struct sockaddr_in), LEN6 = sizeof(struct sockaddr_in6) };

static int dials(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	union {
		struct sockaddr sa;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} got;
	socklen_t n = sizeof(got);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_TCP);
	int epoll = epoll_create1(0), six, mapped;
	char byte;

	WANT(fd >= 0 && fcntl(fd, F_GETFL) & O_NONBLOCK && fcntl(fd, F_GETFD) == 0);
	WANT(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
	WANT(getsockname(fd, &got.sa, &n) == 0 && n == LEN4 && got.v4.sin_port == 0);
	FAILS(getpeername(fd, &got.sa, &n), ENOTCONN);
	WANT(connect(fd, to4("203.0.113.9"), LEN4) == 0);
	FAILS(connect(fd, to4("203.0.113.9"), LEN4), EISCONN);
	WANT(getpeername(fd, &got.sa, &n) == 0 && memcmp(&got, to4("203.0.113.9"), LEN4) == 0);
	WANT(getsockname(fd, &got.sa, &n) == 0 && got.v4.sin_port != 0);
	/* The gateway, at the end of this test, says x over what was watched from the start. */
	WANT(write(go[1], "", 1) == 1);
	WANT(epoll_wait(epoll, &event, 1, -1) == 1 && read(fd, &byte, 1) == 1 && byte == 'x');

	six = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	WANT(fcntl(six, F_GETFD) == FD_CLOEXEC && connect(six, to6("2001:db8::1", 443), LEN6) == 0);
	n = sizeof(got);
	WANT(getpeername(six, &got.sa, &n) == 0 && n == LEN6);
	WANT(memcmp(&got, to6("2001:db8::1", 443), LEN6) == 0);
	mapped = socket(AF_INET6, SOCK_STREAM, 0);
	WANT(connect(mapped, to6("::ffff:198.51.100.1", 80), LEN6) == 0);
	n = sizeof(got);
	WANT(getpeername(mapped, &got.sa, &n) == 0 && n == LEN6);
	WANT(memcmp(&got, to6("::ffff:198.51.100.1", 80), LEN6) == 0);
	/* Only as much as there is place for. */
	memset(&got, 0x55, sizeof(got));
	n = 4;
	WANT(getpeername(mapped, &got.sa, &n) == 0 && n == LEN6 &&
		got.v6.sin6_flowinfo == 0x55555555);
	return 0;
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 ? 0 : st.st_mode & 07777;
}

/* In a directory with own/, own/file, other/file and own/link, which leads to the latter. */
static int changes_modes(void)
{
	char long_path[PATH_MAX + 16], *edge;
	int dir = open("own", O_RDONLY | O_DIRECTORY), file = open("own/file", O_RDONLY), fds[2];

	WANT(chmod("own/file", 0751) == 0 && mode_of("own/file") == 0751);
	WANT(fchmod(file, 0640) == 0 && mode_of("own/file") == 0640);
	WANT(fchmodat(dir, "file", 0604, 0) == 0 && mode_of("own/file") == 0604);
	WANT(chmod("own", 01700) == 0 && mode_of("own") == 01700);
	WANT(chmod("/proc/self/cwd/own/file", 0600) == 0 && mode_of("own/file") == 0600);
	FAILS(chmod("own/link", 0777), EPERM);
	FAILS(chmod("own/../other/file", 0777), EPERM);
	FAILS(chmod("other", 0777), EPERM);
	FAILS(chmod(".", 0777), EPERM);
	FAILS(fchmod(open("other/file", O_RDONLY), 0777), EPERM);
	FAILS(fchmodat(dir, "../other/file", 0777, 0), EPERM);
	WANT(pipe(fds) == 0);
	FAILS(fchmod(fds[0], 0777), EPERM);
	FAILS(fchmod(999, 0777), EBADF);
	FAILS(chmod("own/none", 0777), ENOENT);
	FAILS((int)syscall(SYS_fchmodat, AT_FDCWD, NULL, 0777), EFAULT);
	FAILS((int)syscall(SYS_fchmodat, AT_FDCWD, 16UL, 0777), EFAULT);
	memset(long_path, '/', sizeof(long_path));
	long_path[sizeof(long_path) - 1] = '\0';
	FAILS(chmod(long_path, 0777), ENAMETOOLONG);
	/* A text at the end of the memory that there is. */
	edge = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	WANT(edge != MAP_FAILED && munmap(edge + 4096, 4096) == 0);
	memcpy(edge + 4096 - sizeof("own/file"), "own/file", sizeof("own/file"));
	WANT(chmod(edge + 4096 - sizeof("own/file"), 0755) == 0 && mode_of("own/file") == 0755);
	edge[4095] = '/';
	FAILS(chmod(edge + 4096 - sizeof("own/file"), 0777), EFAULT);
	FAILS(setxattr("own/file", "user.x", "1", 1, 0), EOPNOTSUPP);
	return 0;
}

static void modes_of_others_stay(void)
{
	char dir[TAP_DIR_BYTES], path[TAP_DIR_BYTES + 8];

	tap_dir(dir);
	must(chdir(dir) == 0 && mkdir("own", 0755) == 0 && mkdir("other", 0755) == 0);
	must(close(open("own/file", O_CREAT | O_WRONLY, 0644)) == 0);
	must(close(open("other/file", O_CREAT | O_WRONLY, 0644)) == 0);
	must(symlink("../other/file", "own/link") == 0);
	snprintf(path, sizeof(path), "%s/own", dir);
	own[0] = realpath(path, NULL);
	must(own[0] != NULL);
	check_int(serve(changes_modes, NULL), 0);
	close_channel();
	check_int((int)mode_of("other/file"), 0644);
	check_int((int)mode_of("other"), 0755);
	free(own[0]);
	own[0] = NULL;
	must(chdir("/") == 0);
}

static bool take_frame(struct capture_connection *ret, int *ret_fd)
{
	struct chan_frame f;

	if (chan_recv(&theirs, &f) != 1)
		return false;
	check_int(f.type, CAPTURE_CONNECTION);
	check(capture_get_connection(f.payload, ret));
	check_int((int)f.fds_n, 1);
	*ret_fd = TAKE_FD(f.fds[0]);
	check_int((int)ret->owner.pid > 1, 1);
	check(ret->owner.name.n > 0 && ret->owner.program.n > 0);
	check_int((int)ret->name.n, 0);
	chan_frame_done(&f);
	return true;
}

static unsigned connections;

static void play_gateway(void)
{
	static const struct {
		uint8_t family;
		uint16_t port;
		uint8_t server[16];
	} want[] = {{4, 0x1234, {203, 0, 113, 9}}, {6, 443, {0x20, 1, 0xd, 0xb8, [15] = 1}},
		{4, 80, {198, 51, 100, 1}}};
	struct capture_connection m;
	int fd;

	while (take_frame(&m, &fd)) {
		must(connections < ARRAY_SIZE(want));
		check_int(m.client.family, want[connections].family);
		check_int(m.client.server_port, want[connections].port);
		check(memcmp(m.client.server, want[connections].server, 16) == 0);
		check(m.client.port != 0);
		check_int((int)write(fd, "x", 1), 1);
		close(fd);
		connections++;
	}
}

static void connections_go_to_the_gateway(void)
{
	connections = 0;
	check_int(serve(dials, play_gateway), 0);
	play_gateway();
	check_int((int)connections, 3);
	close_channel();
}

static int tries(void)
{
	struct sockaddr_un path = {.sun_family = AF_UNIX, .sun_path = "/run/x"},
			   abstract = {.sun_family = AF_UNIX, .sun_path = "\0x"};
	struct sockaddr unspecified = {.sa_family = AF_UNSPEC};
	int fd = socket(AF_INET, SOCK_STREAM, 0), six = socket(AF_INET6, SOCK_STREAM, 0);
	int local = socket(AF_UNIX, SOCK_STREAM, 0), pair[2], null = open("/dev/null", O_RDONLY);

	FAILS(socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP), EACCES);
	FAILS(socket(AF_INET, SOCK_DGRAM, IPPROTO_TCP), EACCES);
	FAILS(socket(AF_INET, SOCK_RAW, IPPROTO_TCP), EACCES);
	FAILS(socket(AF_INET, SOCK_STREAM, 262 /* MPTCP */), EACCES);
	FAILS(connect(fd, to4("127.0.0.1"), LEN4), ECONNREFUSED);
	FAILS(connect(fd, to4("0.0.0.0"), LEN4), ECONNREFUSED);
	FAILS(connect(six, to6("::1", 80), LEN6), ECONNREFUSED);
	FAILS(connect(six, to6("::", 80), LEN6), ECONNREFUSED);
	FAILS(connect(six, to6("::ffff:127.0.0.1", 80), LEN6), ECONNREFUSED);
	FAILS(connect(six, to6("2001:db8::1", 0), LEN6), ECONNREFUSED);
	FAILS(connect(six, to4("203.0.113.9"), LEN4), EAFNOSUPPORT);
	FAILS(connect(fd, to6("2001:db8::1", 80), LEN6), EAFNOSUPPORT);
	FAILS(connect(fd, to4("203.0.113.9"), LEN4 - 1), EINVAL);
	FAILS(connect(six, to6("2001:db8::1", 80), LEN4), EINVAL);
	FAILS(connect(fd, to4("203.0.113.9"), 1), EINVAL);
	FAILS(connect(fd, to4("203.0.113.9"), 4096), EINVAL);
	FAILS((int)syscall(SYS_connect, fd, 16UL, LEN4), EFAULT);
	FAILS(connect(fd, &unspecified, sizeof(unspecified)), EAFNOSUPPORT);
	FAILS(connect(999, to4("203.0.113.9"), LEN4), EBADF);
	FAILS(connect(-1, to4("203.0.113.9"), LEN4), EBADF);
	FAILS(connect(null, to4("203.0.113.9"), LEN4), ENOTSOCK);
	/* Others listen at paths, and at abstract names. */
	FAILS(connect(local, (struct sockaddr *)&path, sizeof(path)), ECONNREFUSED);
	FAILS(connect(local, (struct sockaddr *)&abstract, 4), ECONNREFUSED);
	FAILS(connect(fd, (struct sockaddr *)&path, sizeof(path)), ECONNREFUSED);
	FAILS(connect(local, to4("203.0.113.9"), LEN4), EAFNOSUPPORT);
	/* A name on a message is not obeyed: none of these sockets dials. */
	FAILS((int)sendto(fd, "x", 1, MSG_NOSIGNAL, to4("203.0.113.9"), LEN4), EISCONN);
	FAILS((int)sendto(fd, "x", 1, 0x20000000 /* MSG_FASTOPEN */, to4("203.0.113.9"), LEN4),
		EISCONN);
	WANT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
	WANT(sendto(pair[0], "x", 1, 0, (struct sockaddr *)&path, sizeof(path)) == 1);
	return 0;
}

/* What is sent to nowhere is lost, and nobody waits. */
static int sends(void)
{
	char bytes[1024] = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);

	FAILS(connect(fd, to4("203.0.113.9"), LEN4), ENETUNREACH);
	FAILS(bind(fd, to4("0.0.0.0"), LEN4), EACCES);
	for (int i = 0; i < 2000; i++)
		WANT(sendto(fd, bytes, sizeof(bytes), 0, to4("203.0.113.9"), LEN4) == 1024);
	return 0;
}

/* Two queries, and their answers. */
static int asks(void)
{
	struct sockaddr_in6 got;
	socklen_t n = sizeof(got);
	char text[16];
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);

	WANT(connect(fd, to6("::1", 53), LEN6) == 0);
	FAILS(connect(fd, to6("::1", 53), LEN6), EISCONN);
	WANT(getpeername(fd, (struct sockaddr *)&got, &n) == 0 && n == LEN6);
	WANT(send(fd, "one", 3, 0) == 3 && sendto(fd, "second", 6, 0, to6("::1", 54), LEN6) == 6);
	WANT(recv(fd, text, sizeof(text), 0) == 3 && memcmp(text, "ONE", 3) == 0);
	WANT(recvfrom(fd, text, sizeof(text), 0, NULL, NULL) == 6 &&
		memcmp(text, "SECOND", 6) == 0);
	return 0;
}

static int names = -1; /* the connection for them */

static void answer_names(void)
{
	struct capture_connection m;
	char text[32];
	ssize_t n;

	if (names < 0 && take_frame(&m, &names)) {
		check_int(m.client.family, 6);
		check_int(m.client.server_port, 53);
	}
	n = names < 0 ? 0 : recv(names, text, sizeof(text), MSG_DONTWAIT);
	for (ssize_t i = 0; i < n; i++)
		if (text[i] >= 'a')
			text[i] = (char)(text[i] - 32);
	if (n > 0)
		check_int((int)write(names, text, (size_t)n), (int)n);
}

static void datagrams_ask_for_names_alone(void)
{
	check_int(serve(sends, NULL), 0);
	close_channel();
	check_int(serve(asks, answer_names), 0);
	/* Nothing is left of it but this end. */
	check_int((int)recv(names, &(char){0}, 1, 0), 0);
	close(names);
	close_channel();
}

static void nothing_else_is_reached(void)
{
	struct chan_frame f;

	check_int(serve(tries, NULL), 0);
	check_int(chan_recv(&theirs, &f), 0);
	close_channel();
}

static int listens(void)
{
	struct sockaddr_un path = {.sun_family = AF_UNIX, .sun_path = "socket"};
	struct sockaddr name;
	socklen_t n = sizeof(name);
	int fd = socket(AF_INET, SOCK_STREAM, 0), local = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_in any = {.sin_family = AF_INET};

	FAILS(bind(fd, to4("127.0.0.1"), LEN4), EACCES);
	FAILS(bind(fd, to4("0.0.0.0"), LEN4), EACCES);
	FAILS(bind(fd, (struct sockaddr *)&path, sizeof(path)), EINVAL);
	WANT(bind(fd, (struct sockaddr *)&any, sizeof(any)) == 0);
	FAILS(listen(fd, 1), EINVAL);
	WANT(connect(fd, to4("203.0.113.9"), LEN4) == 0);
	/* What is no such socket is as it always was. */
	unlink(path.sun_path);
	WANT(bind(local, (struct sockaddr *)&path, sizeof(path)) == 0 && listen(local, 1) == 0);
	WANT(getsockname(local, &name, &n) == 0 && name.sa_family == AF_UNIX);
	unlink(path.sun_path);
	FAILS(getpeername(local, &name, &n), ENOTCONN);
	FAILS(bind(999, to4("127.0.0.1"), LEN4), EBADF);
	FAILS(getsockname(0x7fffffff, &name, &n), EBADF);
	return 0;
}

static void nobody_can_listen(void)
{
	char dir[TAP_DIR_BYTES];

	tap_dir(dir);
	must(chdir(dir) == 0);
	check_int(serve(listens, NULL), 0);
	close_channel();
	must(chdir("/") == 0);
}

/* More sockets than are held, and again once some are closed. */
static int takes_many(void)
{
	struct rlimit limit = {2048, 2048};
	int fds[DIAL_HELD_MAX];

	(void)setrlimit(RLIMIT_NOFILE, &limit);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		WANT((fds[i] = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
	FAILS(socket(AF_INET, SOCK_STREAM, 0), ENFILE);
	close(fds[0]);
	close(fds[DIAL_HELD_MAX - 1]);
	close(fds[7]);
	for (size_t i = 0; i < 3; i++)
		WANT(socket(AF_INET6, SOCK_STREAM, 0) >= 0);
	FAILS(socket(AF_INET, SOCK_STREAM, 0), ENFILE);
	limit.rlim_cur = 0;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	close(fds[1]);
	FAILS(socket(AF_INET, SOCK_STREAM, 0), EMFILE);
	return 0;
}

static void what_is_held_is_bounded(void)
{
	struct rlimit files = {2048, 2048};

	(void)setrlimit(RLIMIT_NOFILE, &files);
	check_int(serve(takes_many, NULL), 0);
	close_channel();
}

/* The gateway reads nothing: what waits for it is bounded, and nobody waits for it. */
static int floods(void)
{
	int refused = 0;

	for (int i = 0; i < 1000; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		WANT(fd >= 0);
		if (connect(fd, to4("203.0.113.9"), LEN4) < 0) {
			WANT(errno == ECONNREFUSED);
			refused++;
		}
		close(fd);
	}
	WANT(refused > 500 && refused < 1000);
	return 0;
}

static void a_gateway_that_is_behind(void)
{
	check_int(serve(floods, NULL), 0);
	close_channel();
}

static void hang_up(void)
{
	chan_done(&theirs);
	theirs.fd = -1;
}

static int dials_in_vain(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	FAILS(connect(fd, to4("203.0.113.9"), LEN4), ECONNREFUSED);
	return 0;
}

static void a_gateway_that_is_gone(void)
{
	check_int(serve(dials_in_vain, hang_up), 0);
	chan_done(&ours);
}

int main(void)
{
	run_test(connections_go_to_the_gateway);
	run_test(nothing_else_is_reached);
	run_test(datagrams_ask_for_names_alone);
	run_test(nobody_can_listen);
	run_test(modes_of_others_stay);
	run_test(what_is_held_is_bounded);
	run_test(a_gateway_that_is_behind);
	run_test(a_gateway_that_is_gone);
	return tap_done();
}
