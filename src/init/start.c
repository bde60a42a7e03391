/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: until it executes its command, a new process is like any other process of
 * the room, and other processes of its user may stop or kill it. So init never blocks on it. It
 * holds one end of a pair of sockets, the other of which exec closes. What comes there first, if it
 * comes, is the listener of setgid.c. End-of-file means that exec has worked, and data is the
 * reason why it has not. All signals are blocked until then, so that a signal which
 * is sent meanwhile waits for the command.
 *
 * While there is no other process in the room, nothing can stop the child: it is then made as vfork
 * does it, on init's memory, with a stack of its own, which saves a tenth of a millisecond. (vfork
 * itself is not used: it does not share memory in every C library.) Between clone and exec only
 * system calls are made. */
#include "base/fd.h"
#include "init/init.h"
#include "init/setgid.h"
#include "init/stoppable.h"
#include "ipc/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { CHILD_STACK = 64 * 1024 };

struct launch {
	const struct exec_spec *spec;
	int fds[3];
	int birth; /* the child reports a failure here */
	struct start_failure why;
};

static bool fail(struct launch *l, enum roomctl_stage stage)
{
	l->why = (struct start_failure){stage, errno};
	return false;
}

static bool take_stdio(struct launch *l)
{
	int null = -1;

	for (int i = 0; i < 3; i++) {
		int fd = l->fds[i];

		if (fd < 0 && null < 0)
			null = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (fd < 0)
			fd = null;
		if (fd < 0 || dup2(fd, i) < 0)
			return fail(l, ROOM_STAGE_SETUP);
	}
	/* Close all other descriptors of init, in case the child is kept from its exec. */
	if (fd_close_from(3, &l->birth, 1) < 0)
		return fail(l, ROOM_STAGE_SETUP);
	return true;
}

/* Installs the filter of setgid.c, before others of the same user could reach what it is served by,
 * and hands init the listener. */
