/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a process is started the way vfork does it, with a stack of its own: init
 * stands still until the child has executed the command or failed, so the child reports its failure
 * through init's own memory and no pipe is needed. (Not by vfork itself: not every C library's
 * shares memory.) Between birth and exec only system calls are made. The child shares init's memory
 * but not its descriptors, signal dispositions, mask, umask or working directory. */
#include "base/fd.h"
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

enum { CHILD_STACK = 64 * 1024 };

struct launch {
	const struct exec_spec *spec;
	int fds[3];
	struct start_failure why; /* written by the child */
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
	/* Everything is close-on-exec already; this is the second wall. */
	if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		return fail(l, ROOM_STAGE_SETUP);
	return true;
}

static bool become_user(struct launch *l)
{
	const struct exec_spec *s = l->spec;

	if (s->gid != getgid() || s->uid != getuid()) {
		/* A user namespace of one user denies setgroups; then there are none to drop. */
		if (setgroups(0, NULL) < 0 && errno != EPERM)
			return fail(l, ROOM_STAGE_USER);
		if (setresgid(s->gid, s->gid, s->gid) < 0 || setresuid(s->uid, s->uid, s->uid) < 0)
			return fail(l, ROOM_STAGE_USER);
	}
	return true;
}

/* Runs in the child, on init's memory. */
static int child(void *arg)
{
	struct launch *l = arg;
	const struct exec_spec *s = l->spec;
	sigset_t none;

	sigemptyset(&none);
	setsid();
	umask(s->umask);
	if (!take_stdio(l))
		_exit(1);
	if (s->tty && ioctl(0, TIOCSCTTY, 0) < 0) {
		fail(l, ROOM_STAGE_TTY);
		_exit(1);
	}
	if (!become_user(l))
		_exit(1);
	/* As the user, so that what he may not enter stays closed. */
	if (chdir(s->cwd ? s->cwd : "/") < 0) {
		fail(l, ROOM_STAGE_CWD);
		_exit(1);
	}
	sigprocmask(SIG_SETMASK, &none, NULL);
	lookup_exec(s->argv, s->env, &l->why);
	_exit(1);
}

/* The descriptor of the slave comes from the master itself: no path of the room is trusted. */
static int open_terminal(const struct exec_spec *s, int *ret_master, int *ret_slave)
{
	struct winsize size = {.ws_row = s->rows, .ws_col = s->cols};
	_cleanup_fd_ int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	_cleanup_fd_ int slave = -1;
	int unlock = 0;

	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return -errno;
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0 || ioctl(slave, TIOCSWINSZ, &size) < 0)
		return -errno;
	if (s->uid != getuid() && fchown(slave, s->uid, (gid_t)-1) < 0)
		return -errno;
	*ret_master = TAKE_FD(master);
	*ret_slave = TAKE_FD(slave);
	return 0;
}

static pid_t launch(struct launch *l)
{
	static _Alignas(16) char stack[CHILD_STACK];

	return clone(child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, l);
}

int start_process(const struct roomctl_exec *m, const int fds[3], struct proc **ret,
	int *ret_master, struct start_failure *why)
{
	_cleanup_(freep) struct proc *p = calloc(1, sizeof(*p));
	_cleanup_fd_ int master = -1, slave = -1;
	struct launch l = {.spec = &m->spec, .fds = {fds[0], fds[1], fds[2]}};
	int r;

	*why = (struct start_failure){ROOM_STAGE_SETUP, ENOMEM};
	if (!p)
		return -1;
	if (m->spec.tty) {
		r = open_terminal(&m->spec, &master, &slave);
		if (r < 0) {
			*why = (struct start_failure){ROOM_STAGE_TTY, -r};
			return -1;
		}
		l.fds[0] = l.fds[1] = l.fds[2] = slave;
	}
	*p = (struct proc){.exec = m->exec, .uid = m->spec.uid, .slave = -1};
	p->pid = launch(&l);
	if (p->pid < 0) {
		*why = (struct start_failure){ROOM_STAGE_SETUP, errno};
		return -1;
	}
	if (l.why.sys_errno != 0) {
		*why = l.why; /* the reaper takes the child */
		return -1;
	}
	p->slave = TAKE_FD(slave);
	*ret_master = TAKE_FD(master);
	*ret = TAKE_PTR(p);
	return 0;
}
