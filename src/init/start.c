/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: until it executes its command, a new process is one of the room like any
 * other, which others of its user may stop or kill: so init never stands still for it. The end of a
 * pipe that exec closes says that it has worked; what the pipe says instead is why it has not.
 * Every signal is blocked on the way there, so one that is sent meanwhile waits for the command.
 *
 * While nobody else is in the room, nobody can stop it: it is then made the way vfork does it, on
 * init's memory, with a stack of its own, which is quicker by a tenth of a millisecond. (Not by
 * vfork itself: not every C library's shares memory.) Between birth and exec only system calls are
 * made. */
#include "base/fd.h"
#include "init/init.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { CHILD_STACK = 64 * 1024 };

struct launch {
	const struct exec_spec *spec;
	int fds[3];
	int birth; /* where the child says what went wrong */
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
	/* Nothing else of init's stays open, should the child be kept from its exec. */
	if (fd_close_from(3, &l->birth, 1) < 0)
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

static void enter(struct launch *l)
{
	const struct exec_spec *s = l->spec;
	sigset_t none;

	sigemptyset(&none);
	setsid();
	umask(s->umask);
	if (!take_stdio(l))
		return;
	if (s->tty && ioctl(0, TIOCSCTTY, 0) < 0) {
		fail(l, ROOM_STAGE_TTY);
		return;
	}
	if (!become_user(l))
		return;
	/* As the user, so that what he may not enter stays closed. */
	if (chdir(s->cwd ? s->cwd : "/") < 0) {
		fail(l, ROOM_STAGE_CWD);
		return;
	}
	sigprocmask(SIG_SETMASK, &none, NULL);
	lookup_exec(s->argv, s->env, &l->why);
}

/* Runs in the child. What is written is of this size, which a pipe takes whole. */
static int child(void *arg)
{
	struct launch *l = arg;

	enter(l);
	(void)!write(l->birth, &l->why, sizeof(l->why));
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

/* All that is in a room descends from its process 1, which gets the orphans. */
static bool is_alone(void)
{
	siginfo_t info;

	return getpid() == 1 && waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 &&
	       errno == ECHILD;
}

static int launch(struct launch *l, struct proc *p)
{
	static _Alignas(16) char stack[CHILD_STACK];
	int birth[2], r = fd_pipe(birth);

	if (r < 0)
		return r;
	l->birth = birth[1];
	p->pid = clone(child, stack + sizeof(stack),
		SIGCHLD | (is_alone() ? CLONE_VM | CLONE_VFORK : 0), l);
	if (p->pid < 0)
		r = -errno;
	/* A child that became another user may have made the memory that it shares with us
	 * dumpable (fs.suid_dumpable). */
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
		r = open_terminal(&m->spec, &p->master, &p->slave);
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

bool start_has_worked(struct proc *p, struct start_failure *why)
{
	ssize_t n;

	do
		n = read(p->birth, why, sizeof(*why));
	while (n < 0 && errno == EINTR);
	p->birth = fd_close(p->birth);
	return n != (ssize_t)sizeof(*why);
}
