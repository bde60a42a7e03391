/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: what the person's ssh (or kubectl, or docker) runs in the other place has
 * the stream as its standard input and output. It hands both to the process that holds the room,
 * which outlives it, and then only waits: whoever ends it ends that carrier, and its own end is
 * seen by who runs it. Of what is neither pipe nor socket it moves the bytes itself. */
#include "base/fd.h"
#include "base/macro.h"
#include "farside/fardir.h"
#include "farside/hold.h"
#include "farside/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct attach_way {
	int from, to;
	size_t n, at; /* bytes that were read, and written of these */
	char bytes[128 * 1024];
};

static void attach_watch(const struct attach_way *w, struct pollfd *from, struct pollfd *to)
{
	from->events = w->n == 0 ? POLLIN : 0;
	to->events |= w->n > 0 ? POLLOUT : 0;
}

/* Return 0, or negative at the end. */
static int attach_move(struct attach_way *w)
{
	ssize_t n;

	if (w->n == 0) {
		n = read(w->from, w->bytes, sizeof(w->bytes));
		if (n == 0)
			return -EPIPE;
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		w->n = (size_t)n;
		w->at = 0;
	}
	n = write(w->to, w->bytes + w->at, w->n - w->at);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	w->at += (size_t)n;
	if (w->at == w->n)
		w->n = 0;
	return 0;
}

/* Move bytes until either side has ended. */
static int attach_carry(int sock)
{
	static struct attach_way in, out;
	int e = 0;

	in.from = 0;
	in.to = out.from = sock;
	out.to = 1;
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || fd_set_nonblock(0, true) < 0 ||
		fd_set_nonblock(1, true) < 0 || fd_set_nonblock(sock, true) < 0)
		return 1;
	while (e == 0) {
		struct pollfd p[] = {{.fd = 0}, {.fd = sock}, {.fd = 1}};

		attach_watch(&out, &p[1], &p[2]);
		attach_watch(&in, &p[0], &p[1]);
		/* A hangup is always reported; only one that is waited for is looked at. */
		for (unsigned i = 0; i < ARRAY_SIZE(p); i++)
			if (p[i].events == 0)
				p[i].fd = -1;
		if (poll(p, ARRAY_SIZE(p), -1) < 0 && errno != EINTR)
			return 1;
		e = attach_move(&in);
		if (e == 0)
			e = attach_move(&out);
	}
	return 0;
}

/* Whether a loop can wait for it, and nobody else minds that it does not block. */
static bool attach_is_ours(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

/* Hand over the stream, and wait until it has ended. */
static int attach_give(int sock)
{
	static const int stream[HOLD_GIVEN] = {0, 1};
	char byte = (char)HOLD_GIVES;
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	union fd_control control;

	fd_attach(&msg, &control, stream, HOLD_GIVEN);
	if (sendmsg(sock, &msg, MSG_NOSIGNAL) != 1)
		return 1;
	while (read(sock, &byte, 1) < 0 && errno == EINTR)
		;
	return 0;
}

static int attach_fail(const struct cloche_err *err)
{
	fprintf(stderr, "cloche-far: %s\n", err->message);
	return 1;
}

/* In a child: hold the room. */
_noreturn_ static void attach_hold(const char *id, int dir, int listener)
{
	const int keep[] = {MIN(dir, listener), MAX(dir, listener)};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (setsid() < 0 || null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
		dup2(null, 2) < 0 || fd_close_from(3, keep, ARRAY_SIZE(keep)) < 0)
		_exit(1);
	/* Whoever connects to reap the room learns who listens: that has to be this process. */
	if (fardir_listen_again(listener) < 0)
		_exit(1);
	hold_program(id, &(struct hold_how){.dir = dir, .listener = listener, .owner = -1});
}

int farside_start(const char *id)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	_cleanup_fd_ int dir = -1, listener = -1;
	pid_t pid;

	if (fd_sanitize_stdio() < 0)
		return 1;
	fardir_sweep();
	dir = fardir_make(id, &err);
	listener = dir < 0 ? -1 : fardir_listen(dir, &err);
	if (listener < 0)
		return attach_fail(&err);
	pid = fork();
	if (pid < 0)
		return 1;
	if (pid == 0)
		attach_hold(id, dir, listener);
	dir = fd_close(dir);
	listener = fd_close(listener);
	return farside_attach(id);
}

int farside_hold(const char *id, bool only_rooms)
{
	const struct hold_how how = {.dir = FARSIDE_FD_DIR,
		.listener = FARSIDE_FD_LISTENER,
		.owner = FARSIDE_FD_OWNER,
		.only_rooms = only_rooms};

	for (int fd = FARSIDE_FD_DIR; fd <= FARSIDE_FD_OWNER; fd++)
		if (fd_set_cloexec(fd, true) < 0)
			return 1;
	/* Signals for the service's group are not for us. */
	if (setsid() < 0 || fardir_listen_again(how.listener) < 0)
		return 1;
	hold_program(id, &how);
}

int farside_attach(const char *id)
{
	static const char gone[LINK_HEADER] = {[4] = LINK_GONE};
	struct cloche_err err = CLOCHE_ERR_INIT;
	int sock = fardir_connect(id, &err);

	if (sock >= 0)
		return attach_is_ours(0) && attach_is_ours(1) ? attach_give(sock)
							      : attach_carry(sock);
	/* Otherwise the near end would try again until its patience ends. */
	if (err.code == E_NOT_FOUND)
		(void)!fd_write_all(1, gone, sizeof(gone));
	return attach_fail(&err);
}

int farside_reap(const char *id)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	return fardir_reap(id, &err) < 0 ? attach_fail(&err) : 0;
}
