/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "linger.h"
#include "tap.h"
#include "torture.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void closes_once(void)
{
	int fds[2];

	check_int(fd_pipe(fds), 0);
	errno = E2BIG;
	check_int(fd_close(fds[0]), -1);
	check_int(fd_close(-1), -1);
	check_int(errno, E2BIG);
	check_int(fcntl(fds[0], F_GETFD), -1);
	fd_close(fds[1]);
	{
		_cleanup_fd_ int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

		fds[0] = fd;
	}
	check_int(fcntl(fds[0], F_GETFD), -1);
}

static void lifts_above_stdio(void)
{
	int fds[2], input = fcntl(0, F_DUPFD_CLOEXEC, 3), lifted;

	close(0);
	check_int(fd_pipe(fds), 0);
	check(fds[0] > 2 && fds[1] > 2);
	fd_close(fds[0]);
	fd_close(fds[1]);
	check_int(fd_socketpair(SOCK_STREAM, fds), 0);
	check(fds[0] > 2 && fds[1] > 2);
	check_int(fcntl(0, F_GETFD), -1);
	check_int(fd_lift(fds[0]), fds[0]);
	check(dup2(fds[1], 0) == 0);
	lifted = fd_lift(0);
	check(lifted > 2);
	check_int(fcntl(lifted, F_GETFD), FD_CLOEXEC);
	check_int(fcntl(0, F_GETFD), -1);
	errno = EMFILE;
	check_int(fd_lift(-1), -EMFILE);
	if (input >= 0)
		check(dup2(input, 0) == 0);
	fd_close(input);
	fd_close(lifted);
	fd_close(fds[0]);
	fd_close(fds[1]);
}

static void closes_foreign_sockets_at_once(void)
{
	int fd = linger_socket();

	errno = EXDEV;
	check_int(fd_close_foreign(fd), -1);
	check_int(errno, EXDEV);
	check(fcntl(fd, F_GETFD) < 0);
	check_int(fd_close_foreign(-1), -1);
	check_int(errno, EBADF);
}

static void close_on_exec_from_birth(void)
{
	int fds[2];

	check_int(fd_pipe(fds), 0);
	check_int(fcntl(fds[0], F_GETFD), FD_CLOEXEC);
	check_int(fcntl(fds[1], F_GETFD), FD_CLOEXEC);
	check_int(fd_set_cloexec(fds[0], false), 0);
	check_int(fcntl(fds[0], F_GETFD), 0);
	check_int(fd_set_nonblock(fds[0], true), 0);
	check(fcntl(fds[0], F_GETFL) & O_NONBLOCK);
	check_int(fd_set_nonblock(fds[0], false), 0);
	check(!(fcntl(fds[0], F_GETFL) & O_NONBLOCK));
	fd_close(fds[0]);
	fd_close(fds[1]);
	check_int(fd_set_cloexec(fds[0], true), -EBADF);
	check_int(fd_socketpair(SOCK_SEQPACKET, fds), 0);
	check_int(fcntl(fds[1], F_GETFD), FD_CLOEXEC);
	fd_close(fds[0]);
	fd_close(fds[1]);
}

static void reads_what_was_written(void)
{
	static char data[60000];
	struct buf b = BUF_INIT(sizeof(data)), small = BUF_INIT(sizeof(data) - 1);
	int fds[2];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 7);
	for (int round = 0; round < 2; round++) {
		check_int(fd_pipe(fds), 0);
		check_int(fd_write_all(fds[1], data, sizeof(data)), 0);
		fd_close(fds[1]);
		/* Exactly the maximum is fine, one more is not. */
		check_int(fd_read_to_end(fds[0], round ? &small : &b), round ? -E2BIG : 0);
		fd_close(fds[0]);
	}
	check_int(buf_len(&b), sizeof(data));
	check(buf_data(&b) && memcmp(buf_data(&b), data, sizeof(data)) == 0);
	buf_done(&b);
	buf_done(&small);
	check_int(fd_write_all(-1, data, 1), -EBADF);
	check_int(fd_read_to_end(-1, &b), -EBADF);
	buf_done(&b);
}

