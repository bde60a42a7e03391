/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a session is a room that this process has made itself, and it holds the
 * room's control socket as a supervisor does. Its files lie in the room's own memory, so nothing
 * has to be removed when the room ends but its control groups. They are on record in a directory as
 * a supervisor has it, so that the next start removes them if this process is killed. With
 * --no-room the provider without isolation takes the place of the other one, and the session's
 * files are in that directory. */
#include "base/fd.h"

#include "farserve/serve.h"
#include "ipc/roomctl.h"
#include "ipc/rundir.h"
#include "manager/sandboxes.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

enum {
	SESSION_UID = 1000,
	SESSION_PIDS = 256,
	SESSION_MEMORY = 512 << 20,
	SESSION_FILES = 256 << 20,
	SESSION_NOFILE = 1024,
};

/* Limits that this place cannot enforce are told when the service starts. */
static void session_set_limits(const struct serve *s, struct room_limits *l)
{
	l->best_effort = true;
	l->nofile = SESSION_NOFILE;
	if (!serve_has_rooms(s))
		return;
	l->pids = SESSION_PIDS;
	l->memory_bytes = SESSION_MEMORY;
	l->tmpfs_bytes = SESSION_FILES;
}

static int session_fill_spec(
	const struct session *x, struct room_spec *spec, struct cloche_err *err)
{
	const char *home = getenv("HOME");

	session_set_limits(x->serve, &spec->limits);
	spec->net = x->serve->provider == &subprocess_provider ? ROOM_NET_HOST : ROOM_NET_NONE;
	spec->uid = x->uid;
	spec->gid = x->gid;
	spec->own_user = !serve_has_rooms(x->serve);
	spec->id = strdup(x->id);
	spec->user = strdup("cloche");
	spec->init_path = strdup(x->serve->self);
	spec->host_home = strdup(home && home[0] == '/' ? home : "/");
	return spec->id && spec->user && spec->init_path && spec->host_home ? 0 : err_nomem(err);
}

static int session_make_room(struct session *x, struct cloche_err *err)
{
	_cleanup_(room_spec_donep) struct room_spec spec;
	int r;

	room_spec_init(&spec);
	rundir_make_id(x->id);
	x->uid = serve_has_rooms(x->serve) ? SESSION_UID : geteuid();
	x->gid = serve_has_rooms(x->serve) ? SESSION_UID : getegid();
	r = session_fill_spec(x, &spec, err);
	/* Other providers make the session's home in there. */
	if (r == 0 && !serve_has_rooms(x->serve))
		r = sandbox_dir_make(&x->dir, x->id, err);
	if (r == 0)
		r = sandbox_dir_plan(&x->dir, x->serve->provider, &spec, err);
	if (r == 0)
		r = x->serve->provider->create(x->serve->provider, &spec, &x->room, err);
	return r;
}

/* End the room, and remove what it leaves on the machine. What cannot be removed now is on record
 * for the next sweep. */
static void session_end_room(struct session *x)
{
	x->room = room_free(x->room);
	if (sandbox_dir_reap(&x->dir, NULL) == 0)
		sandbox_dir_remove(&x->dir);
	else
		sandbox_dir_leave(&x->dir);
}

void session_sweep(void)
{
	_cleanup_fd_ int base = rundir_open(NULL);

	if (base >= 0)
		sandboxes_sweep(base, NULL, NULL);
}

int session_try(struct serve *s, struct buf *words, struct cloche_err *err)
{
	struct session x = {.serve = s, .init.fd = -1, .dir = SANDBOX_DIR_INIT};
	int r = session_make_room(&x, err);

	for (unsigned i = 0; r == 0 && i < x.room->unenforced_n; i++)
		if (buf_printf(words, "%s%s", i ? "; " : "", x.room->unenforced[i]) < 0)
			r = err_nomem(err);
	session_end_room(&x);
	return r;
}

/* --- its life --- */

