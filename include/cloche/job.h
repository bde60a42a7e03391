/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_JOB_H
#define CLOCHE_JOB_H
/* Jobs: calls of this library that are under way while their caller does something else.
 *
 * A job runs a function of the caller's, which may call any function of the library that blocks.
 * Wherever that function would wait, the job gives way instead, and cloche_job_dispatch() returns.
 * So one thread with one poll loop drives any number of jobs:
 *
 *   cloche_job_start(fn, user, &job, &err);
 *   loop: poll cloche_job_fd(job) for POLLIN; when it is readable, call cloche_job_dispatch(job)
 *   cloche_job_free(job);
 *
 * Each job has a stack of its own (1 MiB, of which only what is used takes memory) and two
 * descriptors. Callbacks that the caller has set for a run, a task, files and so on are not called
 * on that stack, but on the stack of cloche_job_dispatch()'s caller; only fn itself runs on it, so
 * fn must not enter the interpreter of a language that checks where its stack is. A callback must
 * return: it must not leave by longjmp() or an exception.
 *
 * While a thread has jobs under way, it should call functions that block in jobs only. Elsewhere,
 * and that is in a callback, too, such a function blocks the thread; and it blocks it for ever if
 * it waits for a lock that one of these jobs holds, such as that of a sandbox's full record.
 *
 * All calls for one job belong to one thread, except cloche_job_cancel(). In a child that was
 * forked without exec, a job of its parent can only be freed: that leaves the parent's alone. If a
 * job's function forks, it goes on in the child as outside of a job. */

#include <stdbool.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cloche_job cloche_job;

/* What a job does. Return 0 or a negated error code, with *err set (err is never NULL). */
typedef int (*cloche_job_fn)(void *user, cloche_err *err);

/* Create a job that will call fn(user, err). It begins with the first cloche_job_dispatch(), for
 * which the job's descriptor is readable at once. user is borrowed until the job has ended. The
 * job begins with the signal mask of the thread that creates it. */
CLOCHE_API int cloche_job_start(cloche_job_fn fn, void *user, cloche_job **ret, cloche_err *err);

/* Return a descriptor that is readable when the job has something to do, borrowed until the job is
 * freed. It stands for everything that the job waits for, deadlines too, so the caller needs no
 * timeout. It can be put into another set (poll, epoll, an event loop of a language). Once the job
 * has ended it is never readable again: what cloche_job_dispatch() returns tells of the end. */
CLOCHE_API int cloche_job_fd(const cloche_job *job);

/* Let the job go on as far as it can without waiting, and call the callbacks that are due. A job
 * that always has something to do gives way now and then. Return 1 if the job goes on, or, once it
 * has ended, what its function returned. Not from a callback of the same job. */
CLOCHE_API int cloche_job_dispatch(cloche_job *job, cloche_err *err);

/* Cancel the job: whatever it waits for, and whatever it will wait for, fails with
 * CLOCHE_E_CANCELLED. It ends in the cloche_job_dispatch() calls that follow. What its function has
 * not begun yet is not begun. May be called from any thread and from signal handlers, until the job
 * is freed. */
CLOCHE_API void cloche_job_cancel(cloche_job *job);

/* Free the job; NULL is fine. A job that has not ended is cancelled first, and this waits for its
 * end, which comes soon; no callback is called any more. In a callback of the same job, this
 * happens when the cloche_job_dispatch() under way is about to return; it returns
 * CLOCHE_E_CANCELLED. */
CLOCHE_API void cloche_job_free(cloche_job *job);

#ifdef __cplusplus
}
#endif
#endif
