/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: each iteration waits for events or the earliest timer, dispatches the batch,
 * then due timers, then deferred jobs. Removing a source blanks its entry in the batch that is
 * being dispatched, so that a callback never sees a dead object. Timers are a binary heap by time.
 */
#include "loop/loop.h"
#include "base/clock.h"
#include "base/fd.h"
#include "job/job.h"

#include <errno.h>
#include <sched.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BATCH = 64 };
/* Batches begin with this much in progress at once, and end when it was less for this long. */
enum { BATCHES_FROM = 8 };
#define BATCHES_USEC (20 * USEC_PER_MSEC)

struct loop {
	int epfd;
	bool stopped;
	bool may_batch, batches;
	unsigned peak; /* of the work in progress since the timer was set */
	struct loop_timer calm;
	int result;
	uint64_t now;
	struct epoll_event batch[BATCH];
	int batch_n;
	struct loop_timer **heap;
	size_t heap_n, heap_cap;
	struct loop_job *jobs, **jobs_tail;
};

struct loop *loop_new(void)
{
	_cleanup_(loop_freep) struct loop *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->epfd = fd_lift(epoll_create1(EPOLL_CLOEXEC));
	if (l->epfd < 0) {
		errno = -l->epfd;
		return NULL;
	}
	l->jobs_tail = &l->jobs;
	l->now = clock_mono_usec();
	return TAKE_PTR(l);
}

struct loop *loop_free(struct loop *l)
{
	if (l) {
		fd_close(l->epfd);
		free(l->heap);
		free(l);
	}
	return NULL;
}

uint64_t loop_now(const struct loop *l)
{
	return l->now;
}

void loop_stop(struct loop *l, int result)
{
	l->stopped = true;
	l->result = result;
}

