/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * One clone3() makes all namespaces but two at once. The child is a copy of the caller (no
 * CLONE_VM), so it may allocate and format messages. Whoever makes a room has one thread, so no
 * lock can be held by a thread that does not exist in the copy. The cgroup namespace is entered
 * later by unshare(), because its root is the group of that moment, and version 1 groups can only
 * be joined after birth. Making the network namespace takes the kernel as long as all others
 * together. So the caller has it made while the child furnishes its file system, by a process that
 * shares the caller's memory and descriptors (the caller waits as with vfork()), enters the child's
 * user namespace and leaves the caller's network. The child then enters the network that it is
 * handed.
 */
#include "room/ns.h"
#include "base/fd.h"
#include "config.h"
#include "ipc/roomctl.h"
#include "jail/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* What "make install" puts there. */
#define PROFILE CLOCHE_DATADIR "/apparmor/cloche"

#define NAMESPACES (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS)

/* Read the first line of a small file of /proc or /sys into ret. Return false if it cannot be read.
 */
static bool read_line(const char *path, char *ret, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, ret, size - 1);
	close(fd);
	if (n < 0)
		return false;
	ret[n] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	return true;
}

static bool setting_is(const char *path, const char *value)
{
	char line[64];

	return read_line(path, line, sizeof(line)) && strcmp(line, value) == 0;
}

void ns_explain_apparmor(uid_t uid, struct cloche_err *err)
{
	if (uid == 0 || !setting_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"))
		return;
	/* A room on another machine is made by what was brought there. */
	if (access(PROFILE, R_OK) < 0)
		err_hint(err, "AppArmor restricts user namespaces: sysctl "
			      "kernel.apparmor_restrict_unprivileged_userns=0 allows them, or an "
			      "AppArmor profile for this program with the rule 'userns,'");
	err_hint(err,
		"AppArmor restricts user namespaces: root allows them to cloche by \"ln -s %s "
		"/etc/apparmor.d && apparmor_parser -r /etc/apparmor.d/cloche\", or to everybody "
		"by "
		"\"sysctl kernel.apparmor_restrict_unprivileged_userns=0\"",
		PROFILE);
}

/* Set the hint to what keeps this machine from making namespaces, if it is one of the known
 * blockers. */
static void explain(struct cloche_err *err)
{
	if (geteuid() != 0 && setting_is("/proc/sys/kernel/unprivileged_userns_clone", "0"))
		err_hint(err, "the system forbids it to ordinary users: sysctl "
			      "kernel.unprivileged_userns_clone=1 allows it");
	ns_explain_apparmor(geteuid(), err);
	if (prctl(PR_GET_SECCOMP) == 2)
		err_hint(err, "a system call filter is in force, as in a container: let it allow "
			      "clone3, unshare, mount and sethostname (docker run --security-opt "
			      "seccomp=unconfined)");
}

/* The kernel says ENOSPC where a limit of namespaces is reached: of this user namespace or of one
 * above it, or of how deep they may lie in one another. Of several kinds, only one whose limit is 0
 * can be told. */
static int fail_at_limit(uint64_t flags, const char *what, struct cloche_err *err)
{
	static const struct {
		uint64_t flag;
		const char *name;
	} kinds[] = {{CLONE_NEWUSER, "user"}, {CLONE_NEWNS, "mnt"}, {CLONE_NEWPID, "pid"},
		{CLONE_NEWIPC, "ipc"}, {CLONE_NEWUTS, "uts"}, {CLONE_NEWNET, "net"},
		{CLONE_NEWCGROUP, "cgroup"}};
	const char *name = "*", *state = "reached";
	char path[64], line[64];
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!(flags & kinds[i].flag))
			continue;
		if (flags == kinds[i].flag)
			name = kinds[i].name;
		snprintf(path, sizeof(path), "/proc/sys/user/max_%s_namespaces", kinds[i].name);
		if (!read_line(path, line, sizeof(line)) || strcmp(line, "0") != 0)
			continue;
		name = kinds[i].name;
		state = "0";
		break;
	}
	r = err_set(err, E_LIMIT, "%s: the system's limit user.max_%s_namespaces is %s", what, name,
		state);
	if (access(ROOMCTL_INIT_PATH, F_OK) != 0)
		err_hint(err,
			"namespaces are used up, forbidden, or too deep in one another: sysctl "
			"user.max_%s_namespaces shows the limit and, outside of every container, "
			"can raise it; then try cloche doctor",
			strcmp(name, "*") == 0 ? "user" : name);
	return r;
}

