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
#include <unistd.h>

enum { ROUNDS = 8 };

struct entry {
	pid_t pid, parent, group, session;
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
	return at && sscanf(at + 1, " %*c %d %d %d", &ret->parent, &ret->group, &ret->session) == 3;
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

/* Read /proc once; return true if something new was found. */
static bool collect(pid_t leader, struct pids *members)
{
	DIR *dir = opendir("/proc");
	size_t before = members->n;
	struct dirent *d;
	struct entry e;
	bool full = false;

	while (dir && !full && (d = readdir(dir)))
		if (read_entry(dirfd(dir), d->d_name, &e) && e.pid != 1 &&
			(e.session == leader || pids_has(members, e.parent)) &&
			!pids_has(members, e.pid))
			full = !pids_add(members, e.pid);
	if (dir)
		closedir(dir);
	return members->n > before;
}

void tree_signal(const struct proc *p, int signo)
{
	struct pids members = {0};
	size_t sent = 0;

	/* For KILL, stop all of them first, so that none loses its parent or gets a child before
	 * all are found. */
	if (!pids_add(&members, p->pid))
		signal_one(p->pid, signo); /* no memory: at least the command itself */
	for (int i = 0; i < ROUNDS && collect(p->pid, &members); i++)
		for (; signo == SIGKILL && sent < members.n; sent++)
			signal_one(members.all[sent], SIGSTOP);
	for (sent = 0; sent < members.n; sent++)
		signal_one(members.all[sent], signo);
	pids_done(&members);
}

void tree_kill_children(void)
{
	struct pids members = {0};
	bool found = pids_add(&members, getpid());
	size_t sent = 1;

	/* As above, but only by parents: no process is in session -1. */
	for (int i = 0; i < ROUNDS && found && collect(-1, &members); i++)
		for (; sent < members.n; sent++)
			kill(members.all[sent], SIGSTOP);
	for (sent = members.n; sent-- > 1;)
		kill(members.all[sent], SIGKILL);
	pids_done(&members);
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