/* Runs fn in a child, whose descriptors it may ruin. */
static int in_child(int (*fn)(void))
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(fn());
	check(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static int keeps_only_these(void)
{
	const int keep[] = {1, 60, 61, 70};

	for (int fd = 50; fd < 80; fd++)
		if (dup2(0, fd) < 0)
			return 1;
	if (fd_close_from(55, keep, ARRAY_SIZE(keep)) < 0)
		return 2;
	for (int fd = 50; fd < 80; fd++) {
		bool want = fd < 55 || fd == 60 || fd == 61 || fd == 70;

		if (is_open(fd) != want)
			return fd;
	}
	return fd_close_from(3, NULL, 0) == 0 && !is_open(50) && is_open(2) ? 0 : 3;
}

static int opens_missing_stdio(void)
{
	close(0);
	close(2);
	if (fd_sanitize_stdio() < 0 || !is_open(0) || !is_open(1) || !is_open(2))
		return 1;
	/* They stay open across exec. */
	if (fcntl(0, F_GETFD) != 0 || fcntl(2, F_GETFD) != 0)
		return 2;
	return open("/dev/null", O_RDONLY | O_CLOEXEC) > 2 ? 0 : 3;
}

/* Whole lines, from where they begin to where the caller wants no more. */
static void reads_lines(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(70000), small = BUF_INIT(5);
	_cleanup_fd_ int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	static char longer[66000];
	struct str line;

	memset(longer, 'x', sizeof(longer));
	must(fd >= 0 && fd_write_all(fd, "one\n\ntwo\n", 9) == 0 &&
		fd_write_all(fd, longer, sizeof(longer)) == 0 && fd_write_all(fd, "\nend", 4) == 0);
	check_int(fd_next_line(fd, &b, 0, UINT64_MAX, &line), 1);
	check_str(line, "one");
	buf_consume(&b, 4);
	check_int(fd_next_line(fd, &b, 4, UINT64_MAX, &line), 1);
	check_int(line.n, 0);
	buf_clear(&b);
	check_int(fd_next_line(fd, &b, 9, UINT64_MAX, &line), 1);
	check(str_eq(line, str_make(longer, sizeof(longer))));
	buf_consume(&b, line.n + 1);
	check_int(fd_next_line(fd, &b, 9 + sizeof(longer) + 1, UINT64_MAX, &line), 0);
	check_str(buf_str(&b), "end");
	buf_clear(&b);
	check_int(fd_next_line(fd, &b, 0, 3, &line), 0);
	check_str(buf_str(&b), "one");
	check_int(fd_next_line(fd, &small, 9, UINT64_MAX, &line), -E2BIG);
	check_int(fd_next_line(-1, &small, 0, UINT64_MAX, &line), -E2BIG);
	buf_clear(&b);
	check_int(fd_next_line(-1, &b, 0, 10, &line), -EBADF);
}

static void put_file(int dir, const char *name, const char *text)
{
	_cleanup_fd_ int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	must(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
}

static void reads_regular_files_only(void)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct buf b = BUF_INIT(4);
	char top[TAP_DIR_BYTES];
	_cleanup_fd_ int dir = -1;

	tap_fast_dir(top);
	dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(dir >= 0);
	check_int(fd_read_file(dir, "missing", &b, &err), -E_SYSTEM);
	check_int(err.sys_errno, ENOENT);
	check_z(err.message, "open missing: No such file or directory");
	/* Neither a directory, nor a device, nor a FIFO without a writer (which must not block). */
	check_int(fd_read_file(dir, ".", &b, &err), -E_CONFIG);
	check_int(fd_read_file(dir, "/dev/zero", &b, &err), -E_CONFIG);
	must(mkfifoat(dir, "fifo", 0600) == 0);
	check_int(fd_read_file(dir, "fifo", &b, &err), -E_CONFIG);
	put_file(dir, "long", "texts");
	check_int(fd_read_file(dir, "long", &b, &err), -E_LIMIT);
	buf_clear(&b);
	put_file(dir, "short", "text");
	check_int(fd_read_file(dir, "short", &b, &err), 0);
	check_str(buf_str(&b), "text");
	buf_done(&b);
	must(unlinkat(dir, "fifo", 0) == 0 && unlinkat(dir, "long", 0) == 0 &&
		unlinkat(dir, "short", 0) == 0 && rmdir(top) == 0);
}

static void closes_ranges(void)
{
	check_int(in_child(keeps_only_these), 0);
}

/* A pipe's writing end, a socket and a pipe's reading end as standard error. */
static int leaves_what_only_writes(void)
{
	int p[2], s[2];
	char byte;

	if (pipe(p) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, s) < 0)
		return 1;
	if (dup2(p[1], 2) < 0 || fd_only_write(2) < 0 || write(2, "x", 1) != 1 ||
		read(p[0], &byte, 1) != 1)
		return 2;
	if (dup2(s[0], 2) < 0 || fd_only_write(2) < 0 || write(2, "x", 1) != 1)
		return 3;
	return dup2(p[0], 2) == 2 && fd_only_write(2) == 0 && read(2, &byte, 1) < 0 ? 0 : 4;
}

