/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a watcher is one client's handle of one process. The client that started the
 * process has one, and so has each client that joined it; all are told when it starts and ends. The
 * watchers of a dropped client are freed at the end of the loop's iteration, so that lists of them
 * can be walked. */
#include "supervisor/supervisor.h"

#include <utlist.h>

enum { MAX_WATCHERS = 16384 };

void watcher_free(struct watcher *w)
{
	HASH_DEL(w->peer->handles, w);
	DL_DELETE(w->task->watchers, w);
	w->task->sup->tasks.watchers_n--;
	free(w);
}

struct watcher *watcher_new(struct task *t, struct peer *p, uint32_t exec, bool own)
{
	struct watcher *w = t->sup->tasks.watchers_n < MAX_WATCHERS ? calloc(1, sizeof(*w)) : NULL;

	if (!w)
		return NULL;
	*w = (struct watcher){.peer = p, .task = t, .exec = exec, .own = own};
	HASH_ADD(hh, p->handles, exec, sizeof(w->exec), w);
	DL_APPEND(t->watchers, w);
	t->sup->tasks.watchers_n++;
	return w;
}

struct watcher *watcher_find(struct peer *p, uint32_t exec)
{
	struct watcher *w;

	HASH_FIND(hh, p->handles, &exec, sizeof(exec), w);
	return w;
}

void watcher_refuse(struct peer *p, uint32_t exec, int code, int sys_errno, const char *text)
{
	struct ctl_exec_failed m = {.exec = exec,
		.code = (uint32_t)code,
		.sys_errno = (uint32_t)sys_errno,
		.message = str_from(text)};

	peer_sent(p, ctl_send_exec_failed(&p->chan, &m));
}

void watcher_tell_started(struct watcher *w, int fd)
{
	struct task *t = w->task;
	struct ctl_exec_started m = {.exec = w->exec,
		.pid = t->pid,
		.number = t->sup->start.kept ? t->shown : t->number,
		.tty = t->tty};

	peer_sent(w->peer, ctl_send_exec_started(&w->peer->chan, &m, fd));
}

void watchers_tell_started(const struct task *t, int master)
{
	struct watcher *w, *tmp;

	/* (The handles of a dropped peer are freed at the end of this iteration.) */
	DL_FOREACH_SAFE (t->watchers, w, tmp)
		if (!w->peer->dead)
			watcher_tell_started(w, t->captured ? t->input : master);
}

void watcher_tell_stopped(struct watcher *w)
{
	struct peer *p = w->peer;

	peer_sent(p, ctl_send_exec_stopped(&p->chan, &(struct ctl_exec_stopped){.exec = w->exec}));
}

void watcher_tell_exited(struct watcher *w)
{
	struct ctl_exec_exited m = w->task->result;
	struct peer *p = w->peer;

	m.exec = w->exec;
	watcher_free(w);
	peer_sent(p, ctl_send_exec_exited(&p->chan, &m));
}

void watchers_fail(struct task *t, int code, int sys_errno, const char *text)
{
	while (t->watchers) {
		struct watcher *w = t->watchers;
		struct peer *p = w->peer;
		uint32_t exec = w->exec;

		watcher_free(w);
		watcher_refuse(p, exec, code, sys_errno, text);
	}
}

/* A client that started the process is told that it ended once it has the output. A client that is
 * dropped on the way takes all its handles along, so search the list from the start each time. */
void watchers_tell_end(struct task *t, bool all)
{
	struct watcher *w;

	if (t->unrecorded)
		return;
	all |= output_is_delivered(t);
	do {
		DL_FOREACH (t->watchers, w)
			if (all || !w->own)
				break;
		if (w)
			watcher_tell_exited(w);
	} while (w);
}
