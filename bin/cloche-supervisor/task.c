/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a task maps a client's number to ours, which init uses. Init answers each
 * EXEC once with FAILED, or with STARTED and later EXITED; anything else is a lie, and the caller
 * ends the room. What init says is never believed beyond that: numbers, a wait status, one
 * descriptor that is checked to be a terminal. */
#include "base/clock.h"
#include "base/fd.h"
#include "supervisor.h"

#include <errno.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_TASKS = 4096, PTMX_MAJOR = 5, PTMX_MINOR = 2 };

static void task_free(struct task *t)
{
	loop_timer_clear(&t->timer);
	HASH_DEL(t->sup->tasks, t);
	free(t);
}

static void send_failed(struct peer *p, uint32_t exec, int code, int sys_errno, const char *text)
{
	struct ctl_exec_failed m = {.exec = exec,
		.code = (uint32_t)code,
		.sys_errno = (uint32_t)sys_errno,
		.message = str_from(text)};

	if (p && ctl_send_exec_failed(&p->chan, &m) == 0)
		peer_flush(p);
}

static void signal_task(struct task *t, uint8_t signo, enum ctl_scope scope)
{
	struct roomctl_signal m = {.exec = t->number, .signo = signo, .scope = (uint8_t)scope};

	if (t->sup->init_open && roomctl_send_signal(&t->sup->init, &m) == 0)
		sandbox_flush_init(t->sup);
}

static void on_kill_due(struct loop_timer *timer)
{
	signal_task(container_of(timer, struct task, timer), SIGKILL, CTL_SCOPE_GROUP);
}

static void on_timeout(struct loop_timer *timer)
{
	struct task *t = container_of(timer, struct task, timer);
	struct supervisor *s = t->sup;

	t->timed_out = true;
	if (s->start.one_shot) {
		sandbox_end(s, CTL_REASON_TIMEOUT, s->start.grace_usec);
		return;
	}
	signal_task(t, SIGTERM, CTL_SCOPE_GROUP);
	if (loop_timer_set(
		    s->loop, &t->timer, clock_mono_usec() + s->start.grace_usec, on_kill_due) < 0)
		signal_task(t, SIGKILL, CTL_SCOPE_GROUP);
}

/* A pipe belongs to whoever made it, so a user of the room that is nobody outside could use it but
 * not open it by name (/dev/stdout). Anonymous pipes alone: a named one is a file of the host. */
static void lend_pipes(const struct room *room, const struct exec_spec *spec, struct chan_frame *f)
{
	for (unsigned i = 0;
		room->id_base && spec->uid <= UINT16_MAX && spec->gid <= UINT16_MAX && i < f->fds_n;
		i++) {
		struct statfs fs;

		if (fstatfs(f->fds[i], &fs) == 0 && fs.f_type == PIPEFS_MAGIC)
			(void)!fchown(
				f->fds[i], room->id_base + spec->uid, room->id_base + spec->gid);
	}
}

static bool send_to_init(struct task *t, const struct ctl_exec *m, struct chan_frame *f)
{
	struct roomctl_exec exec = {.exec = t->number, .spec = m->spec};

	lend_pipes(t->sup->room, &m->spec, f);
	for (unsigned i = 0; i < ARRAY_SIZE(m->stdio); i++)
		if (!m->spec.tty && m->stdio[i] == CTL_STDIO_FD)
			exec.fds_mask |= (uint8_t)(1U << i);
	return roomctl_send_exec(&t->sup->init, &exec, f->fds, f->fds_n) == 0;
}

bool task_exec(struct peer *p, const struct ctl_exec *m, struct chan_frame *f)
{
	struct supervisor *s = p->sup;
	struct task *t;

	if (!s->init_open || HASH_COUNT(s->tasks) >= MAX_TASKS) {
		send_failed(p, m->exec, E_BUSY, 0, "the sandbox takes no more processes");
		return true;
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		return false;
	*t = (struct task){.sup = s,
		.peer = p,
		.number = ++s->last_number,
		.exec = m->exec,
		.tty = m->spec.tty,
		.timeout_usec = m->spec.timeout_usec,
		.started_at = clock_mono_usec()};
	HASH_ADD(hh, s->tasks, number, sizeof(t->number), t);
	if (!send_to_init(t, m, f)) {
		send_failed(p, m->exec, E_LIMIT, 0, "too much waits for the room's init");
		task_free(t);
		return true;
	}
	if (s->first_number == 0)
		s->first_number = t->number;
	if (t->timeout_usec &&
		loop_timer_set(s->loop, &t->timer, t->started_at + t->timeout_usec, on_timeout) < 0)
		sandbox_kill(s, CTL_REASON_FAILED);
	sandbox_flush_init(s);
	return true;
}

static struct task *find_of(struct peer *p, uint32_t exec)
{
	struct task *t, *tmp;

	HASH_ITER (hh, p->sup->tasks, t, tmp)
		if (t->peer == p && t->exec == exec)
			return t;
	return NULL;
}

void task_signal(struct peer *p, const struct ctl_signal *m)
{
	struct supervisor *s = p->sup;
	struct task *t = find_of(p, m->exec);

	if (m->scope == CTL_SCOPE_ROOM)
		(void)s->room->provider->kill(s->room, m->signo, NULL);
	else if (t)
		signal_task(t, m->signo, m->scope);
}

void task_resize(struct peer *p, const struct ctl_resize *m)
{
	struct supervisor *s = p->sup;
	struct task *t = find_of(p, m->exec);

	if (t && t->tty && s->init_open &&
		roomctl_send_resize(&s->init, t->number, m->rows, m->cols) == 0)
		sandbox_flush_init(s);
}

/* A room cannot make device nodes, so that number says that it really is a terminal's master. */
static bool is_terminal_master(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) &&
	       st.st_rdev == makedev(PTMX_MAJOR, PTMX_MINOR);
}