static int takes_reading_away(void)
{
	int terminal = posix_openpt(O_RDWR | O_NOCTTY);
	char byte;

	if (terminal < 0 || grantpt(terminal) < 0 || unlockpt(terminal) < 0)
		return 1;
	if (dup2(open(ptsname(terminal), O_RDWR | O_NOCTTY), 2) < 0 || !isatty(2))
		return 2;
	if (fd_only_write(2) < 0 || !isatty(2) || (fcntl(2, F_GETFL) & O_ACCMODE) != O_WRONLY)
		return 3;
	return write(2, "x", 1) == 1 && read(2, &byte, 1) < 0 && errno == EBADF ? 0 : 4;
}

static void only_writes(void)
{
	check_int(in_child(leaves_what_only_writes), 0);
	check_int(in_child(takes_reading_away), 0);
}

static void sanitizes_stdio(void)
{
	check_int(in_child(opens_missing_stdio), 0);
}

static void read_some(void)
{
	struct buf b = BUF_INIT(100000);
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC), r;

	r = fd_read_to_end(fd, &b);
	check(r == (torture_failed ? -ENOMEM : -E2BIG));
	fd_close(fd);
	buf_done(&b);
}

static void survives_lack_of_memory(void)
{
	torture(read_some);
}

static void walks_control_messages(void)
{
	union {
		struct cmsghdr align;
		char mem[CMSG_SPACE(1) + CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr msg = {.msg_control = control.mem, .msg_controllen = sizeof(control.mem)};
	struct cmsghdr *first = CMSG_FIRSTHDR(&msg), *second;

	first->cmsg_len = CMSG_LEN(1);
	second = fd_next_control(&msg, first);
	check((char *)second == control.mem + CMSG_SPACE(1));
	second->cmsg_len = CMSG_LEN(sizeof(int));
	check(!fd_next_control(&msg, second));
	/* Cut short: no room for a second head. */
	msg.msg_controllen = CMSG_SPACE(1) + sizeof(struct cmsghdr) - 1;
	check(!fd_next_control(&msg, first));
	/* Lengths that lie. */
	msg.msg_controllen = sizeof(control.mem);
	first->cmsg_len = sizeof(struct cmsghdr) - 1;
	check(!fd_next_control(&msg, first));
	first->cmsg_len = sizeof(control.mem) + 1;
	check(!fd_next_control(&msg, first));
	first->cmsg_len = (socklen_t)-1;
	check(!fd_next_control(&msg, first));
}

static void attached_descriptors_come_along(void)
{
	int pair[2], three[3] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}, got[2] = {-1, -1};
	union fd_control control;
	char byte = 'x';
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr out = {.msg_iov = &iov, .msg_iovlen = 1};
	struct msghdr in = out;
	int next;

	must(fd_socketpair(SOCK_STREAM, pair) == 0);
	fd_attach(&out, &control, three, ARRAY_SIZE(three));
	must(sendmsg(pair[0], &out, 0) == 1);
	in.msg_control = control.bytes;
	in.msg_controllen = sizeof(control.bytes);
	must(recvmsg(pair[1], &in, MSG_CMSG_CLOEXEC) == 1);
	check_int(fd_detach(&in, got, ARRAY_SIZE(got)), 3);
	check(got[0] > pair[1] && got[1] > got[0]);
	/* The third was closed. */
	next = dup(STDIN_FILENO);
	check_int(next, got[1] + 1);
	close(next);
	close(got[0]);
	close(got[1]);
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	run_test(closes_once);
	run_test(lifts_above_stdio);
	run_test(closes_foreign_sockets_at_once);
	run_test(close_on_exec_from_birth);
	run_test(reads_what_was_written);
	run_test(reads_lines);
	run_test(reads_regular_files_only);
	run_test(closes_ranges);
	run_test(sanitizes_stdio);
	run_test(walks_control_messages);
	run_test(attached_descriptors_come_along);
	run_test(only_writes);
	run_test(survives_lack_of_memory);
	return tap_done();
}
