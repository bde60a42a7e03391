/* SPDX-License-Identifier: Apache-2.0 */
/* Cleanups: regularly in a thread, when the process exits, and on request. */
#include "api/manager/manager.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/macro.h"
#include "manager/cleanup.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include <utlist.h>

static void tell_ended(void *user, const char *id)
{
	manager_tell(user, "sandbox %s was ended: its manager had died, and nothing ran in it", id);
}

int cloche_manager_collect(cloche_manager *m, cloche_err *err)
{
	struct cloche_err why = CLOCHE_ERR_INIT;
	/* Making the list ends orphans. */
	int r = instance_list(false, NULL, tell_ended, m, &why);
	int also = manager_destroy_doomed(m, r < 0 ? NULL : &why);

	r = r < 0 ? r : also;
	pthread_mutex_lock(&m->lock);
	m->collected_at = clock_mono_usec();
	m->collected_us = clock_real_usec();
	(void)manager_count_running(m);
	if (r < 0)
		snprintf(m->error, sizeof(m->error), "%s", why.message);
	manager_changed(m);
	pthread_mutex_unlock(&m->lock);
	manager_settle_promises(m);
	if (r < 0 && err)
		*err = why;
	return r;
}

/* --- regularly --- */

/* Return the time of the next cleanup; UINT64_MAX: never. */
static uint64_t due_at(const cloche_manager *m)
{
	uint64_t most = (UINT64_MAX - m->collected_at) / USEC_PER_MSEC;

	return m->interval_ms == 0 || m->interval_ms > most
		       ? UINT64_MAX
		       : m->collected_at + m->interval_ms * USEC_PER_MSEC;
}

/* With the lock held: wait until something changes, or until this time (clock_mono_usec()). */
static void wait_until(cloche_manager *m, uint64_t until)
{
	const uint64_t seconds = MIN(until / USEC_PER_SEC, (uint64_t)INT32_MAX);
	const struct timespec at = {
		.tv_sec = (time_t)seconds, .tv_nsec = (long)(until % USEC_PER_SEC * 1000)};

	pthread_cond_timedwait(&m->changed, &m->lock, &at);
}

static void *run_thread(void *arg)
{
	cloche_manager *m = arg;
	const uint64_t one = 1;

	pthread_mutex_lock(&m->lock);
	while (!m->closing) {
		uint64_t due = due_at(m);

		if (clock_mono_usec() < due) {
			wait_until(m, due);
			continue;
		}
		pthread_mutex_unlock(&m->lock);
		/* A failure is shown in the status, and tried again. */
		(void)!cloche_manager_collect(m, NULL);
		pthread_mutex_lock(&m->lock);
	}
	pthread_mutex_unlock(&m->lock);
	(void)!write(m->thread_fd, &one, sizeof(one));
	return NULL;
}

int manager_start_thread(cloche_manager *m, struct cloche_err *err)
{
	sigset_t all, before;
	int r;

	if (m->has_thread || m->interval_ms == 0)
		return 0;
	if (m->thread_fd < 0)
		m->thread_fd = fd_lift(eventfd(0, EFD_CLOEXEC));
	if (m->thread_fd < 0)
		return err_sys(err, errno, "make an eventfd");
	/* The thread must not get the caller's signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	r = pthread_create(&m->thread, NULL, run_thread, m);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	m->has_thread = r == 0;
	return r == 0 ? 0 : err_sys(err, r, "start a thread");
}

/* --- at exit --- */

static pthread_mutex_t exit_lock = PTHREAD_MUTEX_INITIALIZER;
static cloche_manager *at_exit; /* managers that have a cleanup at exit */
static bool is_registered;

/* Other threads may still run, but cannot make more sandboxes. */
static void end_all(cloche_manager *m)
{
	pthread_mutex_lock(&m->lock);
	m->closing = true;
	manager_changed(m);
	pthread_mutex_unlock(&m->lock);
	(void)!cloche_manager_cleanup(m, NULL);
	pthread_mutex_lock(&m->lock);
	owner_done(m->base, &m->owner);
	pthread_mutex_unlock(&m->lock);
}

static void clean_up_all(void)
{
	cloche_manager *list, *m;

	pthread_mutex_lock(&exit_lock);
	list = at_exit;
	at_exit = NULL;
	LL_FOREACH2(list, m, next_at_exit)
	m->at_exit = false;
	pthread_mutex_unlock(&exit_lock);
	LL_FOREACH2(list, m, next_at_exit)
	{
		/* A forked child has only copies of the managers. */
		if (m->pid == getpid())
			end_all(m);
	}
}

int manager_set_at_exit(cloche_manager *m, bool wanted, struct cloche_err *err)
{
	int r = 0;

	pthread_mutex_lock(&exit_lock);
	if (wanted && !is_registered)
		r = atexit(clean_up_all) == 0 ? 0 : err_nomem(err);
	is_registered = is_registered || (wanted && r == 0);
	if (r == 0 && wanted != m->at_exit) {
		if (wanted)
			LL_PREPEND2(at_exit, m, next_at_exit);
		else
			LL_DELETE2(at_exit, m, next_at_exit);
		m->at_exit = wanted;
	}
	pthread_mutex_unlock(&exit_lock);
	return r;
}

/* --- the manager that the process shares --- */

static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static cloche_manager *shared;

int cloche_manager_shared(cloche_manager **ret, cloche_err *err)
{
	cloche_manager *m = NULL;
	int r;

	pthread_mutex_lock(&shared_lock);
	*ret = shared;
	pthread_mutex_unlock(&shared_lock);
	if (*ret)
		return 0;
	/* Without the lock, as this may wait. */
	r = cloche_manager_open(NULL, NULL, &m, err);
	if (r == 0)
		r = manager_set_at_exit(m, true, err);
	pthread_mutex_lock(&shared_lock);
	if (r == 0 && !shared)
		shared = TAKE_PTR(m);
	*ret = shared;
	pthread_mutex_unlock(&shared_lock);
	/* One that came too late, or failed, has no sandboxes. */
	cloche_manager_close(m);
	return r;
}
