/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a far room is held by a process of its own, as it is elsewhere (`cloche-far
 * hold`, farside/hold.c), because what its client says to it is more than code to run, and because
 * it goes on between carriers. That process ends with a pipe of this one, so a room ends with the
 * service, however it ends; and when the process is dead, what it may have left is removed. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/program.h"
#include "farserve/serve.h"
#include "farside/fardir.h"
#include "farside/program.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utlist.h>

enum { FAR_END_USEC = 10 * USEC_PER_SEC, FAR_PROBE_USEC = 60 * USEC_PER_SEC };

struct far *far_find(struct serve *s, const char *id)
{
	struct far *f;

	DL_FOREACH (s->fars, f)
		if (f->owner >= 0 && strcmp(f->id, id) == 0)
			break;
	return f;
}

/* Its process is dead, or was never there. */
static void far_free(struct far *f)
{
	struct serve *s = f->serve;

	if (f->join)
		f->join->far = NULL;
	loop_timer_clear(&f->sleep);
	loop_io_remove(&f->ended);
	fd_close(f->owner);
	fd_close(f->pidfd);
	DL_DELETE(s->fars, f);
	s->fars_n--;
	free(f);
}

static void far_collect(struct far *f)
{
	while (waitpid(f->pid, NULL, 0) < 0 && errno == EINTR)
		;
	(void)!fardir_reap(f->id, NULL);
	far_free(f);
}

static void far_on_ended(struct loop_io *io, uint32_t events)
{
	far_collect(container_of(io, struct far, ended));
}

/* A process that does not end by itself. */
static void far_on_stuck(struct loop_timer *t)
{
	kill(container_of(t, struct far, sleep)->pid, SIGKILL);
}

void far_end(struct far *f)
{
	f->owner = fd_close(f->owner);
	if (f->join)
		join_end(f->join);
	if (loop_timer_in(f->serve->loop, &f->sleep, FAR_END_USEC, far_on_stuck) < 0)
		kill(f->pid, SIGKILL);
}

static void far_on_sleep(struct loop_timer *t)
{
	far_end(container_of(t, struct far, sleep));
}

void far_rest(struct far *f)
{
	if (f->owner >= 0 && loop_timer_in(f->serve->loop, &f->sleep, f->serve->options.sleep_usec,
				     far_on_sleep) < 0)
		far_end(f);
}

/* --- start --- */

/* Start what holds the room of that directory. */
static int far_hold(struct far *f, int dir, int listener, struct cloche_err *err)
{
	/* By Landlock a room has paths of this machine, which is for containers alone. */
	const char *only = f->serve->options.try_room ? "any" : "rooms";
	const char *const argv[] = {"cloche-far", "hold", f->id, only, NULL};
	_cleanup_fd_ int theirs = -1;
	int pair[2], e = fd_pipe(pair);

	if (e < 0)
		return err_sys(err, -e, "make a pipe");
	theirs = pair[0];
	f->owner = pair[1];
	e = program_start(
		&(struct program_spawn){.path = f->serve->self,
			.argv = argv,
			.fds = (const struct program_fd[]){{dir, FARSIDE_FD_DIR},
				{listener, FARSIDE_FD_LISTENER}, {theirs, FARSIDE_FD_OWNER}},
			.fds_n = 3,
			.stdio = {-1, -1, -1}},
		&f->pid, &f->pidfd, err);
	if (e < 0)
		return e;
	e = loop_io_add(f->serve->loop, &f->ended, f->pidfd, EPOLLIN, far_on_ended);
	return e < 0 ? err_sys(err, -e, "watch the room") : 0;
}

static int far_start(struct far *f, struct cloche_err *err)
{
	_cleanup_fd_ int dir = fardir_make(f->id, err), listener = -1;
	int r;

	if (dir < 0)
		return dir;
	listener = fardir_listen(dir, err);
	r = listener < 0 ? listener : far_hold(f, dir, listener, err);
	if (r < 0 && f->pid == 0)
		fardir_remove(f->id);
	return r;
}

/* Make one that nothing holds yet. */
static int far_new(struct serve *s, const char *id, struct far **ret, struct cloche_err *err)
{
	struct far *f;

	if (s->sessions_n + s->fars_n >= s->options.sessions_max)
		return err_set(err, E_LIMIT,
			"there are %u rooms already, which is the most at a time",
			s->sessions_n + s->fars_n);
	f = calloc(1, sizeof(*f));
	if (!f)
		return err_nomem(err);
	f->serve = s;
	f->owner = f->pidfd = -1;
	str_copy(f->id, sizeof(f->id), str_from(id));
	DL_APPEND(s->fars, f);
	s->fars_n++;
	*ret = f;
	return 0;
}

int far_make(struct serve *s, const char *id, struct cloche_err *err)
{
	struct far *f;
	int r = far_new(s, id, &f, err);

	if (r < 0)
		return r;
	r = far_start(f, err);
	if (r == 0)
		far_rest(f);
	else if (f->pid)
		far_end(f);
	else
		far_free(f);
	return r;
}

/* Start the program that says what rooms can have here. Return a socket to it. */
static int far_start_probe(struct far *f, struct cloche_err *err)
{
	const char *const argv[] = {"cloche-far", "probe", NULL};
	_cleanup_fd_ int ours = -1, theirs = -1;
	int pair[2], e = fd_socketpair(SOCK_STREAM, pair);

	if (e < 0)
		return err_sys(err, -e, "make a socket");
	ours = pair[0];
	theirs = pair[1];
	e = program_start(
		&(struct program_spawn){
			.path = f->serve->self, .argv = argv, .stdio = {theirs, theirs, -1}},
		&f->pid, &f->pidfd, err);
	if (e < 0)
		return e;
	e = loop_io_add(f->serve->loop, &f->ended, f->pidfd, EPOLLIN, far_on_ended);
	if (e == 0)
		e = loop_timer_in(f->serve->loop, &f->sleep, FAR_PROBE_USEC, far_on_stuck);
	return e < 0 ? err_sys(err, -e, "watch the probe") : TAKE_FD(ours);
}

int far_probe(struct serve *s, struct far **ret, struct cloche_err *err)
{
	int fd, r;

	/* What is found where far rooms are refused would promise too much. */
	if (!serve_has_rooms(s) && !s->options.try_room)
		return err_set(err, E_UNSUPPORTED, "the service makes no far rooms here");
	r = far_new(s, "", ret, err);
	if (r < 0)
		return r;
	fd = far_start_probe(*ret, err);
	if (fd < 0 && (*ret)->pid)
		far_end(*ret);
	else if (fd < 0)
		far_free(*ret);
	return fd;
}

void far_end_all(struct serve *s)
{
	struct far *f, *next;

	DL_FOREACH (s->fars, f)
		f->owner = fd_close(f->owner);
	DL_FOREACH_SAFE (s->fars, f, next) {
		struct pollfd p = {.fd = f->pidfd, .events = POLLIN};

		if (poll(&p, 1, FAR_END_USEC / USEC_PER_MSEC) == 0)
			kill(f->pid, SIGKILL);
		far_collect(f);
	}
}
