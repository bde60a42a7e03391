/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a job runs on a stack of its own, and the thread changes between that stack
 * and the one of cloche_job_dispatch()'s caller (makecontext(3)). It changes back when the job
 * waits (wait.c), when it wants a callback called, and at its end. Each stack has its own signal
 * mask, which the change keeps apart.
 *
 * A page without rights lies below the stack, and what is compiled with -fstack-clash-protection
 * cannot jump over it. */
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "job/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
enum { STACK_BYTES = 8 << 20 }; /* its frames are several times as large */
#else
/* The deepest that was found is JSON of a hostile agent that nests 2,048 times, as jansson permits:
 * to write it again takes 300 KiB on x86-64. Memory is taken only by pages that were used. */
enum { STACK_BYTES = 1 << 20 };
#endif
enum { WAITS_A_DISPATCH = 32 };

struct job {
	struct cloche_job base;
	cloche_job_fn fn;
	void *user;
	char *stack; /* with the page below it; NULL once the job has ended */
	size_t guard, mapped;
	ucontext_t own, host;
	/* The stacks as AddressSanitizer knows them. */
	void *own_fake, *host_fake;
	const void *host_stack;
	size_t host_bytes;
	bool began, ended, under_way;
	bool freed; /* by a callback of its own */
	int result;
	struct cloche_err err;
};

static struct job *job_of(struct cloche_job *job)
{
	return container_of(job, struct job, base);
}

/* --- the two stacks --- */

static void job_leave(struct job *j)
{
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_start_switch_fiber(
		j->ended ? NULL : &j->own_fake, j->host_stack, j->host_bytes);
#endif
	swapcontext(&j->own, &j->host);
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_finish_switch_fiber(j->own_fake, &j->host_stack, &j->host_bytes);
#endif
}

static void job_enter(struct job *j)
{
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_start_switch_fiber(&j->host_fake, j->stack + j->guard, STACK_BYTES);
#endif
	swapcontext(&j->host, &j->own);
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_finish_switch_fiber(j->host_fake, NULL, NULL);
#endif
}

static void job_give_way(struct cloche_job *base)
{
	job_leave(job_of(base));
}

/* makecontext() passes nothing but ints. */
static void job_main(unsigned high, unsigned low)
{
	struct job *j = (struct job *)((uintptr_t)high << 32 | low);

#ifdef __SANITIZE_ADDRESS__
	__sanitizer_finish_switch_fiber(NULL, &j->host_stack, &j->host_bytes);
#endif
	j->result = MIN(j->fn(j->user, &j->err), 0);
	j->ended = true;
	job_leave(j);
}

