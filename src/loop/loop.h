/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The event loop: one a process, one thread, level-triggered epoll, timers, deferred jobs.
 * Objects are embedded in their owners; the loop borrows them until they are removed. Any object
 * may be removed (and its owner freed) from any callback, its own included. */

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

/* NULL with errno set on failure. */
struct loop *loop_new(void);
struct loop *loop_free(struct loop *l);
DEFINE_CLEANUP(struct loop, loop_free)

/* For a program that serves many: while much is under way, being woken does not interrupt who runs
 * (SCHED_BATCH, sched(7)). When its turn comes more is there, and one iteration serves it all.
 * Another policy that somebody chose for the program stays. Call this before the program narrows
 * itself. */
void loop_allow_batches(struct loop *l);
/* Says how much is under way now. */
void loop_set_under_way(struct loop *l, unsigned n);

/* Runs until loop_stop; returns its argument, or -errno when epoll fails. */
int loop_run(struct loop *l);
void loop_stop(struct loop *l, int result);

/* One iteration alone, for a library that waits inside its caller's thread: waits for events, for
 * the earliest timer or for a signal, and handles what is due. Returns 0 or -errno. */
_warn_unused_ int loop_turn(struct loop *l);

/* Monotonic time, taken once an iteration. */
uint64_t loop_now(const struct loop *l);

/* Starts watching fd. Returns 0 or -errno. */
_warn_unused_ int loop_io_add(struct loop *l, struct loop_io *io, int fd, uint32_t events,
	void (*cb)(struct loop_io *io, uint32_t events));
/* Changes what is watched; nothing is done if it is the same. */
void loop_io_set(struct loop_io *io, uint32_t events);
/* Stops watching; fine if it was not added. Call it before the descriptor is closed. */
void loop_io_remove(struct loop_io *io);

/* Arms (or moves) a one-shot timer. Returns 0 or -ENOMEM. */
_warn_unused_ int loop_timer_set(struct loop *l, struct loop_timer *t, uint64_t at_mono_usec,
	void (*cb)(struct loop_timer *timer));
void loop_timer_clear(struct loop_timer *t);

/* Runs job->cb once at the end of this iteration: where objects die. */
void loop_defer(struct loop *l, struct loop_job *job, void (*cb)(struct loop_job *job));

/* Blocks the signals of mask in this thread and makes a signalfd for them, non-blocking and
 * close-on-exec: watch it with loop_io_add. Returns the descriptor or -errno. */
_warn_unused_ int loop_signalfd(const sigset_t *mask);