int ns_fail(int errnum, uint64_t flags, const char *what, struct cloche_err *err)
{
	int r = errnum == ENOSPC ? fail_at_limit(flags, what, err)
				 : err_sys(err, errnum, "%s", what);

	/* No setting of the machine changes what a room is not allowed to do. */
	if (access(ROOMCTL_INIT_PATH, F_OK) == 0)
		err_hint(err, ROOMCTL_INSIDE_HINT);
	explain(err);
	if (errnum == ENOSYS)
		err_hint(err, "the kernel is older than 5.7, or a filter hides clone3");
	return r;
}

pid_t ns_clone(int cgroup_fd, int *ret_pidfd, struct cloche_err *err)
{
	sigset_t none;
	int pidfd = -1;
	pid_t pid;
	struct clone_args args = {
		.flags = NAMESPACES | CLONE_PIDFD | CLONE_CLEAR_SIGHAND,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};

	if (cgroup_fd >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (unsigned)cgroup_fd;
	}
	pid = sys_clone3(&args);
	if (pid < 0)
		return ns_fail(errno, NAMESPACES, "make the room's namespaces", err);
	if (pid == 0) {
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		return 0;
	}
	*ret_pidfd = pidfd;
	return pid;
}

struct run {
	int (*fn)(void *arg, struct cloche_err *err);
	void *arg;
	struct cloche_err *err;
	int r;
};

static int run_apart(void *arg)
{
	struct run *run = arg;

	run->r = run->fn(run->arg, run->err);
	return 0;
}

int ns_run(int (*fn)(void *arg, struct cloche_err *err), void *arg, struct cloche_err *err)
{
	static _Alignas(16) char stack[128 * 1024];
	struct run run = {fn, arg, err, -E_INTERNAL};
	sigset_t all, before;
	int status = 0;
	pid_t pid;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before); /* no handler of ours runs there */
	pid = clone(run_apart, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | CLONE_FILES, &run);
	if (pid < 0)
		run.r = err_sys(err, errno, "furnish the room");
	while (pid > 0 && waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
		;
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid > 0 && status != 0) /* killing one part of a room ends the room */
		run.r = err_set(err, E_CANCELLED, "what furnishes the room was killed");
	return run.r;
}

struct network {
	int userns, fd;
	int (*setup)(void *arg, struct cloche_err *err);
	void *arg;
};

static int make_network(void *arg, struct cloche_err *err)
{
	struct network *n = arg;
	int r;

	if (setns(n->userns, CLONE_NEWUSER) < 0)
		return err_sys(err, errno, "enter the room's user namespace");
	if (unshare(CLONE_NEWNET) < 0)
		return ns_fail(errno, CLONE_NEWNET, "make the room's network namespace", err);
	r = n->setup(n->arg, err);
	if (r < 0)
		return r;
	n->fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	return n->fd < 0 ? err_sys(err, errno, "open the room's network namespace") : 0;
}

int ns_make_network(int userns, int (*setup)(void *arg, struct cloche_err *err), void *arg,
	int *ret_fd, struct cloche_err *err)
{
	struct network n = {userns, -1, setup, arg};
	int r = ns_run(make_network, &n, err);

	if (r < 0)
		fd_close(n.fd);
	else
		*ret_fd = n.fd;
	return r;
}

int ns_enter_network(int fd, struct cloche_err *err)
{
	return setns(fd, CLONE_NEWNET) < 0 ? err_sys(err, errno, "enter the room's network") : 0;
}

int ns_settle(const char *hostname, struct cloche_err *err)
{
	if (unshare(CLONE_NEWCGROUP) < 0 && errno != EINVAL)
		return ns_fail(errno, CLONE_NEWCGROUP, "make the room's cgroup namespace", err);
	if (sethostname(hostname, strlen(hostname)) < 0)
		return ns_fail(errno, 0, "set the host name", err);
	if (setsid() < 0)
		return err_sys(err, errno, "leave the terminal's session");
	return 0;
}

/* The setting belongs to the user namespace of the process that opens it, and limits the namespaces
 * that are made below. */
void ns_make_last(void)
{
	int fd = open("/proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)!write(fd, "0", 1);
	close(fd);
}

/* INV-NOTHING-OUTLIVES */
int ns_die_with_parent(int peer, struct cloche_err *err)
{
	char byte;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return err_sys(err, errno, "tie the room to its supervisor");
	if (recv(peer, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
		return err_set(err, E_CANCELLED, "the supervisor is gone");
	return 0;
}
