/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The event loop: one per process, one thread, level-triggered epoll, timers, deferred jobs.
 * Objects are embedded in their owners; the loop borrows them until they are removed. Any object
 * may be removed (and its owner freed) from any callback, including its own. */

#include "base/macro.h"
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct loop;

struct loop_io {
	struct loop *loop; /* NULL while not added */
	int fd;            /* borrowed */
	uint32_t events;   /* EPOLLIN, EPOLLOUT, EPOLLRDHUP; EPOLLERR and EPOLLHUP always */
	void (*cb)(struct loop_io *io, uint32_t events);
};

struct loop_timer {
	struct loop *loop; /* NULL while not armed */
	uint64_t at;       /* monotonic, microseconds */
	size_t slot;
	void (*cb)(struct loop_timer *timer);
};

struct loop_job {
	struct loop_job *next;
	bool queued;
	void (*cb)(struct loop_job *job);
};

/* Return NULL with errno set on failure. */
struct loop *loop_new(void);
struct loop *loop_free(struct loop *l);
DEFINE_CLEANUP(struct loop, loop_free)

/* For a program that serves many peers: while much is in progress, wake-ups of this program do not
 * interrupt the running process (SCHED_BATCH, sched(7)). When its turn comes more work has arrived,
 * and one iteration handles all of it. A policy that was set for the program from outside stays.
 * Call this before the program drops its rights. */
void loop_allow_batches(struct loop *l);
/* Set how much is in progress now. */
void loop_set_under_way(struct loop *l, unsigned n);

/* Run until loop_stop; return its argument, or -errno when epoll fails. */
int loop_run(struct loop *l);
void loop_stop(struct loop *l, int result);

/* Run one iteration, for a library that waits inside its caller's thread: wait for events, the
 * earliest timer or a signal, and handle everything that is due. Return 0 or -errno (-ECANCELED in
 * a job that was cancelled, job/job.h). */
_warn_unused_ int loop_turn(struct loop *l);

/* Return the monotonic time, taken once per iteration. */
uint64_t loop_now(const struct loop *l);

/* Start watching fd. Return 0 or -errno. */
_warn_unused_ int loop_io_add(struct loop *l, struct loop_io *io, int fd, uint32_t events,
	void (*cb)(struct loop_io *io, uint32_t events));
/* Change the watched events; do nothing if they are the same. */
void loop_io_set(struct loop_io *io, uint32_t events);
/* Stop watching; fine if it was not added. Call this before the descriptor is closed. */
void loop_io_remove(struct loop_io *io);

/* Arm (or move) a one-shot timer. Return 0 or -ENOMEM. */
_warn_unused_ int loop_timer_set(struct loop *l, struct loop_timer *t, uint64_t at_mono_usec,
	void (*cb)(struct loop_timer *timer));
/* The same, for a time from now. */
_warn_unused_ int loop_timer_in(
	struct loop *l, struct loop_timer *t, uint64_t usec, void (*cb)(struct loop_timer *timer));
void loop_timer_clear(struct loop_timer *t);

/* Run job->cb once at the end of this iteration. This is where objects are freed. */
void loop_defer(struct loop *l, struct loop_job *job, void (*cb)(struct loop_job *job));

/* Block the signals of mask in this thread and make a signalfd for them, non-blocking and
 * close-on-exec; watch it with loop_io_add. Return the descriptor or -errno. */
_warn_unused_ int loop_signalfd(const sigset_t *mask);
