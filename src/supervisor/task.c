/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a task is a process of the room; watchers are clients' handles of it. Init
 * knows it by a number that no client sees; tasks that clients may join have another number, in the
 * order in which they were started. Init answers each EXEC once with FAILED, or with STARTED and
 * later EXITED; for anything else the caller ends the room. Nothing from init is trusted beyond
 * that: numbers, a wait status, one descriptor that is checked to be a terminal.
 *
 * In a kept sandbox a task that has ended stays, with its result and its log, until there are too
 * many of them. */
#include "base/clock.h"
#include "base/fd.h"
#include "supervisor/supervisor.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <utlist.h>

enum {
	MAX_TASKS = 4096,
	MAX_PAST = 64,  /* logs of ended processes */
	PAST_BYTES = 4, /* limit of all logs together, in multiples of one log's limit */
	PTMX_MAJOR = 5,
	PTMX_MINOR = 2
};
#define FORGET_AFTER (20 * USEC_PER_MSEC)

/* --- tasks --- */

static void task_free(struct task *t)
{
	struct supervisor *s = t->sup;

	while (t->watchers)
		watcher_free(t->watchers);
	loop_timer_clear(&t->timer);
	if (t->state != TASK_ENDED)
		HASH_DEL(s->tasks.known, t);
	else if (t->captured)
		DL_DELETE(s->tasks.past, t);
	recording_task_gone(t);
	if (t->shown)
		HASH_DELETE(hh_shown, s->tasks.shown, t);
	output_remove(t);
	free(t);
}

/* Remove the oldest logs. Logs that processes still write to are not counted: without a reader
 * those processes would die. */
static void forget_oldest(struct supervisor *s)
{
	uint64_t bytes = 0, most = PAST_BYTES * (s->start.log_bytes ? s->start.log_bytes
								    : EXECLOG_DEFAULT_BYTES);
	unsigned n = 0;
	struct task *t, *tmp;

	DL_FOREACH (s->tasks.past, t)
		if (output_is_closed(t)) {
			n++;
			bytes += output_size(t);
		}
	DL_FOREACH_SAFE (s->tasks.past, t, tmp) {
		if (n <= MAX_PAST && bytes <= most)
			return;
		if (!output_is_closed(t) || !output_is_delivered(t) || t->unrecorded)
			continue;
		n--;
		bytes -= output_size(t);
		task_free(t);
	}
}

static void on_forget(struct loop_timer *t)
{
	forget_oldest(container_of(t, struct supervisor, tasks.forget));
}

/* Do it a moment later, so that no client waits for the removal of files. */
static void forget_later(struct supervisor *s)
{
	if (!s->tasks.forget.loop &&
		loop_timer_in(s->loop, &s->tasks.forget, FORGET_AFTER, on_forget) < 0)
		forget_oldest(s);
}

void task_on_output(struct task *t)
{
	struct supervisor *s = t->sup;

	if (t->state != TASK_ENDED)
		return;
	watchers_tell_end(t, false);
	if (output_is_closed(t)) {
		output_write_meta(t);
		forget_later(s);
	}
	sandbox_check_end(s);
}

/* --- starting --- */

static bool send_to_init(
	struct task *t, const struct exec_spec *spec, const int fds[3], bool is_last)
{
	struct roomctl_exec exec = {.exec = t->number, .last = is_last, .spec = *spec};
	int given[3];
	unsigned n = 0;

	task_choose_user(t->sup, &exec.spec);
	lend_pipes(t->sup->room, &exec.spec, fds);
	for (unsigned i = 0; i < 3; i++) {
		if (fds[i] < 0)
			continue;
		exec.fds_mask |= (uint8_t)(1U << i);
		given[n++] = fds[i];
	}
	return roomctl_send_exec(&t->sup->init.chan, &exec, given, n) == 0;
}

static struct task *task_new(struct supervisor *s, const struct exec_spec *spec)
{
	struct task *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	*t = (struct task){.sup = s,
		.number = ++s->tasks.last_number,
		.tty = spec->tty,
		.input = -1,
		.dir = -1,
		.timeout_usec = spec->timeout_usec,
		.started_at = clock_mono_usec(),
		.started_real = clock_real_usec()};
	HASH_ADD(hh, s->tasks.known, number, sizeof(t->number), t);
	return t;
}

