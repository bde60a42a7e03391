/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: this is process 1 of a room. It waits for messages on descriptor 3, for
 * processes that execute their command, and for dead children. It never waits for a single process,
 * as any process of the room may be stopped by another. Its provider has dropped its rights already
 * (see provider/provider.h); it holds nothing but the channel. Any failure of the channel ends it
 * and, as it is process 1 of a pid namespace, everything in the room.
 *
 * Every signal is blocked: signals from the room cannot reach process 1 anyway, and SIGCHLD, the
 * only one that it needs, is read from a descriptor. */
#include "base/fd.h"
#include "init/guard.h"
#include "init/init.h"
#include "init/program.h"
#include "init/setgid.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_OUT = 64 * 1024 };

struct init {
	struct chan chan;
	bool stuck; /* the last frame did not fit into the socket: do nothing else */
	bool dead;  /* there may be children to reap */
	bool over;  /* the process that the room was made for has ended */
	struct proc *procs;
	unsigned births; /* how many of these have not executed their command yet */
	struct setgid setgid;
};

static struct proc *find(struct init *in, uint32_t exec)
{
	for (struct proc *p = in->procs; p; p = p->next)
		if (p->exec == exec)
			return p;
	return NULL;
}

/* Call this after queueing a frame; r is the result. */
static int flush(struct init *in, int r)
{
	if (r == 0)
		r = chan_flush(&in->chan);
	in->stuck = chan_pending(&in->chan) > 0;
	return r;
}

static int say_failed(struct init *in, uint32_t exec, const struct start_failure *why)
{
	struct roomctl_failed m = {
		.exec = exec, .stage = why->stage, .sys_errno = (uint32_t)why->sys_errno};

	return roomctl_send_failed(&in->chan, &m);
}

static int start(struct init *in, const struct roomctl_exec *m, const int fds[3])
{
	struct start_failure why;
	struct proc *p;

	if (start_process(m, fds, &p, &why) < 0)
		return say_failed(in, m->exec, &why);
	p->next = in->procs;
	in->procs = p;
	in->births++;
	return 0;
}

/* The process at *at has sent something, has executed its command, has failed to do so, or is
 * dead. Free it if it failed. If it is dead, nothing more comes from it, even if a child of it
 * (stoppable.c) still holds what it would come by. */
static int on_birth(struct init *in, struct proc **at, bool dead)
{
	struct proc *p = *at;
	struct start_failure why;
	int r, listener;

	while ((r = start_take(p, &why, &listener)) == START_WAITS && listener >= 0)
		setgid_add(&in->setgid, listener);
	if (r == START_WAITS && !dead)
		return 0;
	in->births--;
	if (r != START_FAILED) {
		r = roomctl_send_started(&in->chan,
			&(struct roomctl_started){.exec = p->exec, .pid = (uint32_t)p->pid},
			p->master);
		p->master = fd_close(p->master);
		return r;
	}
	r = say_failed(in, p->exec, &why);
	*at = p->next;
	proc_free(p); /* the reaper takes the child */
	return r;
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
			r = plain_apply(&m.spec);
		if (r == 0)
			r = user_settle(&m.spec);
		if (r == 0)
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
	struct roomctl_resize m;
	struct winsize size;
	struct proc *p;

	if (!roomctl_get_resize(payload, &m))
		return -EPROTO;
	size = (struct winsize){.ws_row = m.rows, .ws_col = m.cols};
	p = find(in, m.exec);
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

/* Handle the end of one process; processes that init did not start itself were orphans. */
static int on_dead(struct init *in, pid_t pid, int status)
{
	for (struct proc **at = &in->procs; *at; at = &(*at)->next) {
		struct proc *p = *at;
		struct roomctl_exited m = {.exec = p->exec, .status = (uint32_t)status};
		int r = 0;

		if (p->pid != pid)
			continue;
		if (p->birth >= 0)
			r = on_birth(in, at, true);
		if (r < 0 || *at != p)
			return r;
		*at = p->next;
		in->over = p->last;
		proc_free(p);
		return roomctl_send_exited(&in->chan, &m);
	}
	return 0;
}

/* Only who sits at a terminal can continue what was stopped. */
static int on_stop(struct init *in, pid_t pid, int signo)
{
	struct proc **at = &in->procs, *p;
	int r = 0;

	while (*at && (*at)->pid != pid)
		at = &(*at)->next;
	p = *at;
	if (p && p->birth >= 0)
		r = on_birth(in, at, false);
	if (r < 0 || !p || *at != p || p->slave < 0 || p->birth >= 0)
		return r;
	return roomctl_send_stopped(
		&in->chan, &(struct roomctl_stopped){.exec = p->exec, .signo = (uint8_t)signo});
}

static int reap(struct init *in)
{
	while (in->dead && !in->stuck && !in->over) {
		int status, r;
		pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED);

		if (pid <= 0) {
			in->dead = false;
			return 0;
		}
		r = flush(in, WIFSTOPPED(status) ? on_stop(in, pid, WSTOPSIG(status))
						 : on_dead(in, pid, status));
		if (r < 0)
			return r;
	}
	return 0;
}

