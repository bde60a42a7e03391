/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a sandbox with a full record has a program of its own (cloche-recorder) that
 * keeps the log, so that reading the room's files delays only the clients that wait for it. No
 * command starts before the recorder has scanned the existing files, and no client is told that a
 * command has ended before the command's changes are on record. Commands that end meanwhile wait in
 * a queue and are recorded one after the other. If a worker for files has run since the last scan,
 * a command also waits for another one, which tells the worker's changes from its own.
 *
 * The room is ended first, so that nothing changes the files during the last scan. Then the
 * recorder is told, and the supervisor waits for it to end. If it ends earlier, the sandbox ends
 * too. */
#include "ipc/recording.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/jsonout.h"
#include "base/program.h"
#include "supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <utlist.h>

enum { MAX_OUT = 16 << 20 };
#define SLOW_USEC (1 * USEC_PER_SEC)
#define SOON (5 * USEC_PER_MSEC)
#define PATIENCE (120 * USEC_PER_SEC) /* for the last scan */

static void trouble(struct supervisor *s, const char *what)
{
	char text[RECORDING_MAX_TROUBLE + 64];

	if (s->recording.troubled)
		return;
	s->recording.troubled = true;
	snprintf(text, sizeof(text), "the record has gaps: %s", what);
	peers_warning(s, str_from(text));
}

static void flush(struct supervisor *s)
{
	struct recording *r = &s->recording;

	loop_timer_clear(&r->flush);
	if (r->conn.open)
		(void)conn_flush(&r->conn);
}

static void sent(struct supervisor *s, int r)
{
	if (r < 0)
		trouble(s, "too much is to be recorded at once");
	flush(s);
}

static int send_event(struct supervisor *s, enum recording_frame frame, enum recording_kind kind,
	const struct jsonout *args)
{
	return args->error < 0 ? args->error
			       : recording_send_event(&s->recording.conn.chan, frame,
					 &(struct recording_event){kind, buf_str(args->b)});
}

/* --- commands --- */

static void recorded(struct task *t)
{
	t->unrecorded = false;
	clocked_done(t);
	if (output_is_closed(t))
		t->dir = fd_close(t->dir);
	watchers_tell_end(t, false);
}

static bool send_ended(struct task *t)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(RECORDING_MAX_EVENT);
	struct jsonout o = {.b = &b};
	struct supervisor *s = t->sup;
	struct recording_ended m;
	int r;

	jsonout_number(&o, "exec", t->shown);
	output_describe_end(&o, t);
	clocked_write(t, &o);
	if (t->log.lost)
		jsonout_number(&o, "lost_last", t->log.lost);
	m = (struct recording_ended){.number = t->number, .exec = t->shown, .members = buf_str(&b)};
	r = o.error < 0 || !s->recording.conn.open ? -1
						   : recording_send_ended(&s->recording.conn.chan,
							     &m, t->log.end > 0 ? t->dir : -1);
	sent(s, r);
	return r == 0;
}

/* Send the first in the queue. One that cannot be sent is not waited for. */
static void send_next(struct supervisor *s)
{
	struct task *t;

	while ((t = s->recording.queue) && !send_ended(t)) {
		LL_DELETE2(s->recording.queue, t, unrecorded_next);
		recorded(t);
	}
}

static void on_flush(struct loop_timer *t)
{
	flush(container_of(t, struct supervisor, recording.flush));
}

void recording_exec_started(struct task *t, const char *note)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(RECORDING_MAX_EVENT);
	struct jsonout o = {.b = &b};
	struct supervisor *s = t->sup;

	if (!s->recording.conn.open || t->is_worker)
		return;
	jsonout_open(&o, NULL, '{');
	jsonout_number(&o, "exec", t->shown);
	if (t->described)
		jsonout_raw(&o, NULL, str_from(t->described));
	if (note)
		jsonout_raw(&o, NULL, str_from(note));
	jsonout_close(&o, '}');
	if (send_event(s, RECORDING_EVENT, RECORDING_EXEC_START, &o) < 0)
		sent(s, -1);
	/* Send this a moment later: the recorder should not take the processor from the command,
	 * and the start and end of a short command then go out together. */
	else if (!s->recording.flush.loop &&
		 loop_timer_in(s->loop, &s->recording.flush, SOON, on_flush) < 0)
		flush(s);
}

void recording_exec_failed(struct task *t, const char *why)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(RECORDING_MAX_EVENT);
	struct jsonout o = {.b = &b};
	struct supervisor *s = t->sup;

	if (!s->recording.conn.open || t->is_worker)
		return;
	jsonout_number(&o, "exec", t->shown);
	jsonout_text(&o, "failed", why);
	sent(s, o.error < 0 ? o.error
			    : recording_send_ended(&s->recording.conn.chan,
				      &(struct recording_ended){
					      .exec = t->shown, .members = buf_str(&b)},
				      -1));
}

void recording_exec_ended(struct task *t)
{
	struct supervisor *s = t->sup;
	bool first = !s->recording.queue;

	if (!s->recording.conn.open)
		return;
	t->unrecorded = true;
	LL_APPEND2(s->recording.queue, t, unrecorded_next);
	if (first)
		send_next(s);
}

