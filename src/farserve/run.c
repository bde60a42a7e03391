/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a run is a process that the room's init starts, with pipes as its output.
 * When init says that it has ended, what is in the pipes is read, and the answer is made; what
 * others who hold the pipes write later is not waited for. What belongs to a run whose time is over
 * is killed from outside of the room. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/strv.h"

#include "farserve/serve.h"
#include "ipc/roomctl.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utlist.h>

enum {
	RUN_PIECE = 64 * 1024,
	RUN_PIECES = 4,    /* in one turn of the loop */
	RUN_TAIL_MAX = 32, /* pieces after the end: more than a pipe can hold */
};

#define RUN_HOME "/home/cloche"

static void run_close_stream(struct run_stream *s)
{
	loop_io_remove(&s->io);
	s->fd = fd_close(s->fd);
}

/* Forget what was printed. */
static void run_drop_output(struct run *r)
{
	for (unsigned i = 0; i < ARRAY_SIZE(r->streams); i++) {
		r->session->serve->output -= buf_len(&r->streams[i].kept);
		buf_done(&r->streams[i].kept);
	}
}

static void run_remove(struct run *r)
{
	loop_timer_clear(&r->deadline);
	for (unsigned i = 0; i < ARRAY_SIZE(r->streams); i++)
		run_close_stream(&r->streams[i]);
	run_drop_output(r);
	DL_DELETE(r->session->runs, r);
	free(r);
}

static void run_free(struct run *r)
{
	struct session *x = r->session;

	run_remove(r);
	session_rest(x);
}

/* Tell who waits, and forget who that was. */
static void run_fail(struct run *r, const char *why)
{
	struct conn *c = r->conn;

	r->conn = NULL;
	if (c)
		conn_on_failure(c, 500, why);
}

void run_lose_all(struct session *x)
{
	struct run *r, *next;

	DL_FOREACH_SAFE (x->runs, r, next) {
		run_fail(r,
			"the room has ended before the code did; its memory may have been used up");
		run_remove(r);
	}
}

/* --- output --- */

/* Keep what was read, or a part of it. */
static void run_keep(struct run_stream *s, const char *bytes, size_t n)
{
	struct serve *serve = s->run->session->serve;
	size_t held = MIN(serve->output, (size_t)SERVE_OUTPUT_MAX);
	size_t room = MIN(buf_room(&s->kept), SERVE_OUTPUT_MAX - held);
	size_t fits = MIN(n, room);

	if (s->run->conn && fits && buf_add(&s->kept, bytes, fits) == 0)
		serve->output += fits;
	else
		fits = 0;
	if (fits < n)
		s->run->truncated = true;
}

static void run_read(struct run_stream *s, unsigned pieces)
{
	static char bytes[RUN_PIECE];

	for (unsigned i = 0; i < pieces && s->fd >= 0; i++) {
		ssize_t n = read(s->fd, bytes, sizeof(bytes));

		if (n > 0)
			run_keep(s, bytes, (size_t)n);
		else if (n < 0 && errno == EAGAIN)
			return;
		else if (n == 0 || errno != EINTR)
			run_close_stream(s);
	}
}

static void run_on_output(struct loop_io *io, uint32_t events)
{
	run_read(container_of(io, struct run_stream, io), RUN_PIECES);
}

/* --- its end --- */

static struct answer run_answer(struct run *r)
{
	return (struct answer){.out = buf_str(&r->streams[0].kept),
		.err = buf_str(&r->streams[1].kept),
		.took_usec = clock_mono_usec() - r->began_mono,
		.at_usec = clock_real_usec(),
		.isolation = provider_isolation(r->session->serve->provider->name),
		.truncated = r->truncated};
}

/* End its processes. The run itself goes when init says that it has ended. */
static void run_kill(struct run *r)
{
	r->is_killed = true;
	/* Nobody comes back to a room without a name. */
	if (!r->session->name[0])
		(void)r->session->room->provider->kill(r->session->room, SIGKILL, NULL);
	else if (r->pid)
		(void)r->session->room->provider->kill_tree(r->session->room, (pid_t)r->pid, NULL);
}

void run_forsake(struct run *r)
{
	r->conn = NULL;
	run_drop_output(r);
	run_kill(r);
}

static void run_on_deadline(struct loop_timer *t)
{
	struct run *r = container_of(t, struct run, deadline);
	struct conn *c = r->conn;
	struct answer a;

	for (unsigned i = 0; i < ARRAY_SIZE(r->streams); i++)
		run_read(&r->streams[i], RUN_TAIL_MAX);
	a = run_answer(r);
	a.timeout_ms = r->timeout_ms;
	r->conn = NULL;
	if (c)
		conn_on_answer(c, &a);
	run_forsake(r);
}

