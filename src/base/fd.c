/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

int fd_close(int fd)
{
	if (fd >= 0) {
		int saved = errno;

		close(fd);
		errno = saved;
	}
	return -1;
}

void fd_set_reset(int fd, bool reset)
{
	const struct linger linger = {.l_onoff = reset};

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

int fd_close_foreign(int fd)
{
	int saved = errno;

	if (fd >= 0)
		fd_set_reset(fd, false);
	errno = saved;
	return fd_close(fd);
}

int fd_lift(int fd)
{
	int r = fd < 0 || fd > 2 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, 3);

	if (r < 0)
		r = -errno;
	if (r != fd)
		fd_close(fd);
	return r;
}

int fd_write_all(int fd, const void *p, size_t n)
{
	const char *at = p;

	while (n > 0) {
		ssize_t r = write(fd, at, n);

		if (r < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		at += r;
		n -= (size_t)r;
	}
	return 0;
}

static int set_flag(int fd, int get, int set, int flag, bool on)
{
	int flags = fcntl(fd, get);

	if (flags < 0)
		return -errno;
	flags = on ? flags | flag : flags & ~flag;
	return fcntl(fd, set, flags) < 0 ? -errno : 0;
}

int fd_set_nonblock(int fd, bool on)
{
	return set_flag(fd, F_GETFL, F_SETFL, O_NONBLOCK, on);
}

int fd_set_cloexec(int fd, bool on)
{
	return set_flag(fd, F_GETFD, F_SETFD, FD_CLOEXEC, on);
}

static int fd_lift_pair(int fds[2])
{
	int r;

	fds[0] = fd_lift(fds[0]);
	fds[1] = fd_lift(fds[1]);
	r = MIN(fds[0], fds[1]);
	if (r >= 0)
		return 0;
	fd_close(fds[0]);
	fd_close(fds[1]);
	return r;
}

int fd_pipe(int ret_fds[2])
{
	int fds[2], r = pipe2(fds, O_CLOEXEC) < 0 ? -errno : fd_lift_pair(fds);

	if (r == 0)
		memcpy(ret_fds, fds, sizeof(fds));
	return r;
}

int fd_socketpair(int type, int ret_fds[2])
{
	int fds[2], r = socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds);

	r = r < 0 ? -errno : fd_lift_pair(fds);
	if (r == 0)
		memcpy(ret_fds, fds, sizeof(fds));
	return r;
}

int fd_read_to_end(int fd, struct buf *b)
{
	enum { FIRST_READ = 256, WORTH_A_READ = 64 };

	for (;;) {
		/* Most files that are read whole are tiny: use the memory that is left before
		 * asking for more. Large files are read in ever larger steps. */
		size_t left = b->cap - b->tail, want;
		char probe, *at = &probe;
		ssize_t n;
		int r;

		want = MIN(left >= WORTH_A_READ ? left : MAX(buf_len(b), (size_t)FIRST_READ),
			buf_room(b));

		if (want > 0) {
			r = buf_reserve(b, want, &at);
			if (r < 0)
				return r;
		} else {
			want = 1; /* to tell "exactly full" from "too large" */
		}
		n = read(fd, at, want);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (n == 0)
			return 0;
		if (at == &probe)
			return -E2BIG;
		buf_commit(b, (size_t)n);
	}
}

int fd_read_file(int dirfd, const char *path, struct buf *ret, struct cloche_err *err)
{
	_cleanup_fd_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int r;

	if (fd < 0)
		return err_sys(err, errno, "open %s", path);
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "stat %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, E_CONFIG, "%s is not a regular file", path);
	r = fd_read_to_end(fd, ret);
	if (r == -E2BIG)
		return err_set(err, E_LIMIT, "%s is larger than %zu bytes", path, ret->max);
	if (r < 0)
		return err_sys(err, -r, "read %s", path);
	return 0;
}

int fd_next_line(int fd, struct buf *b, uint64_t at, uint64_t end, struct str *ret)
{
	enum { CHUNK = 64 * 1024 };
	size_t n = str_chr(buf_str(b), '\n');

	while (n == buf_len(b)) {
		size_t room = MIN(buf_room(b), (size_t)CHUNK);
		size_t want = (size_t)MIN(end - (at + n), (uint64_t)room);
		ssize_t got;
		char *to;
		int r = want ? buf_reserve(b, want, &to) : at + n < end ? -E2BIG : 0;

		if (r < 0)
			return r;
		do
			got = want ? pread(fd, to, want, (off_t)(at + n)) : 0;
		while (got < 0 && errno == EINTR);
		if (got <= 0)
			return got < 0 ? -errno : 0;
		buf_commit(b, (size_t)got);
		n += str_chr(str_from_index(buf_str(b), n), '\n');
	}
	*ret = str_prefix(buf_str(b), n);
	return 1;
}