/* Return whether the process has a number and a log. That of a raw process stays empty. */
static bool is_captured(const struct supervisor *s, const struct ctl_exec *m)
{
	return !(m->flags & CTL_EXEC_WORKER) &&
	       (s->start.recorded || (s->start.kept && !(m->flags & CTL_EXEC_RAW)));
}

/* Fill fds with the process's descriptors (owned by the caller). Return 0 or -errno. */
static int arrange_output(
	struct task *t, const struct ctl_exec *m, struct chan_frame *f, int fds[3])
{
	unsigned taken = 0;

	if (is_captured(t->sup, m)) {
		t->shown = ++t->sup->tasks.last_shown;
		HASH_ADD(hh_shown, t->sup->tasks.shown, shown, sizeof(t->shown), t);
		return output_prepare(t, m, f, fds);
	}
	for (int i = 0; i < 3 && !m->spec.tty; i++)
		if (m->stdio[i] == CTL_STDIO_FD)
			fds[i] = TAKE_FD(f->fds[taken++]);
	return 0;
}

static bool launch(struct task *t, const struct ctl_exec *m, struct chan_frame *f)
{
	struct supervisor *s = t->sup;
	bool is_last = s->start.one_shot && s->tasks.first_number == 0; /* see end_if_one_shot */
	int fds[3] = {-1, -1, -1}, r = arrange_output(t, m, f, fds);
	bool ok;

	if (r == 0)
		r = lend_terminal(t->sup->room, &m->spec, fds);
	ok = r == 0 && send_to_init(t, &m->spec, fds, is_last);

	for (int i = 0; i < 3; i++)
		fd_close(fds[i]);
	if (ok) {
		s->tasks.total++;
		if (s->tasks.first_number == 0)
			s->tasks.first_number = t->number;
		return true;
	}
	if (r == -EINVAL)
		watchers_fail(t, E_USAGE, EINVAL,
			"output of a kept sandbox goes to pipes, not to other files");
	else if (r < 0)
		watchers_fail(
			t, E_SYSTEM, -r, "no pipes or terminal could be made for the process");
	else
		watchers_fail(t, E_LIMIT, 0, "too much waits for the room's init");
	task_free(t);
	return false;
}

bool task_exec(struct peer *p, struct ctl_exec *m, struct chan_frame *f)
{
	struct supervisor *s = p->sup;
	struct task *t;

	if (m->flags & CTL_EXEC_INHERIT && task_inherit(s, m) < 0)
		return false;
	if (is_captured(s, m) && m->spec.tty &&
		(m->stdio[0] != CTL_STDIO_NULL || m->stdio[2] != CTL_STDIO_NULL))
		return false;
	if (!s->init.open ||
		HASH_COUNT(s->tasks.known) + s->tasks.captured_n >= MAX_TASKS + MAX_PAST) {
		watcher_refuse(p, m->exec, E_BUSY, 0, "the sandbox takes no more processes");
		return true;
	}
	if (task_is_of_other(s, &m->spec)) {
		watcher_refuse(p, m->exec, E_UNSUPPORTED, 0,
			"commands in this sandbox are who made it, and no other user");
		return true;
	}
	task_choose_user(s, &m->spec);
	t = task_new(s, &m->spec);
	if (!t)
		return false;
	recording_task_begins(t, m);
	if (!watcher_new(t, p, m->exec, true)) {
		task_free(t);
		watcher_refuse(p, m->exec, E_BUSY, 0, "the sandbox takes no more clients' handles");
		return true;
	}
	if (!launch(t, m, f))
		return true;
	deadline_start(t);
	sandbox_flush_init(s);
	if (t->captured)
		output_open_log(t, m);
	recording_exec_started(t, m->note);
	return true;
}