static bool give_listener(struct launch *l)
{
	union fd_control control;
	char byte = 0;
	struct iovec iov = {&byte, sizeof(byte)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	int fd, r = setgid_install(&fd);

	errno = -r;
	if (r < 0)
		return fail(l, ROOM_STAGE_SETUP);
	if (fd < 0)
		return true;
	fd_attach(&msg, &control, &fd, 1);
	if (sendmsg(l->birth, &msg, 0) < 0)
		return fail(l, ROOM_STAGE_SETUP);
	close(fd);
	return true;
}

static bool become_user(struct launch *l)
{
	const struct exec_spec *s = l->spec;

	if (s->gid != getgid() || s->uid != getuid()) {
		/* A user namespace with one user denies setgroups; then there are no groups to
		 * drop. */
		if (setgroups(0, NULL) < 0 && errno != EPERM)
			return fail(l, ROOM_STAGE_USER);
		if (setresgid(s->gid, s->gid, s->gid) < 0 || setresuid(s->uid, s->uid, s->uid) < 0)
			return fail(l, ROOM_STAGE_USER);
	}
	return true;
}

static void enter(struct launch *l)
{
	const struct exec_spec *s = l->spec;
	sigset_t none;

	sigemptyset(&none);
	setsid();
	umask(s->umask);
	if (!take_stdio(l) || !give_listener(l))
		return;
	if (s->tty && ioctl(0, TIOCSCTTY, 0) < 0) {
		fail(l, ROOM_STAGE_TTY);
		return;
	}
	if (!become_user(l))
		return;
	if (s->tty)
		stoppable_make(l->birth);
	/* As the user, so that directories that are closed to the user stay closed. */
	if (chdir(s->cwd ? s->cwd : "/") < 0) {
		fail(l, ROOM_STAGE_CWD);
		return;
	}
	sigprocmask(SIG_SETMASK, &none, NULL);
	lookup_exec(s->argv, s->env, &l->why);
}

/* Runs in the child. The report is one message. */
static int child(void *arg)
{
	struct launch *l = arg;

	enter(l);
	(void)!write(l->birth, &l->why, sizeof(l->why));
	_exit(1);
}

/* Open the command's terminal, or take the one that came with it: master and slave. */
static int open_terminal(
	const struct exec_spec *s, const int given[3], int *ret_master, int *ret_slave)
{
	_cleanup_fd_ int master = -1, slave = -1;
	int r = 0;

	if (given[0] < 0 || given[1] < 0) {
		r = pty_make(s->rows, s->cols, &master, &slave);
	} else {
		master = fcntl(given[0], F_DUPFD_CLOEXEC, 3);
		slave = fcntl(given[1], F_DUPFD_CLOEXEC, 3);
		r = master < 0 || slave < 0 ? -errno : 0;
	}
	if (r < 0)
		return r;
	if (s->uid != getuid() && fchown(slave, s->uid, (gid_t)-1) < 0)
		return -errno;
	*ret_master = TAKE_FD(master);
	*ret_slave = TAKE_FD(slave);
	return 0;
}

/* Return whether there is no other process: all descend from process 1, which adopts orphans. */
static bool is_alone(void)
{
	siginfo_t info;

	return getpid() == 1 && waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 &&
	       errno == ECHILD;
}

static int launch(struct launch *l, struct proc *p)
{
	static _Alignas(16) char stack[CHILD_STACK];
	int birth[2], r = fd_socketpair(SOCK_SEQPACKET, birth);

	if (r < 0)
		return r;
	l->birth = birth[1];
	p->pid = clone(child, stack + sizeof(stack),
		SIGCHLD | (is_alone() ? CLONE_VM | CLONE_VFORK : 0), l);
	if (p->pid < 0)
		r = -errno;
	/* A child that changed its user may have made the shared memory dumpable
	 * (fs.suid_dumpable). */
	(void)prctl(PR_SET_DUMPABLE, 0);
	fd_close(birth[1]);
	if (r < 0) {
		fd_close(birth[0]);
		return r;
	}
	p->birth = birth[0];
	return 0;
}

void proc_free(struct proc *p)
{
	fd_close(p->slave);
	fd_close(p->master);
	fd_close(p->birth);
	free(p);
}
DEFINE_CLEANUP(struct proc, proc_free)

int start_process(const struct roomctl_exec *m, const int fds[3], struct proc **ret,
	struct start_failure *why)
{
	_cleanup_(proc_freep) struct proc *p = malloc(sizeof(*p));
	struct launch l = {.spec = &m->spec, .fds = {fds[0], fds[1], fds[2]}};
	int r;

	*why = (struct start_failure){ROOM_STAGE_SETUP, ENOMEM};
	if (!p)
		return -1;
	*p = (struct proc){
		.exec = m->exec, .last = m->last, .slave = -1, .master = -1, .birth = -1};
	if (m->spec.tty) {
		r = open_terminal(&m->spec, fds, &p->master, &p->slave);
		if (r < 0) {
			*why = (struct start_failure){ROOM_STAGE_TTY, -r};
			return -1;
		}
		l.fds[0] = l.fds[1] = l.fds[2] = p->slave;
	}
	r = launch(&l, p);
	if (r < 0) {
		*why = (struct start_failure){ROOM_STAGE_SETUP, -r};
		return -1;
	}
	*ret = TAKE_PTR(p);
	return 0;
}

int start_take(struct proc *p, struct start_failure *why, int *ret_listener)
{
	union fd_control control;
	struct iovec iov = {why, sizeof(*why)};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	ssize_t n;

	*ret_listener = -1;
	do
		n = recvmsg(p->birth, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return START_WAITS;
	if (n > 0 && n != (ssize_t)sizeof(*why)) {
		(void)fd_detach(&msg, ret_listener, 1);
		return START_WAITS;
	}
	p->birth = fd_close(p->birth);
	return n > 0 ? START_FAILED : START_WORKED;
}
