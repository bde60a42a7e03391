/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: process 1 of a room. It waits for messages on descriptor 3 and for dead
 * children, and does one thing at a time. Its provider has narrowed it already (see
 * provider/provider.h); it holds nothing but the channel. Whatever goes wrong with the channel ends
 * it, and with it, as process 1 of a pid namespace, everything in the room.
 *
 * Every signal is blocked: those from inside cannot reach process 1 anyway, and the only one it
 * wants, SIGCHLD, is read from a descriptor. */
#include "base/fd.h"
#include "files/serve.h"
#include "init.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHANNEL_FD = 3, MAX_OUT = 64 * 1024 };

struct init {
	struct chan chan;
	bool stuck; /* what was sent last did not fit in the socket */
	struct proc *procs;
};

static struct proc *find(struct init *in, uint32_t exec)
{
	for (struct proc *p = in->procs; p; p = p->next)
		if (p->exec == exec)
			return p;
	return NULL;
}

static int start(struct init *in, const struct roomctl_exec *m, const int fds[3])
{
	struct start_failure why;
	_cleanup_fd_ int master = -1;
	struct proc *p;

	if (start_process(m, fds, &p, &master, &why) < 0) {
		struct roomctl_failed failed = {
			.exec = m->exec, .stage = why.stage, .sys_errno = (uint32_t)why.sys_errno};

		return roomctl_send_failed(&in->chan, &failed);
	}
	p->next = in->procs;
	in->procs = p;
	return roomctl_send_started(&in->chan, m->exec, (uint32_t)p->pid, master);
}

static int on_exec(struct init *in, struct chan_frame *f)
{
	struct roomctl_exec m;
	int fds[3] = {-1, -1, -1};
	unsigned taken = 0;
	int r = -EPROTO;

	if (roomctl_get_exec(f->payload, &m) && !find(in, m.exec)) {
		for (unsigned i = 0; i < ARRAY_SIZE(fds) && taken < f->fds_n; i++)
			if (m.fds_mask & (1U << i))
				fds[i] = f->fds[taken++];
		if (taken == f->fds_n && taken == (unsigned)__builtin_popcount(m.fds_mask))
			r = start(in, &m, fds);
	}
	exec_spec_done(&m.spec);
	return r;
}

static int on_signal(struct init *in, struct str payload)
{
	struct roomctl_signal m;

	if (!roomctl_get_signal(payload, &m))
		return -EPROTO;
	signal_deliver(&m, find(in, m.exec));
	return 0;
}

static int on_resize(struct init *in, struct str payload)
{
	struct winsize size = {0};
	struct proc *p;
	uint32_t exec;

	if (!roomctl_get_resize(payload, &exec, &size.ws_row, &size.ws_col))
		return -EPROTO;
	p = find(in, exec);
	if (p && p->slave >= 0)
		ioctl(p->slave, TIOCSWINSZ, &size); /* a terminal that hung up does not matter */
	return 0;
}

static int on_frame(struct init *in, struct chan_frame *f)
{
	switch (f->type) {
	case ROOM_EXEC:
		return on_exec(in, f);
	case ROOM_SIGNAL:
		return f->fds_n ? -EPROTO : on_signal(in, f->payload);
	case ROOM_RESIZE:
		return f->fds_n ? -EPROTO : on_resize(in, f->payload);
	default:
		return -EPROTO;
	}
}

/* One process that has ended; those that init did not start itself were orphans. */
static int on_dead(struct init *in, pid_t pid, int status)
{
	for (struct proc **at = &in->procs; *at; at = &(*at)->next) {
		struct proc *p = *at;
		struct roomctl_exited m = {.exec = p->exec, .status = (uint32_t)status};

		if (p->pid != pid)
			continue;
		*at = p->next;
		fd_close(p->slave);
		free(p);
		return roomctl_send_exited(&in->chan, &m);
	}
	return 0;
}

static int reap(struct init *in)
{
	for (;;) {
		int status, r;
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid <= 0)
			return 0;
		r = on_dead(in, pid, status);
		if (r < 0)
			return r;
	}
}

/* Handles what has come. Answers that do not fit in the socket, terminals above all, hold back more
 * work. */
static int take_work(struct init *in)
{
	int r = 0;

	while (!in->stuck) {
		struct chan_frame f;

		r = chan_recv(&in->chan, &f);
		if (r <= 0)
			break;
		r = on_frame(in, &f);
		chan_frame_done(&f);
		if (r == 0)
			r = chan_flush(&in->chan);
		if (r < 0)
			return r;
		in->stuck = chan_pending(&in->chan) > 0;
	}
	if (r < 0)
		return r;
	r = chan_flush(&in->chan);
	in->stuck = chan_pending(&in->chan) > 0;
	return r;
}

static int serve(struct init *in, int signals)
{
	for (;;) {
		struct pollfd p[2] = {{.fd = in->chan.fd}, {.fd = signals, .events = POLLIN}};
		struct signalfd_siginfo info;
		int r = take_work(in);

		if (r < 0)
			return r;
		p[0].events = in->stuck ? POLLOUT : POLLIN;
		if (poll(p, ARRAY_SIZE(p), -1) < 0 && errno != EINTR)
			return -errno;
		if (in->stuck && p[0].revents) {
			r = chan_flush(&in->chan);
			in->stuck = chan_pending(&in->chan) > 0;
		}
		if (r == 0 && p[1].revents) {
			if (read(signals, &info, sizeof(info)) < 0 && errno != EAGAIN)
				return -errno;
			r = reap(in);
		}
		if (r < 0)
			return r;
	}
}

/* What our maker ignores must not be ignored in the room. Past the C library, which hides two
 * signals of its own that posix_spawn leaves ignored; all zeroes are SIG_DFL, no flags, an empty
 * mask. */
static void reset_dispositions(void)
{
	const unsigned long zero[4] = {0};

	for (int i = 1; i < NSIG; i++)
		syscall(SYS_rt_sigaction, i, zero, NULL, (NSIG - 1) / 8);
}

int main(int argc, char **argv)
{
	static struct init in;
	sigset_t all;
	int signals;

	/* Not process 1, but what it starts to serve files, or to reach a port. */
	if (argc > 1 && strcmp(argv[1], "files") == 0)
		return files_serve_main(argc, argv);
	if (argc == 3 && strcmp(argv[1], "connect") == 0)
		return connect_main(argv[2]);
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		return 1;
	reset_dispositions();
	sigfillset(&all);
	if (sigprocmask(SIG_SETMASK, &all, NULL) < 0)
		return 1;
	sigemptyset(&all);
	sigaddset(&all, SIGCHLD);
	signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0)
		return 1;
	/* Where a provider has no pid namespace, orphans come here all the same. */
	if (getpid() != 1)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (chan_init(&in.chan, CHANNEL_FD, ROOMCTL_MAX_PAYLOAD, MAX_OUT) < 0 ||
		roomctl_send_ready(&in.chan) < 0)
		return 1;
	return serve(&in, signals) == -EPIPE ? 0 : 1;
}