bool task_internal(struct supervisor *s, const struct exec_spec *spec, int input)
{
	const int fds[3] = {input, -1, -1};
	struct task *t = s->init.open ? task_new(s, spec) : NULL;

	if (!t)
		return false;
	if (!send_to_init(t, spec, fds, false)) {
		task_free(t);
		return false;
	}
	sandbox_flush_init(s);
	return true;
}

/* --- requests of clients about processes --- */

void task_join(struct peer *p, const struct ctl_join *m, struct chan_frame *f)
{
	struct supervisor *s = p->sup;
	bool outputs = f->fds_n == 2;
	struct watcher *w;
	struct task *t;
	int r;

	HASH_FIND(hh_shown, s->tasks.shown, &m->number, sizeof(m->number), t);
	if (!t) {
		watcher_refuse(
			p, m->exec, E_NOT_FOUND, 0, "the sandbox has no such process (any more)");
		return;
	}
	w = watcher_new(t, p, m->exec, outputs);
	if (!w) {
		watcher_refuse(p, m->exec, E_BUSY, 0, "the sandbox takes no more clients' handles");
		return;
	}
	r = outputs && t->state != TASK_ENDED ? output_share(t, f->fds) : 0;
	if (r < 0) {
		watcher_free(w);
		watcher_refuse(p, m->exec, r == -EBUSY ? E_BUSY : E_USAGE, -r,
			r == -EBUSY ? "somebody else has its output"
				    : "output is shared by pipes, and not of a terminal");
		return;
	}
	if (t->state == TASK_ASKED)
		return; /* on_started answers */
	watcher_tell_started(w, t->state == TASK_RUNS ? t->input : -1);
	if (t->state == TASK_RUNS && t->stopped) {
		t->stopped = false;
		deadline_signal(t, SIGCONT, CTL_SCOPE_GROUP);
	}
	if (t->state == TASK_ENDED && !p->dead)
		watcher_tell_exited(w);
}

void task_signal(struct peer *p, const struct ctl_signal *m)
{
	struct supervisor *s = p->sup;
	struct watcher *w = watcher_find(p, m->exec);

	if (m->scope == CTL_SCOPE_ROOM)
		(void)s->room->provider->kill(s->room, m->signo, NULL);
	else if (w && w->task->state != TASK_ENDED && m->signo == SIGKILL)
		deadline_kill(w->task, m->scope);
	else if (w && w->task->state != TASK_ENDED) {
		w->task->stopped = w->task->stopped && m->signo != SIGCONT;
		deadline_signal(w->task, m->signo, m->scope);
	}
}

void task_resize(struct peer *p, const struct ctl_resize *m)
{
	struct supervisor *s = p->sup;
	struct watcher *w = watcher_find(p, m->exec);

	if (w && w->task->tty && w->task->state != TASK_ENDED && s->init.open) {
		const struct roomctl_resize to_init = {w->task->number, m->rows, m->cols};

		if (roomctl_send_resize(&s->init.chan, &to_init) == 0)
			sandbox_flush_init(s);
	}
}

/* --- frames from init --- */

/* A room cannot make device nodes, so the device number proves that fd is the master of a
 * terminal. */
static bool is_terminal_master(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) &&
	       st.st_rdev == makedev(PTMX_MAJOR, PTMX_MINOR);
}

static bool on_started(struct supervisor *s, struct chan_frame *f)
{
	struct roomctl_started m;
	struct task *t = NULL;

	if (!roomctl_get_started(f->payload, &m))
		return false;
	HASH_FIND(hh, s->tasks.known, &m.exec, sizeof(m.exec), t);
	if (!t || t->state != TASK_ASKED || f->fds_n != (t->tty ? 1 : 0))
		return false;
	if (t->tty && !is_terminal_master(f->fds[0]))
		return false;
	t->state = TASK_RUNS;
	t->pid = m.pid;
	if (t->captured && t->tty && output_started(t, TAKE_FD(f->fds[0])) < 0)
		deadline_signal(t, SIGKILL, CTL_SCOPE_PROCESS);
	/* A client that does not read the output will probably look at the record next. */
	if (t->captured && output_is_delivered(t))
		record_update(s);
	else if (t->captured)
		record_update_soon(s);
	watchers_tell_started(t, t->tty ? f->fds[0] : -1);
	/* The command was started after all others had got TERM. */
	if (s->state == SUP_ENDING && !s->end.term_due)
		deadline_signal(t, SIGTERM, CTL_SCOPE_GROUP);
	deadline_tell_room(s);
	return true;
}

