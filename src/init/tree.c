/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: root in a room has no CAP_KILL, so init may not signal a process that has
 * changed its user. In that case it forks a child that becomes that user and sends the signal; the
 * reaper takes the child like any other.
 *
 * The processes that belong to a process are found in /proc: everything in its session (which it
 * leads), and everything that descends from it through living parents. The list is read again until
 * nothing new is found, as processes are created while it is read. A process that has left the
 * session and lost its parent as well (a daemon) does not belong to it any more, and ends only with
 * the room. */
#include "base/fd.h"
#include "base/parse.h"
#include "base/pids.h"
#include "init/init.h"
#include "ipc/control.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 50, ROUND_NSEC = 500000, END_ROUNDS = 1000 };

struct entry {
	pid_t pid, parent, group, session;
	char state;
};

/* Read a small file of /proc (path from the directory proc). */
static bool read_file(int proc, const char *path, char *ret, size_t size)
{
	_cleanup_fd_ int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, ret, size - 1) : -1;

	ret[MAX(n, 0)] = '\0';
	return n > 0;
}

/* "PID (NAME) S PPID PGRP SESSION ...", where NAME may contain anything. */
static bool read_entry(int proc, const char *name, struct entry *ret)
{
	char path[32], text[512], *at;
	uint64_t pid;

	if (parse_u64(str_from(name), INT32_MAX, &pid) < 0)
		return false;
	snprintf(path, sizeof(path), "%u/stat", (unsigned)pid);
	if (!read_file(proc, path, text, sizeof(text)))
		return false;
	at = strrchr(text, ')');
	ret->pid = (pid_t)pid;
	return at && sscanf(at + 1, " %c %d %d %d", &ret->state, &ret->parent, &ret->group,
			     &ret->session) == 4;
}

/* Get the present user of a process, which may differ from the user that it was started as. */
static bool signal_find_user(pid_t pid, uid_t *ret)
{
	char path[32], text[1024], *at;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (!read_file(AT_FDCWD, path, text, sizeof(text)))
		return false;
	/* The name comes first; a newline in it is written as two characters. */
	at = strstr(text, "\nUid:");
	return at && sscanf(at + 5, "%u", ret) == 1;
}

static void signal_one(pid_t target, int signo)
{
	uid_t uid;

	if (kill(target, signo) == 0 || errno != EPERM || !signal_find_user(target, &uid))
		return;
	if (fork() == 0) {
		if (setresuid(uid, uid, uid) == 0)
			kill(target, signo);
		_exit(0);
	}
}

/* Read /proc once; return true if something new was found. *ret_moving: a member has not stopped.
 */
static bool collect(pid_t leader, struct pids *members, bool *ret_moving)
{
	DIR *dir = opendir("/proc");
	size_t before = members->n;
	struct dirent *d;
	struct entry e;
	bool full = false;

	*ret_moving = false;
	while (dir && !full && (d = readdir(dir))) {
		if (!read_entry(dirfd(dir), d->d_name, &e) || e.pid == 1 || e.pid == getpid())
			continue;
		if (pids_has(members, e.pid))
			*ret_moving |= !strchr("TtZX", e.state);
		else if (e.session == leader || pids_has(members, e.parent))
			full = !pids_add(members, e.pid);
	}
	if (dir)
		closedir(dir);
	return members->n > before;
}

/* Find all members. To kill them, stop all of them first (but not the first `own` ones), so that
 * none loses its parent or gets a child before all are found. A stop takes effect after the call
 * that a process is in, which may be fork(). So the last look is one that begins when all have
 * stopped. */
static void find_members(pid_t leader, struct pids *members, size_t own, bool stop)
{
	const struct timespec moment = {.tv_nsec = ROUND_NSEC};
	bool still = !stop, moving, found;

	for (int i = 0; i < ROUNDS; i++) {
		for (; stop && own < members->n; own++) {
			signal_one(members->all[own], SIGSTOP);
			still = false;
		}
		found = collect(leader, members, &moving);
		if (!found && still)
			break;
		still = !stop || !moving;
		if (!still)
			(void)nanosleep(&moment, NULL);
	}
}

void tree_signal(const struct proc *p, int signo)
{
	struct pids members = {0};

	if (!pids_add(&members, p->pid))
		signal_one(p->pid, signo); /* no memory: at least the command itself */
	find_members(p->pid, &members, 0, signo == SIGKILL);
	for (size_t i = 0; i < members.n; i++)
		signal_one(members.all[i], signo);
	pids_done(&members);
}

void tree_kill_children(void)
{
	struct pids members = {0};

	/* Only by parents: no process is in session -1. */
	if (pids_add(&members, getpid()))
		find_members(-1, &members, 1, true);
	for (size_t i = members.n; i-- > 1;)
		kill(members.all[i], SIGKILL);
	pids_done(&members);
}

void tree_end_all(void)
{
	for (int i = 0; i < END_ROUNDS; i++) {
		pid_t pid;

		tree_kill_children();
		do
			pid = waitpid(-1, NULL, 0);
		while (pid < 0 && errno == EINTR);
		if (pid < 0)
			return;
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}

static void tree_signal_group(const struct proc *p, int signo)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;
	struct entry e;

	while (dir && (d = readdir(dir)))
		if (read_entry(dirfd(dir), d->d_name, &e) && e.group == p->pid &&
			kill(e.pid, 0) < 0 && errno == EPERM)
			signal_one(e.pid, signo);
	if (dir)
		closedir(dir);
}

void signal_deliver(const struct roomctl_signal *m, const struct proc *p)
{
	/* Outside a pid namespace -1 would mean every process of the user. */
	if (m->scope == CTL_SCOPE_ROOM) {
		if (getpid() == 1)
			kill(-1, m->signo);
		return;
	}
	if (!p)
		return;
	/* Once a process has executed its command it leads a session and a group of its own. Its
	 * pid stays its own until it is reaped, which happens only between two messages. */
	if (m->scope == CTL_SCOPE_PROCESS || p->birth >= 0) {
		signal_one(p->pid, m->signo);
	} else if (m->scope == CTL_SCOPE_TREE) {
		tree_signal(p, m->signo);
	} else {
		kill(-p->pid, m->signo);
		tree_signal_group(p, m->signo);
	}
}
