/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: for SYNC, the provider starts one copy after the other, and the loop waits
 * for the end of each. What came is then looked through in a child of ours, as that may take long,
 * and after that the client gets its answer. Only one client at a time may ask. If it goes, or if
 * the time is over, the copy that is on its way is asked to end, and killed if it does not; who
 * asks meanwhile waits for that. If the room ends, the provider ends the copy before it brings
 * everything back. */
#include "base/clock.h"
#include "base/fd.h"
#include "manager/looks.h"
#include "supervisor/supervisor.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SYNC_PATIENCE (3600 * USEC_PER_SEC) /* a place that trickles keeps nobody */
#define SYNC_TIDY_UP (8 * USEC_PER_SEC)

static void sync_step(struct supervisor *s);
static void sync_stop(struct supervisor *s);
static void sync_begin(struct supervisor *s, struct peer *p, int out);

/* Answer a client. why: NULL: it is done. */
static void sync_tell(struct peer *p, const struct cloche_err *why)
{
	p->syncs = false;
	if (why)
		request_refuse(p, CTL_SYNC, why);
	else
		peer_sent(p, ctl_send_synced(&p->chan));
	peer_answered(p);
}

static void sync_on_ready(struct loop_io *io, uint32_t events)
{
	struct supervisor *s = container_of(io, struct supervisor, sync.io);

	loop_io_remove(io);
	sync_step(s);
}

/* Tell the client, if it is there, and begin for the next one. */
static void sync_answer(struct supervisor *s)
{
	struct syncing done = s->sync;

	loop_timer_clear(&s->sync.patience);
	fd_close(done.out);
	s->sync = (struct syncing){0};
	if (done.peer)
		sync_tell(done.peer, done.why.code ? &done.why : NULL);
	if (done.next)
		sync_begin(s, done.next, done.next_out);
}

/* --- what came is looked through --- */

static void sync_on_looked(struct loop_io *io, uint32_t events)
{
	struct supervisor *s = container_of(io, struct supervisor, sync.look.death);
	int status = child_reap(&s->sync.look);

	/* The next look is at what changed since this one began. */
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		s->look.since = s->sync.looked_at;
	else if (s->sync.why.code == 0)
		err_set(&s->sync.why, E_SYSTEM,
			"what came back could not be looked through: it will be at the end");
	sync_answer(s);
}

static _Noreturn void sync_look_child(struct supervisor *s, pid_t owner)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	int r;

	/* It has our ends of sockets. If we die, whoever removes the rest looks. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd_close(s->dir.lock);
	r = looks_meanwhile(&s->look, &s->dir, owner, &err);
	if (r < 0)
		fprintf(stderr, "cloche-supervisor: %s\n", err.message);
	_exit(r < 0);
}

/* Wait some milliseconds, and return a time that is later than that of everything which has just
 * come, so that it is told once: the time of an inode may be finer than the ticks of the clock. */
static struct timespec sync_mark(void)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	struct timespec before, now = look_now();

	clock_gettime(CLOCK_REALTIME, &before);
	for (int i = 0; i < 100; i++) {
		if (now.tv_sec != before.tv_sec ? now.tv_sec > before.tv_sec
						: now.tv_nsec > before.tv_nsec)
			break;
		(void)nanosleep(&pause, NULL);
		now = look_now();
	}
	return now;
}

static void sync_look(struct supervisor *s)
{
	struct child *c = &s->sync.look;
	pid_t owner = s->sync.peer ? peer_pid(s->sync.peer) : 0;

	s->sync.looked_at = sync_mark();
	c->pid = fork();
	if (c->pid == 0)
		sync_look_child(s, owner);
	c->pidfd = c->pid > 0 ? (int)syscall(SYS_pidfd_open, c->pid, 0) : -1;
	if (c->pidfd >= 0 &&
		loop_io_add(s->loop, &c->death, c->pidfd, EPOLLIN, sync_on_looked) == 0)
		return;
	if (c->pid > 0)
		child_reap(c);
	c->pid = 0;
	err_set(&s->sync.why, E_SYSTEM, "what came back could not be looked through");
	sync_answer(s);
}

/* --- copying --- */

static void sync_on_late(struct loop_timer *t)
{
	struct supervisor *s = container_of(t, struct supervisor, sync.patience);

	if (s->sync.is_stopped)
		s->room->provider->sync_stop(s->room, true);
	else {
		s->sync.is_late = true;
		sync_stop(s);
	}
}