static const char *task_describe(enum roomctl_stage stage, int sys_errno)
{
	switch (stage) {
	case ROOM_STAGE_TTY:
		return "no terminal could be made in the room";
	case ROOM_STAGE_CWD:
		return "the working directory cannot be entered";
	case ROOM_STAGE_USER:
		return "the user or group is not known to the room, which was made for others "
		       "(--user)";
	case ROOM_STAGE_LOOKUP:
		return "command not found";
	case ROOM_STAGE_EXEC:
		return sys_errno == ENOENT ? "its interpreter is missing"
					   : "the command cannot be executed";
	case ROOM_STAGE_SETUP:
	case ROOM_STAGE_END_:
		break;
	}
	return "the process could not be started";
}

static void end_if_one_shot(struct supervisor *s, uint32_t number)
{
	if (s->start.one_shot && number == s->tasks.first_number)
		sandbox_kill(s, CTL_REASON_EXITED);
	else if (s->state == SUP_ENDING && HASH_COUNT(s->tasks.known) == 0)
		sandbox_kill(s, s->end.reason);
}

static bool on_failed(struct supervisor *s, struct str payload)
{
	struct roomctl_failed m;
	struct task *t = NULL;
	char text[256];
	int code, e;

	if (!roomctl_get_failed(payload, &m))
		return false;
	HASH_FIND(hh, s->tasks.known, &m.exec, sizeof(m.exec), t);
	if (!t || t->state != TASK_ASKED)
		return false;
	e = (int)m.sys_errno;
	code = m.stage == ROOM_STAGE_LOOKUP ? E_COMMAND_NOT_FOUND : E_CANNOT_EXEC;
	if (m.stage == ROOM_STAGE_LOOKUP || (m.stage == ROOM_STAGE_EXEC && e == ENOENT))
		snprintf(text, sizeof(text), "%s", task_describe(m.stage, e));
	else
		snprintf(text, sizeof(text), "%s: %s", task_describe(m.stage, e), strerror(e));
	recording_exec_failed(t, text);
	watchers_fail(t, code, e, text);
	task_free(t);
	end_if_one_shot(s, m.exec);
	deadline_tell_room(s);
	return true;
}

/* Report a limit as the cause if it was hit since the last check. This reads a few small files, so
 * do it only if a process failed. */
static void look_for_limits(struct supervisor *s, struct ctl_exec_exited *m)
{
	struct room_usage u = {0};

	if (s->room->provider->usage(s->room, &u, NULL) < 0)
		return;
	m->oom_killed |= u.oom_kills > s->tasks.oom_kills_seen;
	m->pids_refused = u.pids_refused && !s->tasks.pids_refused_seen;
	s->tasks.oom_kills_seen = u.oom_kills;
	s->tasks.pids_refused_seen = u.pids_refused;
}

/* The process has ended: report its result and, if it was captured, keep it, else free t. */
static void ended(struct task *t, int status, bool oom_killed)
{
	struct supervisor *s = t->sup;
	struct ctl_exec_exited *m = &t->result;

	*m = (struct ctl_exec_exited){.signaled = WIFSIGNALED(status),
		.status = (uint8_t)(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)),
		.timed_out = t->timed_out || s->end.timed_out,
		.oom_killed = oom_killed,
		.stopped = s->end.stopped,
		.duration_usec = clock_mono_usec() - t->started_at};
	if (m->signaled || m->status != 0)
		look_for_limits(s, m);
	loop_timer_clear(&t->timer);
	if (!t->captured) {
		watchers_tell_end(t, true);
		task_free(t);
		return;
	}
	HASH_DEL(s->tasks.known, t);
	t->state = TASK_ENDED;
	t->ended_real = clock_real_usec();
	DL_APPEND(s->tasks.past, t);
	output_exited(t);
	recording_exec_ended(t);
	output_write_meta(t);
	watchers_tell_end(t, false);
	record_update_soon(s);
	forget_later(s);
}

