/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the guard is a process of the host, like init. It is in a Landlock domain
 * that allows it the room's files and /proc, and the room is in a domain within that. So it may
 * look into the room (dial.c reads and writes addresses there), and nobody in the room may signal
 * it or look into it. It is the parent of init and adopts what init leaves, so a room whose
 * processes kill its init ends as any other does. If the guard is killed from outside, init is told
 * by a signal, and ends the room itself.
 *
 * When the room has ended, the supervisor still has to learn that from init's channel. If the
 * channel to the gateway ended before that, the gateway would call it a failure. So the guard then
 * waits until the supervisor kills it or the gateway is gone. */
#include "init/guard.h"
#include "base/fd.h"
#include "init/dial.h"
#include "init/init.h"
#include "init/program.h"
#include "jail/sys.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_OUT = 4 * CAPTURE_MAX_PAYLOAD, FAREWELL_MS = 10000, FIXED_POLLS = 3 };

static struct guard {
	pid_t pid; /* of the guard; 0: there is none */
	pid_t init;
	int init_fd;
	struct chan gateway;
	struct dial dial;
} guard;

bool guard_is_gone(void)
{
	return guard.pid && getppid() != guard.pid;
}

/* --- in init --- */

static int guard_send_listener(int to, int listener)
{
	union fd_control control;
	char byte = 0;
	struct iovec iov = {&byte, sizeof(byte)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	fd_attach(&msg, &control, &listener, 1);
	return sendmsg(to, &msg, 0) < 0 ? -errno : 0;
}

static int guard_become_init(const struct narrow *n, int to, struct cloche_err *err)
{
	int listener, r;

	/* SIGCHLD is the one signal that init reads. */
	if (prctl(PR_SET_PDEATHSIG, SIGCHLD) < 0)
		return err_sys(err, errno, "ask for a signal");
	r = narrow_limits(n, err);
	if (r < 0)
		return r;
	listener = seccomp_install_dialling();
	if (listener == -EBUSY)
		err_hint(err, "who made this container answers for its system calls already");
	if (listener < 0)
		return err_sys(err, -listener, "install the filter of sockets");
	r = guard_send_listener(to, listener);
	fd_close(listener);
	return r < 0 ? err_sys(err, -r, "hand the sockets' listener over") : 0;
}

/* --- in the guard --- */

/* Returns the listener, or -1 if init has failed and said why. */
static int guard_receive_listener(int from)
{
	union fd_control control;
	char byte;
	struct iovec iov = {&byte, sizeof(byte)};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	int fd = -1;
	ssize_t n;

	do
		n = recvmsg(from, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		(void)fd_detach(&msg, &fd, 1);
	return fd;
}

/* Wait, and handle what has come. Return false when init has ended. */
static bool guard_turn(struct guard *g)
{
	struct pollfd polls[FIXED_POLLS + DIAL_POLLS_MAX];
	const bool unsent = g->dial.captured && chan_pending(&g->gateway) > 0;
	size_t n;

	polls[0] = (struct pollfd){.fd = g->init_fd, .events = POLLIN};
	polls[1] = (struct pollfd){.fd = g->dial.listener, .events = POLLIN};
	polls[2] = (struct pollfd){.fd = unsent ? g->gateway.fd : -1, .events = POLLOUT};
	n = dial_poll(&g->dial, polls + FIXED_POLLS);
	if (poll(polls, FIXED_POLLS + n, -1) < 0)
		return errno == EINTR;
	dial_look(&g->dial, polls + FIXED_POLLS);
	/* A gateway that is gone takes the sandbox along; that is not for us to do. */
	if (polls[2].revents && chan_flush(&g->gateway) < 0)
		g->dial.captured = false;
	if (polls[1].revents & POLLIN)
		dial_answer(&g->dial);
	else if (polls[1].revents)
		g->dial.listener = fd_close(g->dial.listener);
	return !polls[0].revents;
}

_noreturn_ static void guard_serve(struct guard *g)
{
	struct pollfd gateway = {.fd = g->dial.captured ? g->gateway.fd : -1};
	int status = 0;

	while (guard_turn(g))
		;
	dial_done(&g->dial);
	while (waitpid(g->init, &status, 0) < 0 && errno == EINTR)
		;
	tree_end_all();
	if (gateway.fd >= 0)
		(void)poll(&gateway, 1, FAREWELL_MS);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static int guard_begin(struct guard *g, int from, bool captured, struct cloche_err *err)
{
	int r = seccomp_install(SECCOMP_ROOM_STAYING, err);

	if (r < 0)
		return r;
	g->dial.listener = guard_receive_listener(from);
	if (g->dial.listener >= 0 && !freopen("/dev/null", "r+", stderr))
		return err_sys(err, errno, "open /dev/null");
	if (!captured)
		return 0;
	r = chan_init(&g->gateway, GUARD_GATEWAY_FD, CAPTURE_MAX_PAYLOAD, MAX_OUT);
	g->dial.gateway = &g->gateway;
	g->dial.captured = r == 0;
	return r < 0 ? err_sys(err, -r, "use the channel to the gateway") : 0;
}

int guard_part(const struct narrow *n, bool captured, char **own, struct cloche_err *err)
{
	_cleanup_fd_ int ours = -1, theirs = -1;
	int pair[2], r = fd_socketpair(SOCK_SEQPACKET, pair);

	if (r < 0)
		return err_sys(err, -r, "make a socket");
	ours = pair[0];
	theirs = pair[1];
	/* What init takes over: it is never dumpable either. */
	if (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return err_sys(err, errno, "hide from the room");
	guard.pid = getpid();
	guard.dial.keep.own = own;
	guard.init = fork();
	if (guard.init < 0)
		return err_sys(err, errno, "start init");
	if (guard.init == 0)
		return guard_become_init(n, theirs, err);
	theirs = fd_close(theirs);
	fd_close(CHANNEL_FD);
	guard.init_fd = sys_pidfd_open(guard.init);
	r = guard.init_fd < 0 ? err_sys(err, errno, "watch init")
			      : guard_begin(&guard, ours, captured, err);
	if (r < 0) {
		kill(guard.init, SIGKILL);
		return r;
	}
	guard_serve(&guard);
}