static bool done(struct supervisor *s, struct str payload)
{
	struct recording_done m;
	struct task *t = s->recording.queue;

	if (!recording_get_done(payload, &m))
		return false;
	if (!t || t->number != m.number)
		return m.number == 0; /* a command that could not be started */
	LL_DELETE2(s->recording.queue, t, unrecorded_next);
	send_next(s);
	recorded(t);
	sandbox_check_end(s);
	return true;
}

/* --- looks before a command --- */

void recording_task_begins(struct task *t, const struct ctl_exec *m)
{
	struct recording *r = &t->sup->recording;

	t->is_worker = m->flags & CTL_EXEC_WORKER;
	r->workers += t->is_worker;
	r->had_worker |= t->is_worker;
}

void recording_task_gone(const struct task *t)
{
	t->sup->recording.workers -= t->is_worker;
}

bool recording_look_again(struct supervisor *s, const struct ctl_exec *m)
{
	struct recording *r = &s->recording;

	if (!r->had_worker || !r->conn.open || m->flags & CTL_EXEC_WORKER)
		return false;
	if (recording_send_look(&r->conn.chan) < 0) {
		sent(s, -1);
		return false;
	}
	r->looks_asked++;
	r->had_worker = r->workers > 0;
	flush(s);
	return true;
}

static bool looked(struct supervisor *s)
{
	struct recording *r = &s->recording;

	if (r->looks_done == r->looks_asked)
		return false;
	r->looks_done++;
	if (r->looks_done == 1) {
		loop_timer_clear(&r->patience);
		sandbox_go_on(s);
	} else if (s->state < SUP_KILLED) {
		peers_begin(s);
	}
	return true;
}

/* --- the channel --- */

static bool took(struct supervisor *s, struct chan_frame *f)
{
	struct recording_trouble m;
	char text[RECORDING_MAX_TROUBLE + 1];

	switch (f->type) {
	case RECORDING_READY:
		return looked(s);
	case RECORDING_DONE:
		return done(s, f->payload);
	case RECORDING_TROUBLE:
		if (!recording_get_trouble(f->payload, &m))
			return false;
		snprintf(text, sizeof(text), "%.*s", STR_FMT(m.text));
		trouble(s, text);
		return true;
	default:
		return false;
	}
}

/* The recorder will say no more: stop waiting for it. */
static void gone(struct supervisor *s)
{
	struct task *t;
	struct cloche_err err = CLOCHE_ERR_INIT;

	conn_close(&s->recording.conn);
	loop_timer_clear(&s->recording.flush);
	while ((t = s->recording.queue)) {
		LL_DELETE2(s->recording.queue, t, unrecorded_next);
		recorded(t);
	}
	if (!s->recording.told_end) {
		err_set(&err, E_SYSTEM, "the recorder ended unexpectedly");
		sandbox_fail(s, &err);
	}
}

static void recording_on_chan(struct loop_io *io, uint32_t events)
{
	struct supervisor *s = container_of(io, struct supervisor, recording.conn.io);
	struct chan_frame f;
	int r;

	while ((r = chan_recv(&s->recording.conn.chan, &f)) == 1) {
		bool ok = took(s, &f);

		chan_frame_done(&f);
		if (!s->recording.conn.open)
			return;
		if (!ok) {
			r = -EPROTO;
			break;
		}
	}
	if (r < 0)
		gone(s);
	else
		flush(s);
	if (r < 0)
		sandbox_check_end(s);
}

static void recording_on_death(struct loop_io *io, uint32_t events)
{
	struct supervisor *s = container_of(io, struct supervisor, recording.child.death);

	if (s->recording.conn.open)
		recording_on_chan(&s->recording.conn.io, 0);
	loop_timer_clear(&s->recording.patience);
	child_reap(&s->recording.child);
	sandbox_check_end(s);
}

/* --- the beginning --- */

int recording_start(struct supervisor *s, const int dirs[2], struct cloche_err *err)
{
	struct recording *r = &s->recording;
	int pair[2], e = fd_socketpair(SOCK_STREAM, pair);

	if (e < 0)
		return err_sys(err, -e, "make a socket");
	_cleanup_fd_ int ours = pair[0], theirs = pair[1];
	const struct program_fd fds[] = {{theirs, RECORDING_FD}, {dirs[0], RECORDING_FD_LOGS},
		{dirs[1], RECORDING_FD_CONTENTS}};

	e = child_start(&r->child, s->loop, "cloche-recorder", fds, ARRAY_SIZE(fds),
		recording_on_death, err);
	if (e < 0)
		return e;
	e = conn_open(&r->conn, s->loop, TAKE_FD(ours), RECORDING_MAX_PAYLOAD, MAX_OUT,
		recording_on_chan);
	chan_refuse_fds(&r->conn.chan);
	if (e == 0)
		e = recording_send_begin(
			&r->conn.chan, &(struct recording_begin){.id = str_from(s->spec.id),
					       .limit = s->start.record_limit,
					       .sync = s->start.record_sync});
	return e < 0 ? err_sys(err, -e, "watch cloche-recorder") : 0;
}