int fd_sanitize_stdio(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		if (fd <= 2) {
			int r = fd_set_cloexec(fd, false);
			if (r < 0)
				return r;
		}
	} while (fd < 2);
	if (fd > 2)
		close(fd);
	return 0;
}

int fd_only_write(int fd)
{
	int flags = fcntl(fd, F_GETFL), again, r = 0;
	char path[32];
	struct stat st;

	if (flags < 0 || fstat(fd, &st) < 0)
		return -errno;
	if ((flags & O_ACCMODE) == O_WRONLY || S_ISSOCK(st.st_mode))
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC);
	if (again < 0)
		again = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (again < 0)
		return -errno;
	if (dup2(again, fd) < 0)
		r = -errno;
	close(again);
	return r;
}

int fd_path(int fd, char ret[PATH_MAX])
{
	char link[32];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, ret, PATH_MAX - 1);
	if (n < 0)
		return -errno;
	ret[n] = '\0';
	return 0;
}

int fd_open_again(int fd, int flags)
{
	char link[32];
	int r;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	r = open(link, flags | O_CLOEXEC);
	return r < 0 ? -errno : r;
}

int fd_chmod(int fd, mode_t mode)
{
	char link[32];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return chmod(link, mode) < 0 ? -errno : 0;
}

static void set_tcp(int fd, int option)
{
	const int on = 1;

	(void)setsockopt(fd, IPPROTO_TCP, option, &on, sizeof(on));
}

void fd_acknowledge(int fd)
{
	set_tcp(fd, TCP_QUICKACK);
}

void fd_send_at_once(int fd)
{
	set_tcp(fd, TCP_NODELAY);
}

bool fd_is_stream_end(int fd)
{
	int domain = 0, type = 0, listens = 1;
	socklen_t n = sizeof(int);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 && domain == AF_UNIX &&
	       getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_STREAM &&
	       getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) == 0 && !listens;
}

void fd_refuse_attached(int fd)
{
	const int off = 0;

	(void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
}

struct cmsghdr *fd_next_control(const struct msghdr *msg, struct cmsghdr *cm)
{
	size_t at = (size_t)((char *)cm - (char *)msg->msg_control), n = msg->msg_controllen;

	if (cm->cmsg_len < sizeof(*cm) || cm->cmsg_len > n - at)
		return NULL;
	at += CMSG_ALIGN(cm->cmsg_len);
	return at + sizeof(*cm) <= n ? (struct cmsghdr *)((char *)msg->msg_control + at) : NULL;
}

void fd_attach(struct msghdr *msg, union fd_control *control, const int *fds, unsigned n)
{
	struct cmsghdr *cm = &control->align;

	memset(control, 0, sizeof(*control));
	msg->msg_control = control->bytes;
	msg->msg_controllen = (socklen_t)CMSG_SPACE(sizeof(int) * n);
	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = (socklen_t)CMSG_LEN(sizeof(int) * n);
	memcpy(CMSG_DATA(cm), fds, sizeof(int) * n);
}

unsigned fd_detach(struct msghdr *msg, int *ret, unsigned max)
{
	unsigned n = 0;

	for (struct cmsghdr *cm = CMSG_FIRSTHDR(msg); cm; cm = fd_next_control(msg, cm)) {
		size_t came = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < came; i++, n++) {
			int fd;

			memcpy(&fd, CMSG_DATA(cm) + i * sizeof(int), sizeof(int));
			if (n < max)
				ret[n] = fd;
			else
				fd_close_foreign(fd);
		}
	}
	return n;
}

int fd_close_range(unsigned first, unsigned last, unsigned flags)
{
	return (int)syscall(SYS_close_range, first, last, flags);
}

int fd_make_first(int fd)
{
	int opened = open("/dev/null", O_RDWR | O_CLOEXEC);
	/* The sources must not have the numbers of the targets. */
	_cleanup_fd_ int null = opened < 0 ? -1 : fcntl(opened, F_DUPFD_CLOEXEC, 10);
	_cleanup_fd_ int third = null < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 10);
	int r = third < 0 ? -errno : 0;

	if (opened > 3)
		fd_close(opened);
	for (int i = 0; i < 4 && r == 0; i++)
		if (dup2(i < 3 ? null : third, i) < 0)
			r = -errno;
	return r;
}

int fd_close_from(int first, const int *keep, size_t keep_n)
{
	unsigned from = (unsigned)first;

	for (size_t i = 0; i < keep_n; i++) {
		unsigned kept = (unsigned)keep[i];

		if (keep[i] < first)
			continue;
		if (kept > from && fd_close_range(from, kept - 1, 0) < 0)
			return -errno;
		from = kept + 1;
	}
	return fd_close_range(from, ~0U, 0) < 0 ? -errno : 0;
}

void fd_raise_limit(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &l);
	}
}