static void session_free(struct session *x)
{
	struct serve *s = x->serve;

	run_lose_all(x);
	loop_timer_clear(&x->sleep);
	loop_io_remove(&x->init_io);
	loop_io_remove(&x->room_io);
	chan_done(&x->init);
	session_end_room(x);
	DL_DELETE(s->sessions, x);
	s->sessions_n--;
	free(x);
}

static void session_on_end(struct loop_job *job)
{
	session_free(container_of(job, struct session, end));
}

/* Forget it when the callbacks that may use it have returned. */
static void session_end(struct session *x)
{
	x->name[0] = '\0';
	loop_defer(x->serve->loop, &x->end, session_on_end);
}

static void session_on_sleep(struct loop_timer *t)
{
	session_end(container_of(t, struct session, sleep));
}

void session_rest(struct session *x)
{
	if (x->runs)
		return;
	if (!x->name[0] || loop_timer_in(x->serve->loop, &x->sleep, x->serve->options.sleep_usec,
				   session_on_sleep) < 0)
		session_end(x);
}

static bool session_read_init(struct session *x)
{
	for (;;) {
		struct chan_frame f;
		int e = chan_recv(&x->init, &f);
		bool ok;

		if (e <= 0)
			return e == 0;
		ok = run_on_frame(x, &f);
		chan_frame_done(&f);
		if (!ok)
			return false;
	}
}

static void session_on_init(struct loop_io *io, uint32_t events)
{
	struct session *x = container_of(io, struct session, init_io);

	if (session_read_init(x) && chan_flush(&x->init) == 0) {
		loop_io_set(io, chan_pending(&x->init) ? EPOLLIN | EPOLLOUT : EPOLLIN);
		return;
	}
	loop_io_remove(io);
	session_end(x);
}

static void session_on_room_dead(struct loop_io *io, uint32_t events)
{
	struct session *x = container_of(io, struct session, room_io);

	loop_io_remove(io);
	(void)!session_read_init(x);
	session_end(x);
}

static int session_watch(struct session *x, struct cloche_err *err)
{
	int e = chan_init(
		&x->init, TAKE_FD(x->room->control_fd), ROOMCTL_MAX_REPLY, ROOMCTL_MAX_PAYLOAD * 2);

	x->init.max_send = ROOMCTL_MAX_PAYLOAD;
	if (e == 0)
		e = loop_io_add(x->serve->loop, &x->init_io, x->init.fd, EPOLLIN, session_on_init);
	if (e == 0)
		e = loop_io_add(x->serve->loop, &x->room_io, x->room->watch_fd, EPOLLIN,
			session_on_room_dead);
	return e < 0 ? err_sys(err, -e, "watch the room") : 0;
}

static int session_new(
	struct serve *s, const char *name, struct session **ret, struct cloche_err *err)
{
	struct session *x;
	int r;

	if (s->sessions_n + s->fars_n >= s->options.sessions_max)
		return err_set(err, E_LIMIT,
			"there are %u rooms already, which is the most at a time",
			s->sessions_n + s->fars_n);
	x = calloc(1, sizeof(*x));
	if (!x)
		return err_nomem(err);
	x->serve = s;
	x->init.fd = -1;
	x->dir = SANDBOX_DIR_INIT;
	snprintf(x->name, sizeof(x->name), "%s", name);
	DL_APPEND(s->sessions, x);
	s->sessions_n++;
	r = session_make_room(x, err);
	if (r == 0)
		r = session_watch(x, err);
	if (r < 0) {
		session_free(x);
		return err_wrap(err, r, "make a room");
	}
	*ret = x;
	return 0;
}

int session_get(struct serve *s, const char *name, struct session **ret, struct cloche_err *err)
{
	struct session *x;

	DL_FOREACH (s->sessions, x)
		if (name[0] && strcmp(x->name, name) == 0)
			break;
	if (!x)
		return session_new(s, name, ret, err);
	loop_timer_clear(&x->sleep);
	*ret = x;
	return 0;
}

void session_end_all(struct serve *s)
{
	struct session *x, *next;

	DL_FOREACH_SAFE (s->sessions, x, next)
		session_free(x);
}
