/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a job is for the functions that wait (wait.c). The stacks are in job.c alone, so a program
 * without jobs does not need them: some C libraries lack what they are made of. */

#include "job/job.h"
#include <stdint.h>

struct cloche_job {
	pid_t process; /* that has started it: a child has only a copy of it */
	int epoll_fd;  /* the timer, and what is waited for */
	int timer_fd;
	uint64_t timer_at; /* when the timer fires at the latest; USEC_INFINITY: never */
	_Atomic bool cancelled;
	bool timer_fired; /* since it was set */
	unsigned holds;   /* of job_hold_cancel() */
	unsigned rest;    /* how many waits may find something ready before the job gives way */
	void (*call)(void *arg); /* for the caller of dispatch to call; NULL: none */
	void *call_arg;
	bool muted; /* the job is being freed: it calls nothing */
	void (*give_way)(struct cloche_job *job);
};

/* Return the job in which the caller runs, or NULL. A child that was forked in a job runs in none:
 * nobody dispatches it there. */
struct cloche_job *job_current(void);
/* Set it; return the one before. */
struct cloche_job *job_set_current(struct cloche_job *job);
/* Set the job's timer: it fires at a time of clock_mono_usec(), 0 is at once, USEC_INFINITY never.
 */
void job_set_timer(struct cloche_job *job, uint64_t at_usec);