int loop_io_add(struct loop *l, struct loop_io *io, int fd, uint32_t events,
	void (*cb)(struct loop_io *io, uint32_t events))
{
	struct epoll_event ev = {.events = events, .data.ptr = io};

	if (epoll_ctl(l->epfd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return -errno;
	*io = (struct loop_io){.loop = l, .fd = fd, .events = events, .cb = cb};
	return 0;
}

void loop_io_set(struct loop_io *io, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = io};

	if (!io->loop || io->events == events)
		return;
	/* This cannot fail for a descriptor in the set: it allocates no memory. */
	(void)epoll_ctl(io->loop->epfd, EPOLL_CTL_MOD, io->fd, &ev);
	io->events = events;
}

void loop_io_remove(struct loop_io *io)
{
	struct loop *l = io->loop;

	if (!l)
		return;
	(void)epoll_ctl(l->epfd, EPOLL_CTL_DEL, io->fd, NULL);
	for (int i = 0; i < l->batch_n; i++)
		if (l->batch[i].data.ptr == io)
			l->batch[i].data.ptr = NULL;
	io->loop = NULL;
}

static void heap_put(struct loop *l, size_t slot, struct loop_timer *t)
{
	l->heap[slot] = t;
	t->slot = slot;
}

static void heap_up(struct loop *l, size_t slot)
{
	struct loop_timer *t = l->heap[slot];

	while (slot > 0 && l->heap[(slot - 1) / 2]->at > t->at) {
		heap_put(l, slot, l->heap[(slot - 1) / 2]);
		slot = (slot - 1) / 2;
	}
	heap_put(l, slot, t);
}

static void heap_down(struct loop *l, size_t slot)
{
	struct loop_timer *t = l->heap[slot];

	for (;;) {
		size_t child = slot * 2 + 1;

		if (child >= l->heap_n)
			break;
		if (child + 1 < l->heap_n && l->heap[child + 1]->at < l->heap[child]->at)
			child++;
		if (l->heap[child]->at >= t->at)
			break;
		heap_put(l, slot, l->heap[child]);
		slot = child;
	}
	heap_put(l, slot, t);
}

int loop_timer_set(struct loop *l, struct loop_timer *t, uint64_t at_mono_usec,
	void (*cb)(struct loop_timer *timer))
{
	struct loop_timer **heap;

	if (t->loop) {
		bool later = at_mono_usec > t->at;

		t->at = at_mono_usec;
		t->cb = cb;
		if (later)
			heap_down(l, t->slot);
		else
			heap_up(l, t->slot);
		return 0;
	}
	heap = array_room(l->heap, l->heap_n, &l->heap_cap, sizeof(struct loop_timer *));
	if (!heap)
		return -ENOMEM;
	l->heap = heap;
	*t = (struct loop_timer){.loop = l, .at = at_mono_usec, .cb = cb};
	heap_put(l, l->heap_n++, t);
	heap_up(l, t->slot);
	return 0;
}

int loop_timer_in(
	struct loop *l, struct loop_timer *t, uint64_t usec, void (*cb)(struct loop_timer *timer))
{
	return loop_timer_set(l, t, clock_mono_usec() + usec, cb);
}

void loop_timer_clear(struct loop_timer *t)
{
	struct loop *l = t->loop;
	struct loop_timer *last;
	size_t slot = t->slot;

	if (!l)
		return;
	t->loop = NULL;
	last = l->heap[--l->heap_n];
	if (last == t)
		return;
	heap_put(l, slot, last);
	heap_up(l, slot);
	heap_down(l, last->slot);
}

void loop_defer(struct loop *l, struct loop_job *job, void (*cb)(struct loop_job *job))
{
	if (job->queued)
		return;
	*job = (struct loop_job){.queued = true, .cb = cb};
	*l->jobs_tail = job;
	l->jobs_tail = &job->next;
}

static int wait_ms(const struct loop *l)
{
	uint64_t now, us;

	if (l->jobs)
		return 0;
	if (l->heap_n == 0)
		return -1;
	now = clock_mono_usec();
	if (l->heap[0]->at <= now)
		return 0;
	us = l->heap[0]->at - now;
	return us > 60 * USEC_PER_SEC ? 60000 : (int)((us + 999) / 1000);
}

static void run_timers(struct loop *l)
{
	while (l->heap_n > 0 && l->heap[0]->at <= l->now) {
		struct loop_timer *t = l->heap[0];

		loop_timer_clear(t);
		t->cb(t);
	}
}

static void run_jobs(struct loop *l)
{
	struct loop_job *job = l->jobs;

	l->jobs = NULL;
	l->jobs_tail = &l->jobs;
	while (job) {
		struct loop_job *next = job->next;

		job->queued = false;
		job->cb(job);
		job = next;
	}
}

void loop_allow_batches(struct loop *l)
{
	/* Use the system call numbers, as musl's functions always fail. */
	l->may_batch = syscall(SYS_sched_getscheduler, 0) == SCHED_OTHER;
}

static void set_batches(struct loop *l, bool batches)
{
	l->batches = batches;
	(void)syscall(SYS_sched_setscheduler, 0, batches ? SCHED_BATCH : SCHED_OTHER,
		&(struct sched_param){0});
}

static void on_calm(struct loop_timer *timer)
{
	struct loop *l = container_of(timer, struct loop, calm);

	if (l->peak < BATCHES_FROM ||
		loop_timer_set(l, &l->calm, l->now + BATCHES_USEC, on_calm) < 0)
		set_batches(l, false);
	l->peak = 0;
}

void loop_set_under_way(struct loop *l, unsigned n)
{
	l->peak = MAX(l->peak, n);
	if (l->may_batch && !l->batches && n >= BATCHES_FROM &&
		loop_timer_set(l, &l->calm, l->now + BATCHES_USEC, on_calm) == 0)
		set_batches(l, true);
}

int loop_turn(struct loop *l)
{
	int timeout = wait_ms(l), n;

	if (job_is_here()) {
		n = job_wait_fd(l->epfd, POLLIN, timeout);
		if (n < 0)
			return n;
		timeout = 0;
	}
	n = epoll_wait(l->epfd, l->batch, BATCH, timeout);
	if (n < 0 && errno != EINTR)
		return -errno;
	l->now = clock_mono_usec();
	l->batch_n = MAX(n, 0);
	for (int i = 0; i < l->batch_n; i++) {
		struct loop_io *io = l->batch[i].data.ptr;

		if (io)
			io->cb(io, l->batch[i].events);
	}
	l->batch_n = 0;
	run_timers(l);
	run_jobs(l);
	return 0;
}

int loop_run(struct loop *l)
{
	while (!l->stopped) {
		int r = loop_turn(l);

		if (r < 0)
			return r;
	}
	l->stopped = false;
	return l->result;
}

int loop_signalfd(const sigset_t *mask)
{
	int fd;

	if (sigprocmask(SIG_BLOCK, mask, NULL) < 0)
		return -errno;
	fd = signalfd(-1, mask, SFD_NONBLOCK | SFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}
