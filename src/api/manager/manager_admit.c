/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: callers that want to start a run wait in a queue. The first one checks again
 * and again whether there is a place, because a manager is not told that a sandbox has ended by
 * itself, or that another process's manager has given memory back. */
#include "api/manager/manager.h"
#include "base/clock.h"
#include "base/macro.h"
#include "manager/memory.h"

#include <time.h>
#include <utlist.h>

#define AGAIN_USEC (50 * USEC_PER_MSEC)
#define MIB ((uint64_t)1 << 20)

unsigned manager_count_running(cloche_manager *m)
{
	struct managed *s;
	unsigned n = 0;

	DL_FOREACH (m->sandboxes, s) {
		_cleanup_(sandbox_entry_donep) struct sandbox_entry e = SANDBOX_ENTRY_INIT;

		if (!s->over)
			s->over = sandbox_open(m->base, s->id, &e, NULL) < 0 ||
				  e.life != SANDBOX_LIVE;
		n += !s->over;
	}
	return n;
}

/* --- memory --- */

uint64_t manager_sum_promises(const cloche_manager *m)
{
	const struct managed *s;
	uint64_t sum = m->entered_memory;

	DL_FOREACH (m->sandboxes, s)
		sum += s->over ? 0 : s->memory;
	return sum;
}

void manager_settle_promises(cloche_manager *m)
{
	uint64_t others;

	(void)!owner_promise(m->base, &m->owner, manager_sum_promises(m), 0, &others, NULL);
}

static int promise(cloche_manager *m, uint64_t memory, struct cloche_err *err)
{
	uint64_t others, mine = manager_sum_promises(m);
	struct memory here;
	int r;

	memory_read(&here);
	if (memory > here.total) {
		err_set(err, E_LIMIT,
			"a sandbox may have %llu MiB, and all together may have %llu MiB here",
			(unsigned long long)(memory / MIB), (unsigned long long)(here.total / MIB));
		err_hint(err, "give the sandbox less memory");
		return -E_LIMIT;
	}
	if (memory > here.available)
		return err_set(err, E_BUSY,
			"a sandbox may have %llu MiB, and %llu MiB are available now",
			(unsigned long long)(memory / MIB),
			(unsigned long long)(here.available / MIB));
	r = owner_promise(m->base, &m->owner, mine + memory, here.total, &others, err);
	return r == -E_BUSY
		       ? err_set(err, E_BUSY,
				 "running sandboxes may have %llu MiB; %llu MiB more would exceed "
				 "the %llu MiB that all together may have here",
				 (unsigned long long)((mine + others) / MIB),
				 (unsigned long long)(memory / MIB),
				 (unsigned long long)(here.total / MIB))
		       : r;
}

/* --- the queue --- */

/* Try to admit the first in the queue. -E_BUSY if it has to wait; err says why. */
static int try_admit(cloche_manager *m, uint64_t memory, struct cloche_err *err)
{
	unsigned running = manager_count_running(m) + m->entered;
	int r = 0;

	if (m->max_runs > 0 && running >= m->max_runs)
		return err_set(
			err, E_BUSY, "no place is free: at most %u may run at a time", m->max_runs);
	/* Without a limit nothing is promised. */
	manager_settle_promises(m);
	if (memory > 0)
		r = promise(m, memory, err);
	if (r == 0) {
		m->entered++;
		m->entered_memory += memory;
	}
	return r;
}

void manager_wait_until(cloche_manager *m, uint64_t until)
{
	const uint64_t seconds = MIN(until / USEC_PER_SEC, (uint64_t)INT32_MAX);
	const struct timespec at = {
		.tv_sec = (time_t)seconds, .tv_nsec = (long)(until % USEC_PER_SEC * 1000)};

	pthread_cond_timedwait(&m->changed, &m->lock, &at);
}

static int wait_for_place(cloche_manager *m, struct waiting *w, uint64_t memory, uint64_t deadline,
	struct cloche_err *err)
{
	for (;;) {
		bool first = m->waiting == w;
		int r;

		if (m->closing)
			return err_set(err, E_CANCELLED, "the manager is being closed");
		r = first ? try_admit(m, memory, err)
			  : err_set(err, E_BUSY, "others have waited longer");
		if (r != -E_BUSY || clock_mono_usec() >= deadline)
			return r;
		manager_wait_until(
			m, first ? MIN(deadline, clock_mono_usec() + AGAIN_USEC) : deadline);
	}
}

int cloche_manager_enter(
	cloche_manager *m, const cloche_sandbox *sb, uint64_t wait_ms, cloche_err *err)
{
	uint64_t now = clock_mono_usec(), most = (UINT64_MAX - now) / USEC_PER_MSEC;
	uint64_t deadline = wait_ms > most ? UINT64_MAX : now + wait_ms * USEC_PER_MSEC;
	struct cloche_err why = CLOCHE_ERR_INIT;
	struct waiting w;
	int r;

	pthread_mutex_lock(&m->lock);
	DL_APPEND(m->waiting, &w);
	r = wait_for_place(m, &w, sb->limits.memory_bytes, deadline, &why);
	DL_DELETE(m->waiting, &w);
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
	if (r < 0 && err)
		*err = why;
	return r;
}

void cloche_manager_leave(cloche_manager *m, const cloche_sandbox *sb)
{
	pthread_mutex_lock(&m->lock);
	m->entered--;
	m->entered_memory -= sb->limits.memory_bytes;
	manager_settle_promises(m);
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
}
