/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: see ipc/forward.h. For each connection to the host's listener this program
 * asks the room for a connected socket, and copies bytes between the two. The room is hostile: it
 * may only send one connected TCP socket of a foreign network namespace per question, otherwise
 * this program exits (INV-NO-ROUTE: it never hands the room anything but bytes). Sockets into a
 * room elsewhere are the supervisor's, and only their bytes come from there. It also exits when the
 * socket on which it asks is closed or the supervisor ends. */
#include "base/clock.h"
#include "base/fd.h"
#include "forward.h"
#include "ipc/forward.h"
#include "jail/narrow.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

enum { ACCEPTS_PER_TURN = 16, ANSWERS_PER_TURN = 64, FDS = 2 * MAX_CONNS + 32 };
#define LISTEN_AGAIN (100 * USEC_PER_MSEC)

static void on_listener(struct loop_io *io, uint32_t events);

void forward_forget(struct forward *f, const struct conn *c)
{
	for (unsigned i = 0; i < f->asked_n; i++) {
		unsigned at = (f->asked_first + i) % MAX_CONNS;

		if (f->asked[at] == c)
			f->asked[at] = NULL;
	}
}

static uint64_t netns_cookie(int fd)
{
	uint64_t cookie = 0;
	socklen_t n = sizeof(cookie);

	return getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &n) == 0 ? cookie : 0;
}

static bool is_elsewhere(const struct forward *f)
{
	return f->asks == FORWARD_FD_SUPERVISOR;
}

/* The room must send a connected TCP socket that is not from the host's network namespace. */
static bool is_acceptable(const struct forward *f, int fd)
{
	struct sockaddr_storage peer;
	socklen_t n = sizeof(int), peer_n = sizeof(peer);
	int domain = 0, protocol = 0;

	if (is_elsewhere(f))
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) < 0 ||
		getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &n) < 0)
		return false;
	return (domain == AF_INET || domain == AF_INET6) && protocol == IPPROTO_TCP &&
	       getpeername(fd, (struct sockaddr *)&peer, &peer_n) == 0 &&
	       (f->host_cookie == 0 || netns_cookie(fd) != f->host_cookie);
}

static void ask(struct forward *f, struct conn *c)
{
	const char byte = FORWARD_ASK;

	if (f->asked_n == MAX_CONNS || send(f->asks, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1) {
		conn_end(c);
		return;
	}
	f->asked[(f->asked_first + f->asked_n++) % MAX_CONNS] = c;
}

static void on_listen_again(struct loop_timer *t)
{
	struct forward *f = container_of(t, struct forward, listen_again);

	if (loop_io_add(f->loop, &f->listener, FORWARD_FD_LISTENER, EPOLLIN, on_listener) < 0)
		loop_stop(f->loop, 1);
}

static void on_listener(struct loop_io *io, uint32_t events)
{
	struct forward *f = container_of(io, struct forward, listener);

	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct conn *c;

		if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
				      errno == ENOMEM)) {
			/* Pending connections stay in the queue and would wake us at once. */
			loop_io_remove(io);
			if (loop_timer_set(f->loop, &f->listen_again,
				    clock_mono_usec() + LISTEN_AGAIN, on_listen_again) < 0)
				loop_stop(f->loop, 1);
		}
		if (fd < 0)
			return;
		if (f->conns_n >= MAX_CONNS) {
			fd_close(fd);
			continue;
		}
		c = conn_new(f, fd);
		if (c)
			ask(f, c);
	}
}

/* Return 1 for an answer, 0 for none now, -1 if the room is gone or sent something invalid. */
static int take_answer(struct forward *f)
{
	union fd_control control;
	char byte = 0;
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	ssize_t n = recvmsg(f->asks, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct conn *c;
	int fd = -1;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (n == 1)
		(void)fd_detach(&msg, &fd, 1);
	if (n != 1 || f->asked_n == 0 || (byte != FORWARD_YES && byte != FORWARD_NO) ||
		(byte == FORWARD_YES) != (fd >= 0) || (fd >= 0 && !is_acceptable(f, fd))) {
		fd_close_foreign(fd);
		return -1;
	}
	c = f->asked[f->asked_first];
	f->asked_first = (f->asked_first + 1) % MAX_CONNS;
	f->asked_n--;
	if (!c)
		fd_close_foreign(fd);
	else if (fd < 0)
		conn_end(c);
	else if (is_elsewhere(f))
		conn_join_later(c, fd);
	else
		conn_join(c, fd);
	return 1;
}

static void main_on_room(struct loop_io *io, uint32_t events)
{
	struct forward *f = container_of(io, struct forward, room);
	int r = 1;

	for (int i = 0; i < ANSWERS_PER_TURN && r > 0; i++)
		r = take_answer(f);
	if (r < 0)
		loop_stop(f->loop, 0);
}

static int narrow(struct cloche_err *err)
{
	const struct rlimit files = {FDS, FDS}, none = {0, 0};

	if (setrlimit(RLIMIT_NOFILE, &files) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
		return err_sys(err, errno, "set limits");
	return narrow_program(SECCOMP_FORWARD, err);
}

static int prepare(struct forward *f, struct cloche_err *err)
{
	const bool here = fcntl(FORWARD_FD_ROOM, F_GETFD) >= 0;
	const int keep[] = {FORWARD_FD_LISTENER, here ? FORWARD_FD_ROOM : FORWARD_FD_SUPERVISOR};
	int r = fd_close_from(3, keep, ARRAY_SIZE(keep));

	/* End with the supervisor. A stopped process would not notice a closed channel. */
	if (r < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return err_sys(err, errno, "tidy up what was inherited");
	f->asks = keep[1];
	f->host_cookie = netns_cookie(FORWARD_FD_LISTENER);
	f->loop = loop_new();
	if (!f->loop)
		return err_sys(err, errno, "make the event loop");
	r = fd_set_nonblock(FORWARD_FD_LISTENER, true);
	if (r == 0)
		r = loop_io_add(f->loop, &f->listener, FORWARD_FD_LISTENER, EPOLLIN, on_listener);
	if (r == 0)
		r = loop_io_add(f->loop, &f->room, f->asks, EPOLLIN, main_on_room);
	return r < 0 ? err_sys(err, -r, "watch the sockets") : narrow(err);
}

int main(void)
{
	static struct forward f;
	struct cloche_err err = CLOCHE_ERR_INIT;

	if (fd_sanitize_stdio() < 0)
		return 125;
	if (prepare(&f, &err) < 0) {
		fprintf(stderr, "cloche-forward: %s\n", err.message);
		return 125;
	}
	/* The process ends here, so nothing is freed. */
	_exit(loop_run(f.loop) < 0 ? 125 : 0);
}