static int job_make_stack(struct job *j)
{
	j->guard = (size_t)sysconf(_SC_PAGESIZE);
	j->mapped = j->guard + STACK_BYTES;
	j->stack = mmap(NULL, j->mapped, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
	if (j->stack == MAP_FAILED) {
		j->stack = NULL;
		return -errno;
	}
	if (mprotect(j->stack, j->guard, PROT_NONE) < 0 || getcontext(&j->own) < 0)
		return -errno;
	j->own.uc_stack.ss_sp = j->stack + j->guard;
	j->own.uc_stack.ss_size = STACK_BYTES;
	j->own.uc_link = NULL;
	makecontext(&j->own, (void (*)(void))job_main, 2, (unsigned)((uintptr_t)j >> 32),
		(unsigned)(uintptr_t)j);
	return 0;
}

static void job_drop_stack(struct job *j)
{
	if (j->stack)
		munmap(j->stack, j->mapped);
	j->stack = NULL;
}

/* --- the public functions --- */

/* Free one that is not in the middle of its function. */
static void job_done(struct job *j)
{
	job_drop_stack(j);
	fd_close(j->base.epoll_fd);
	fd_close(j->base.timer_fd);
	free(j);
}
DEFINE_CLEANUP(struct job, job_done)

static int job_open(struct cloche_job *job)
{
	struct epoll_event ev = {.events = EPOLLIN};

	job->epoll_fd = fd_lift(epoll_create1(EPOLL_CLOEXEC));
	job->timer_fd = fd_lift(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
	if (job->epoll_fd < 0 || job->timer_fd < 0)
		return MIN(job->epoll_fd, job->timer_fd);
	if (epoll_ctl(job->epoll_fd, EPOLL_CTL_ADD, job->timer_fd, &ev) < 0)
		return -errno;
	job_set_timer(job, 0);
	return 0;
}

int cloche_job_start(cloche_job_fn fn, void *user, cloche_job **ret, cloche_err *err)
{
	_cleanup_(job_donep) struct job *j = calloc(1, sizeof(*j));
	int r;

	if (!j)
		return err_nomem(err);
	j->base.epoll_fd = j->base.timer_fd = -1;
	j->base.give_way = job_give_way;
	j->fn = fn;
	j->user = user;
	j->base.process = getpid();
	r = job_open(&j->base);
	if (r == 0)
		r = job_make_stack(j);
	if (r < 0)
		return err_sys(err, -r, "make a job");
	*ret = &TAKE_PTR(j)->base;
	return 0;
}

int cloche_job_fd(const cloche_job *job)
{
	return job->epoll_fd;
}

/* Whether something that the job waits for may have come. */
static bool job_is_due(struct cloche_job *job)
{
	struct epoll_event events[16];
	int n = epoll_wait(job->epoll_fd, events, ARRAY_SIZE(events), 0);

	/* The timer alone has no pointer. */
	for (int i = 0; i < n; i++)
		job->timer_fired |= events[i].data.ptr == NULL;
	return n != 0;
}

/* The timer leaves the set, as whoever cancels the job later makes it fire. */
static void job_end(struct job *j)
{
	job_drop_stack(j);
	(void)epoll_ctl(j->base.epoll_fd, EPOLL_CTL_DEL, j->base.timer_fd, NULL);
}

/* Let the job run until it waits or has ended. */
static void job_advance(struct job *j)
{
	do {
		struct cloche_job *outer = job_set_current(&j->base);

		j->base.call = NULL;
		job_enter(j);
		job_set_current(outer);
		if (j->base.call)
			j->base.call(j->base.call_arg);
	} while (j->base.call);
	if (j->ended)
		job_end(j);
}

int cloche_job_dispatch(cloche_job *job, cloche_err *err)
{
	struct job *j = job_of(job);

	if (job->process != getpid())
		return err_set(err, E_USAGE, "a job cannot be dispatched in another process");
	if (j->under_way)
		return err_set(err, E_USAGE, "a job cannot be dispatched in a callback of its own");
	if (!j->ended && !j->began && atomic_load(&job->cancelled)) {
		j->ended = true;
		j->result = err_set(&j->err, E_CANCELLED, "cancelled before it began");
		job_end(j);
	} else if (!j->ended && job_is_due(job)) {
		j->began = j->under_way = true;
		job->rest = WAITS_A_DISPATCH;
		job_advance(j);
		j->under_way = false;
		if (j->freed) {
			j->freed = false;
			cloche_job_free(job);
			return err_set(err, E_CANCELLED, "freed by a callback of its own");
		}
	}
	if (!j->ended)
		return 1;
	if (err && j->result < 0)
		*err = j->err;
	return j->result;
}

void cloche_job_cancel(cloche_job *job)
{
	const struct itimerspec now = {.it_value = {.tv_nsec = 1}};
	int saved = errno;

	if (job->process != getpid())
		return;
	atomic_store(&job->cancelled, true);
	(void)timerfd_settime(job->timer_fd, TFD_TIMER_ABSTIME, &now, NULL);
	errno = saved;
}

void cloche_job_free(cloche_job *job)
{
	if (!job)
		return;
	/* Its descriptors are shared: to take anything out of its set would stop the job there. */
	if (job->process != getpid()) {
		job_done(job_of(job));
		return;
	}
	job->muted = true;
	cloche_job_cancel(job);
	if (job_of(job)->under_way) {
		job_of(job)->freed = true;
		return;
	}
	while (cloche_job_dispatch(job, NULL) > 0) {
		/* A cancelled job around this one must not leave it half done, either. */
		job_hold_cancel();
		(void)!job_wait_fd(job->epoll_fd, POLLIN, -1);
		job_release_cancel();
	}
	job_done(job_of(job));
}