static bool on_started(struct supervisor *s, struct chan_frame *f)
{
	uint32_t number, pid;
	struct task *t = NULL;

	if (!roomctl_get_started(f->payload, &number, &pid))
		return false;
	HASH_FIND(hh, s->tasks, &number, sizeof(number), t);
	if (!t || t->started || f->fds_n != (t->tty ? 1 : 0))
		return false;
	if (t->tty && !is_terminal_master(f->fds[0]))
		return false;
	t->started = true;
	if (t->peer) {
		struct ctl_exec_started m = {
			.exec = t->exec, .pid = pid, .number = number, .tty = t->tty};

		if (ctl_send_exec_started(&t->peer->chan, &m, t->tty ? f->fds[0] : -1) == 0)
			peer_flush(t->peer);
	}
	/* The end was asked for while init was starting it: that TERM came too early for it. */
	if (s->state == SUP_ENDING)
		signal_task(t, SIGTERM, CTL_SCOPE_GROUP);
	return true;
}

static const char *describe(enum roomctl_stage stage, int sys_errno)
{
	switch (stage) {
	case ROOM_STAGE_TTY:
		return "no terminal could be made in the room";
	case ROOM_STAGE_CWD:
		return "the working directory cannot be entered";
	case ROOM_STAGE_USER:
		return "the user or group is not known to the room";
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
	if (s->start.one_shot && number == s->first_number)
		sandbox_kill(s, CTL_REASON_EXITED);
	else if (s->state == SUP_ENDING && HASH_COUNT(s->tasks) == 0)
		sandbox_kill(s, s->reason);
}

static bool on_failed(struct supervisor *s, struct str payload)
{
	struct roomctl_failed m;
	struct task *t = NULL;
	char text[256];
	int code, e;

	if (!roomctl_get_failed(payload, &m))
		return false;
	HASH_FIND(hh, s->tasks, &m.exec, sizeof(m.exec), t);
	if (!t || t->started)
		return false;
	e = (int)m.sys_errno;
	code = m.stage == ROOM_STAGE_LOOKUP ? E_COMMAND_NOT_FOUND : E_CANNOT_EXEC;
	if (m.stage == ROOM_STAGE_LOOKUP || (m.stage == ROOM_STAGE_EXEC && e == ENOENT))
		snprintf(text, sizeof(text), "%s", describe(m.stage, e));
	else
		snprintf(text, sizeof(text), "%s: %s", describe(m.stage, e), strerror(e));
	send_failed(t->peer, t->exec, code, e, text);
	task_free(t);
	end_if_one_shot(s, m.exec);
	return true;
}

/* Names a limit as the cause where it struck since the last look. Costs a few small files, so only
 * asked where a process failed. */
static void look_for_limits(struct supervisor *s, struct ctl_exec_exited *m)
{
	struct room_usage u = {0};

	if (s->room->provider->usage(s->room, &u, NULL) < 0)
		return;
	m->oom_killed |= u.oom_kills > s->oom_kills_seen;
	m->pids_refused = u.pids_refused && !s->pids_refused_seen;
	s->oom_kills_seen = u.oom_kills;
	s->pids_refused_seen = u.pids_refused;
}

static void report(struct task *t, int status, bool oom_killed)
{
	struct supervisor *s = t->sup;
	struct ctl_exec_exited m = {.exec = t->exec,
		.signaled = WIFSIGNALED(status),
		.status = (uint8_t)(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)),
		.timed_out = t->timed_out || s->timed_out,
		.oom_killed = oom_killed,
		.stopped = s->stopped,
		.duration_usec = clock_mono_usec() - t->started_at};

	if (m.signaled || m.status != 0)
		look_for_limits(s, &m);
	if (t->peer && ctl_send_exec_exited(&t->peer->chan, &m) == 0)
		peer_flush(t->peer);
}

static bool on_exited(struct supervisor *s, struct str payload)
{
	struct roomctl_exited m;
	struct task *t = NULL;

	if (!roomctl_get_exited(payload, &m))
		return false;
	HASH_FIND(hh, s->tasks, &m.exec, sizeof(m.exec), t);
	if (!t || !t->started || !(WIFEXITED((int)m.status) || WIFSIGNALED((int)m.status)))
		return false;
	report(t, (int)m.status, false);
	task_free(t);
	end_if_one_shot(s, m.exec);
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
	default:
		return false;
	}
}

void tasks_orphan(struct supervisor *s, const struct peer *p)
{
	struct task *t, *tmp;

	HASH_ITER (hh, s->tasks, t, tmp)
		if (t->peer == p)
			t->peer = NULL;
}

void tasks_end(struct supervisor *s, bool oom_killed)
{
	struct task *t, *tmp;

	HASH_ITER (hh, s->tasks, t, tmp) {
		if (t->started)
			report(t, SIGKILL, oom_killed);
		else
			send_failed(t->peer, t->exec, E_CANCELLED, 0,
				"the sandbox ended before the process was started");
		task_free(t);
	}
}