static int add_tree(
	struct supervisor *s, const struct recording_tree *m, int fd, struct cloche_err *err)
{
	int r = recording_send_tree(&s->recording.conn.chan, m, fd);

	/* Only few descriptors may be queued in a channel. */
	if (r == 0)
		r = chan_flush_wait(&s->recording.conn.chan, -1);
	return r < 0 ? err_sys(err, -r, "tell the recorder of %.*s", STR_FMT(m->path)) : 0;
}

static int hide_file(struct supervisor *s, const struct room_mount *m, struct cloche_err *err)
{
	int r = recording_send_hide(&s->recording.conn.chan,
		&(struct recording_hide){.device = m->device, .inode = m->inode});

	return r < 0 ? err_sys(err, -r, "tell the recorder of %s", m->source) : 0;
}

/* Add the layer with the changes of the root, the writable mounts, and what is hidden there. */
static int add_trees(struct supervisor *s, struct cloche_err *err)
{
	struct recording_tree tree = {.path = STR(""), .layer = true, .noted = !s->spec.keep_dir};
	int upper, lower, r = 0;

	if (room_layers(s->room, &upper, &lower, NULL) == 0)
		r = add_tree(s, &tree, upper, err);
	tree = (struct recording_tree){.copied = s->room->provider->sync != NULL};
	for (size_t i = 0; r == 0 && i < s->spec.mounts_n; i++) {
		const struct room_mount *m = &s->spec.mounts[i];
		struct stat st;

		tree.path = str_from(m->target);
		if (!m->ro && !m->guard && fstat(m->fd, &st) == 0 && S_ISDIR(st.st_mode))
			r = add_tree(s, &tree, m->fd, err);
		else if (m->hidden)
			r = hide_file(s, m, err);
	}
	return r;
}

static void on_slow(struct loop_timer *t)
{
	struct supervisor *s = container_of(t, struct supervisor, recording.patience);

	peers_warning(s, STR("what is in the workspace is put on record first"));
}

int recording_look(struct supervisor *s, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(RECORDING_MAX_EVENT);
	struct jsonout o = {.b = &b};
	struct chan *c = &s->recording.conn.chan;
	int r;

	jsonout_open(&o, NULL, '{');
	jsonout_text(&o, "id", s->spec.id);
	jsonout_text(&o, "name", s->start.name && s->start.name[0] ? s->start.name : NULL);
	jsonout_text(&o, "provider", s->room->provider->name);
	jsonout_raw(&o, "config",
		s->start.config && s->start.config[0] ? str_from(s->start.config) : STR("{}"));
	jsonout_close(&o, '}');
	r = send_event(s, RECORDING_EVENT, RECORDING_SANDBOX_START, &o);
	if (r == 0)
		r = add_trees(s, err);
	if (r == 0)
		r = recording_send_look(c);
	s->recording.looks_asked++;
	if (r == 0)
		r = loop_timer_in(s->loop, &s->recording.patience, SLOW_USEC, on_slow);
	flush(s);
	return r == 0 || (err && err->code) ? r : err_sys(err, -r, "speak to the recorder");
}

/* --- the end --- */

static void recording_on_late(struct loop_timer *t)
{
	struct supervisor *s = container_of(t, struct supervisor, recording.patience);

	trouble(s, "the last look at the files takes too long");
	child_kill(&s->recording.child);
}

void recording_finish(struct supervisor *s)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(RECORDING_MAX_EVENT);
	struct jsonout o = {.b = &b};
	struct room_usage u = {0};

	if (s->recording.told_end || !s->recording.conn.open || s->recording.queue)
		return;
	s->recording.told_end = true;
	/* No command was run: nothing is to be added to the record. */
	if (s->recording.looks_done == 0) {
		child_kill(&s->recording.child);
		return;
	}
	if (s->room)
		(void)!s->room->provider->usage(s->room, &u, NULL);
	jsonout_open(&o, NULL, '{');
	jsonout_text(&o, "reason", record_reason_name(s));
	jsonout_text(&o, "error", s->failure);
	jsonout_number(&o, "cpu_usec", u.cpu_usec);
	jsonout_number(&o, "memory_peak_bytes", u.memory_peak_bytes);
	jsonout_close(&o, '}');
	sent(s, send_event(s, RECORDING_END, RECORDING_SANDBOX_END, &o));
	loop_timer_clear(&s->recording.patience);
	if (loop_timer_in(s->loop, &s->recording.patience, PATIENCE, recording_on_late) < 0)
		recording_on_late(&s->recording.patience);
}

void recording_forget(const struct supervisor *s)
{
	const char *const argv[] = {"cloche-recorder", "remove", s->spec.id, NULL};
	const struct program_spawn spawn = {.argv = argv, .stdio = {-1, -1, 2}};
	pid_t pid;

	if (program_start(&spawn, &pid, NULL, NULL) < 0)
		return;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

bool recording_is_awaited(const struct supervisor *s)
{
	return s->start.recorded && s->recording.looks_done == 0;
}

bool recording_is_over(const struct supervisor *s)
{
	return s->recording.child.pid <= 0;
}
