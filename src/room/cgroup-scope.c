/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * A separate program asks for the scope, because that takes a D-Bus library, which this program
 * must not contain, and only few starts need it. It asks for a scope around *this* process: a
 * member of another session could not move a child into the scope (the kernel requires write access
 * to the common ancestor of both groups, which belongs to systemd), but systemd can move us. From
 * then on we are below the scope, and so is everything that we move.
 *
 * Nothing that the program or the bus says is trusted. Our group is read from /proc, and the same
 * checks as for any other group decide whether it is new, ours and usable.
 *
 * The scope ends by itself when its last process is gone, even after a kill -9 of this one, since
 * the room's first process dies with us. */
#include "room/cgroup-scope.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/program.h"

#include <errno.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEADLINE_MS = 5000, MESSAGE_MAX = 512 };

bool cgroup_scope_is_managed(void)
{
	return access("/run/systemd/system", F_OK) == 0;
}

char *cgroup_scope_name(const char *name)
{
	char *unit;

	return asprintf(&unit, "cloche-%s.scope", name) < 0 ? NULL : unit;
}

/* Read what the program wrote before it ended or the deadline passed. */
static void read_message(int fd, char ret[MESSAGE_MAX])
{
	uint64_t end = clock_mono_usec() + DEADLINE_MS * USEC_PER_MSEC, now;
	size_t n = 0;

	while ((now = clock_mono_usec()) < end) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t got;

		if (poll(&p, 1, (int)((end - now) / USEC_PER_MSEC) + 1) < 0 && errno != EINTR)
			break;
		got = p.revents ? read(fd, ret + n, MESSAGE_MAX - 1 - n) : -1;
		if (got == 0 || (got > 0 && (n += (size_t)got) == MESSAGE_MAX - 1))
			break;
	}
	ret[n] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
}

/* Run cloche-scope WORD UNIT PID. */
static int run_program(const char *word, const char *unit, struct cloche_err *err)
{
	_cleanup_fd_ int out = -1, in = -1, pidfd = -1;
	char pid_text[16], message[MESSAGE_MAX];
	const char *const argv[] = {"cloche-scope", word, unit, pid_text, NULL};
	struct program_spawn spawn = {.argv = argv, .stdio = {-1, -1, -1}};
	int pipe_fds[2], r, status = 0;
	pid_t pid;

	snprintf(pid_text, sizeof(pid_text), "%d", getpid());
	r = fd_pipe(pipe_fds);
	if (r < 0)
		return err_sys(err, -r, "make a pipe");
	out = pipe_fds[0];
	in = spawn.stdio[1] = pipe_fds[1];
	r = program_start(&spawn, &pid, &pidfd, err);
	if (r < 0)
		return r;
	in = fd_close(in);
	read_message(out, message);
	/* The program has ended or is late. */
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (strcmp(message, "ok") == 0)
		return 0;
	return err_set(err, E_LIMITS_UNAVAILABLE, "systemd gave no scope: %s",
		message[0] ? message : "no answer in time");
}

/* The group that we are in now has to be the new scope, and ours. */
static int judge_scope(const char *dir, const char *unit, struct cloche_err *err)
{
	const char *name = dir ? strrchr(dir, '/') : NULL;
	struct statfs fs;
	struct stat st;

	if (!name || strcmp(name + 1, unit) != 0)
		return err_set(err, E_LIMITS_UNAVAILABLE,
			"systemd said that we are in %s, but we are in %s", unit,
			dir ? dir : "no cgroup");
	if (statfs(dir, &fs) < 0 || stat(dir, &st) < 0)
		return err_sys(err, errno, "look at %s", dir);
	if (fs.f_type != CGROUP2_SUPER_MAGIC)
		return err_set(err, E_LIMITS_UNAVAILABLE, "%s is no cgroup of version 2", dir);
	if (st.st_uid != geteuid())
		return err_set(err, E_LIMITS_UNAVAILABLE, "%s was not delegated to us", dir);
	return 0;
}

int cgroup_scope_enter(
	const char *unit, unsigned wanted, struct cgroup_choice *ret, struct cloche_err *err)
{
	_cleanup_(cgroup_place_donep) struct cgroup_place place = {0};
	int r = run_program("start", unit, err);

	if (r == 0)
		r = cgroup_find(&place, err);
	if (r == 0)
		r = judge_scope(place.v2, unit, err);
	if (r < 0)
		return r;
	return cgroup_v2_choose_here(place.v2, wanted, ret) < 0 ? err_nomem(err) : 0;
}

int cgroup_scope_stop(const char *unit, struct cloche_err *err)
{
	return run_program("stop", unit, err);
}