static void sync_step(struct supervisor *s)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	int fd = -1, r = room_sync(s->room, s->sync.out, &fd, &err);

	s->sync.has_begun |= r == 1;
	if (r == 1 && loop_io_add(s->loop, &s->sync.io, fd, EPOLLIN, sync_on_ready) == 0)
		return;
	if (r == 1) {
		s->room->provider->sync_stop(s->room, true);
		(void)!room_sync(s->room, s->sync.out, &fd, NULL);
		r = err_nomem(&err);
	}
	loop_timer_clear(&s->sync.patience);
	if (r < 0)
		s->sync.why = err;
	if (r < 0 && s->sync.is_late)
		err_set(&s->sync.why, E_BROKEN, "the copying did not end within an hour");
	s->recording.had_worker = true;
	if (s->sync.has_begun)
		sync_look(s);
	else
		sync_answer(s);
}

static void sync_stop(struct supervisor *s)
{
	if (!s->sync.io.loop || s->sync.is_stopped)
		return;
	s->sync.is_stopped = true;
	s->room->provider->sync_stop(s->room, false);
	if (loop_timer_in(s->loop, &s->sync.patience, SYNC_TIDY_UP, sync_on_late) < 0)
		s->room->provider->sync_stop(s->room, true);
}

static void sync_forget_next(struct supervisor *s)
{
	s->sync.next = NULL;
	s->sync.next_out = fd_close(s->sync.next_out);
}

void sync_peer_gone(struct supervisor *s, const struct peer *p)
{
	if (s->sync.next == p)
		sync_forget_next(s);
	if (s->sync.peer != p)
		return;
	s->sync.peer = NULL;
	sync_stop(s);
}

void sync_room_dead(struct supervisor *s)
{
	struct peer *next = s->sync.next;
	struct cloche_err why = CLOCHE_ERR_INIT;

	if (s->room->provider->sync)
		peers_brings(s);
	if (!s->sync.is_on)
		return;
	loop_io_remove(&s->sync.io);
	if (s->sync.look.pid > 0)
		child_reap(&s->sync.look);
	err_set(&why, E_CANCELLED,
		"the sandbox has ended meanwhile: what changed there comes back with its end");
	s->sync.why = why;
	if (next)
		sync_forget_next(s);
	sync_answer(s);
	if (next)
		sync_tell(next, &why);
}

/* Return 0 if it may begin, now or when the one that is being stopped has ended. */
static int sync_check(struct supervisor *s, struct cloche_err *err)
{
	if (!s->room || s->state != SUP_UP)
		return err_set(err, E_CANCELLED,
			"the sandbox is about to end: what changed there comes back with its end");
	if (!s->sync.is_on || (!s->sync.peer && !s->sync.next))
		return 0;
	err_set(err, E_BUSY, "the files of sandbox %s are being copied already", s->spec.id);
	err_hint(err, "try it again when that is done");
	return -E_BUSY;
}

static bool sync_is_pipe(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

/* Takes out. */
static void sync_begin(struct supervisor *s, struct peer *p, int out)
{
	struct cloche_err err = CLOCHE_ERR_INIT;

	if (sync_check(s, &err) < 0) {
		fd_close(out);
		sync_tell(p, &err);
		return;
	}
	s->sync = (struct syncing){.is_on = true, .peer = p, .out = out, .next_out = -1};
	if (loop_timer_in(s->loop, &s->sync.patience, SYNC_PATIENCE, sync_on_late) == 0) {
		sync_step(s);
		return;
	}
	err_nomem(&s->sync.why);
	sync_answer(s);
}

bool request_sync(struct peer *p, struct chan_frame *f)
{
	struct supervisor *s = p->sup;
	struct cloche_err err = CLOCHE_ERR_INIT;

	if (f->payload.n > 0 || f->fds_n != 1 || !sync_is_pipe(f->fds[0]))
		return false;
	if (sync_check(s, &err) < 0) {
		sync_tell(p, &err);
		return true;
	}
	p->syncs = true;
	if (s->sync.is_on) {
		s->sync.next = p;
		s->sync.next_out = TAKE_FD(f->fds[0]);
	} else {
		sync_begin(s, p, TAKE_FD(f->fds[0]));
	}
	return true;
}