/* Handle the frames that have arrived. If an answer does not fit into the socket (above all one
 * with a terminal), no further work is taken. */
static int take_work(struct init *in)
{
	while (!in->stuck) {
		struct chan_frame f;
		int r = chan_recv(&in->chan, &f);

		if (r <= 0)
			return r;
		r = flush(in, on_frame(in, &f));
		chan_frame_done(&f);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Wait for the channel and for signals, which are polled first, for processes that have not
 * executed their command yet, and for requests of others. */
static int wait_for_all(struct init *in, int signals, struct pollfd **polls)
{
	size_t n = 1;
	struct pollfd *p = realloc(*polls, (2 + in->births + in->setgid.n) * sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	*polls = p;
	p[0] = (struct pollfd){.fd = in->chan.fd, .events = in->stuck ? POLLOUT : POLLIN};
	if (!in->stuck)
		p[n++] = (struct pollfd){.fd = signals, .events = POLLIN};
	for (const struct proc *proc = in->procs; proc && !in->stuck; proc = proc->next)
		if (proc->birth >= 0)
			p[n++] = (struct pollfd){.fd = proc->birth, .events = POLLIN};
	if (!in->stuck) {
		setgid_poll(&in->setgid, p + n);
		n += in->setgid.n;
	}
	do
		r = poll(p, n, -1);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

/* polls: one for each process that is being started, in the order of the list. */
static int look_at_births(struct init *in, const struct pollfd *polls)
{
	struct proc **at = &in->procs;
	int r = 0;

	while (*at && r == 0 && !in->stuck) {
		struct proc *p = *at;

		if (p->birth >= 0 && (polls++)->revents)
			r = flush(in, on_birth(in, at, false));
		if (*at == p)
			at = &p->next;
	}
	return r;
}

/* polls: as above, and then one for each listener. */
static int look_at_polls(struct init *in, const struct pollfd *polls)
{
	const struct pollfd *listeners = polls + in->births;

	setgid_serve(&in->setgid, listeners);
	return look_at_births(in, polls);
}

static int serve(struct init *in, int signals)
{
	struct pollfd *p = NULL;

	for (;;) {
		struct signalfd_siginfo info;
		int r = take_work(in);

		if (r == 0)
			r = reap(in);
		/* Otherwise the supervisor would have to kill us, and the room would live
		 * longer. */
		if (r == 0 && in->over && !in->stuck)
			return -EPIPE;
		if (r == 0)
			r = wait_for_all(in, signals, &p);
		if (r == 0 && in->stuck)
			r = flush(in, 0);
		else if (r == 0)
			r = look_at_polls(in, p + 2);
		if (r < 0)
			return r;
		if (p[0].events == POLLIN && p[1].revents) {
			if (read(signals, &info, sizeof(info)) < 0 && errno != EAGAIN)
				return -errno;
			in->dead = true;
			if (guard_is_gone())
				return -EPIPE;
		}
	}
}

/* Signals that our parent ignores must not be ignored in the room. This bypasses the C library,
 * which hides two signals of its own that posix_spawn leaves ignored. All zeroes mean SIG_DFL, no
 * flags, an empty mask. */
static void reset_dispositions(void)
{
	const unsigned long zero[4] = {0};

	for (int i = 1; i < NSIG; i++)
		syscall(SYS_rt_sigaction, i, zero, NULL, (NSIG - 1) / 8);
}

int init_program(void)
{
	static struct init in;
	sigset_t all;
	int signals;

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
	/* Adopt orphans even if the provider has no pid namespace. */
	if (getpid() != 1)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (chan_init(&in.chan, CHANNEL_FD, ROOMCTL_MAX_PAYLOAD, MAX_OUT) < 0 ||
		flush(&in, roomctl_send_ready(&in.chan)) < 0)
		return 1;
	return serve(&in, signals) == -EPIPE ? 0 : 1;
}