static void run_on_end(struct run *r, uint32_t status)
{
	struct answer a;
	struct conn *c = r->conn;

	for (unsigned i = 0; i < ARRAY_SIZE(r->streams); i++)
		run_read(&r->streams[i], RUN_TAIL_MAX);
	a = run_answer(r);
	a.code = WIFEXITED((int)status) ? WEXITSTATUS((int)status) : 128 + WTERMSIG((int)status);
	r->conn = NULL;
	if (c)
		conn_on_answer(c, &a);
	run_free(r);
}

/* --- what init says --- */

static struct run *run_find(struct session *x, uint32_t number)
{
	struct run *r;

	DL_FOREACH (x->runs, r)
		if (r->number == number)
			break;
	return r;
}

static bool run_on_started(struct session *x, struct str payload)
{
	struct roomctl_started m;
	struct run *r = roomctl_get_started(payload, &m) ? run_find(x, m.exec) : NULL;

	if (!r || r->pid || !m.pid)
		return false;
	r->pid = m.pid;
	if (r->is_killed)
		run_kill(r);
	return true;
}

static bool run_on_failed(struct session *x, struct str payload)
{
	struct roomctl_failed m;
	struct run *r = roomctl_get_failed(payload, &m) ? run_find(x, m.exec) : NULL;

	if (!r)
		return false;
	run_fail(r, m.stage == ROOM_STAGE_LOOKUP ? "there is no such runtime in this place"
						 : err_errno_text((int)m.sys_errno));
	run_free(r);
	return true;
}

static bool run_on_exited(struct session *x, struct str payload)
{
	struct roomctl_exited m;
	struct run *r = roomctl_get_exited(payload, &m) ? run_find(x, m.exec) : NULL;

	if (!r || !r->pid)
		return false;
	run_on_end(r, m.status);
	return true;
}

bool run_on_frame(struct session *x, struct chan_frame *f)
{
	if (f->fds_n)
		return false;
	switch (f->type) {
	case ROOM_READY:
		return f->payload.n == 0;
	case ROOM_STARTED:
		return run_on_started(x, f->payload);
	case ROOM_FAILED:
		return run_on_failed(x, f->payload);
	case ROOM_EXITED:
		return run_on_exited(x, f->payload);
	default:
		return false;
	}
}

/* --- start --- */

/* Make a pipe; the run keeps one end. */
static int run_open_stream(struct run *r, unsigned i, int *ret_theirs)
{
	struct run_stream *s = &r->streams[i];
	int pair[2], e = fd_pipe(pair);

	if (e < 0)
		return e;
	s->fd = pair[0];
	*ret_theirs = pair[1];
	room_lend(r->session->room, pair[1], r->session->uid, r->session->gid);
	e = fd_set_nonblock(s->fd, true);
	return e < 0 ? e
		     : loop_io_add(r->session->serve->loop, &s->io, s->fd, EPOLLIN, run_on_output);
}

static int run_send(struct run *r, const struct ask *ask, const int fds[2], struct cloche_err *err)
{
	struct session *x = r->session;
	bool in_room = serve_has_rooms(x->serve);
	struct roomctl_exec m = {.exec = r->number, .fds_mask = 6};
	int e;

	exec_spec_init(&m.spec);
	e = exec_spec_set(&m.spec, ask->argv, ask->env, in_room ? RUN_HOME : NULL, err);
	m.spec.uid = x->uid;
	m.spec.gid = x->gid;
	if (e == 0) {
		e = roomctl_send_exec(&x->init, &m, fds, 2);
		if (e == 0)
			e = chan_flush(&x->init);
		if (e < 0)
			e = err_sys(err, -e, "start the code");
	}
	if (e == 0)
		loop_io_set(&x->init_io, chan_pending(&x->init) ? EPOLLIN | EPOLLOUT : EPOLLIN);
	exec_spec_done(&m.spec);
	return e;
}

int run_start(struct session *x, struct conn *c, const struct ask *ask, struct run **ret,
	struct cloche_err *err)
{
	struct run *r = calloc(1, sizeof(*r));
	int fds[2] = {-1, -1}, e = 0;

	if (!r) {
		session_rest(x);
		return err_nomem(err);
	}
	*r = (struct run){.session = x,
		.conn = c,
		.number = ++x->last_number,
		.timeout_ms = ask->timeout_ms,
		.began_mono = clock_mono_usec(),
		.began_real = clock_real_usec()};
	DL_APPEND(x->runs, r);
	for (unsigned i = 0; i < 2; i++)
		r->streams[i] =
			(struct run_stream){.run = r, .fd = -1, .kept = BUF_INIT(RUN_STREAM_MAX)};
	for (unsigned i = 0; i < 2 && e == 0; i++)
		e = run_open_stream(r, i, &fds[i]);
	if (e == 0)
		e = loop_timer_in(x->serve->loop, &r->deadline, ask->timeout_ms * USEC_PER_MSEC,
			run_on_deadline);
	e = e < 0 ? err_sys(err, -e, "prepare the code's output") : run_send(r, ask, fds, err);
	for (unsigned i = 0; i < 2; i++)
		fd_close(fds[i]);
	if (e < 0)
		run_free(r);
	else
		*ret = r;
	return e;
}