static bool on_exited(struct supervisor *s, struct str payload)
{
	struct roomctl_exited m;
	struct task *t = NULL;

	if (!roomctl_get_exited(payload, &m))
		return false;
	HASH_FIND(hh, s->tasks.known, &m.exec, sizeof(m.exec), t);
	if (!t || t->state != TASK_RUNS ||
		!(WIFEXITED((int)m.status) || WIFSIGNALED((int)m.status)))
		return false;
	ended(t, (int)m.status, false);
	end_if_one_shot(s, m.exec);
	return true;
}

static bool on_stopped(struct supervisor *s, struct str payload)
{
	struct roomctl_stopped m;
	struct task *t = NULL;
	struct watcher *w, *tmp;

	if (!roomctl_get_stopped(payload, &m))
		return false;
	HASH_FIND(hh, s->tasks.known, &m.exec, sizeof(m.exec), t);
	if (!t || t->state != TASK_RUNS || !t->tty)
		return false;
	if (m.signo == SIGSTOP && t->paused)
		t->paused = s->peers.paused > 0;
	else if (!t->stopped) {
		t->stopped = true;
		/* (The handles of a dropped peer are freed at the end of this iteration.) */
		DL_FOREACH_SAFE (t->watchers, w, tmp)
			if (!w->peer->dead)
				watcher_tell_stopped(w);
	}
	return true;
}

bool task_on_frame(struct supervisor *s, struct chan_frame *f)
{
	if (f->type == ROOM_STARTED)
		return on_started(s, f);
	if (f->fds_n != 0)
		return false;
	switch (f->type) {
	case ROOM_READY:
		if (s->ready)
			return false;
		s->ready = true;
		return f->payload.n == 0;
	case ROOM_FAILED:
		return on_failed(s, f->payload);
	case ROOM_EXITED:
		return on_exited(s, f->payload);
	case ROOM_STOPPED:
		return on_stopped(s, f->payload);
	default:
		return false;
	}
}

void tasks_orphan(struct supervisor *s, struct peer *p)
{
	while (p->handles)
		watcher_free(p->handles);
}

uint64_t tasks_running(const struct supervisor *s)
{
	const struct task *t, *tmp;
	uint64_t n = 0;

	HASH_ITER (hh, s->tasks.known, t, tmp)
		n += !s->start.kept || t->shown;
	return n;
}

uint64_t tasks_total(const struct supervisor *s)
{
	return s->start.kept ? s->tasks.last_shown : s->tasks.total;
}

/* --- the end --- */

void tasks_end(struct supervisor *s, bool oom_killed)
{
	struct task *t, *tmp;

	HASH_ITER (hh, s->tasks.known, t, tmp) {
		/* Init may have died before it told of what had begun. Who stops a sandbox is told
		 * that all its processes were killed. */
		if (t->state == TASK_ASKED && s->end.stopped)
			watchers_tell_started(t, -1);
		if (t->state == TASK_RUNS || s->end.stopped) {
			ended(t, SIGKILL, oom_killed);
			continue;
		}
		watchers_fail(t, E_CANCELLED, 0,
			"the sandbox ended before it was known that the process had started");
		task_free(t);
	}
}

bool tasks_delivered(const struct supervisor *s)
{
	const struct task *t;
	const struct watcher *w;

	DL_FOREACH (s->tasks.past, t)
		DL_FOREACH (t->watchers, w)
			if (w->own && !output_is_delivered(t))
				return false;
	return true;
}

void tasks_give_up(struct supervisor *s)
{
	struct task *t;

	DL_FOREACH (s->tasks.past, t)
		watchers_tell_end(t, true);
}

void tasks_close(struct supervisor *s)
{
	struct task *t;

	DL_FOREACH (s->tasks.past, t) {
		output_close(t);
		output_write_meta(t);
	}
}
