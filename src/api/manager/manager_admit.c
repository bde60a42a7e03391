/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: callers that want to start a run wait in a queue. Each has an eventfd, by
 * which this manager's other callers tell of a place, of memory that is given back, or that it is
 * the first now. The first one also watches what nobody tells: that sandboxes end by themselves
 * (their supervisors' pidfds), that other processes' managers give memory back (inotify on their
 * files), and that sandboxes without a manager end. First it watches, then it looks, so that
 * nothing is missed. The manager's lock is never held while somebody waits: one thread may have
 * many callers in the queue, as jobs. */
#include "api/manager/manager.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/macro.h"
#include "job/job.h"
#include "manager/memory.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utlist.h>

/* Memory that other programs use is the one thing that no descriptor tells of: look again. The same
 * if something cannot be watched, because the user has too many watches or the process too many
 * descriptors. */
#define AGAIN_USEC (50 * USEC_PER_MSEC)
#define MIB ((uint64_t)1 << 20)

void managed_free(struct managed *s)
{
	fd_close(s->end);
	free(s);
}

static bool has_ended(const cloche_manager *m, const struct managed *s)
{
	_cleanup_(sandbox_entry_donep) struct sandbox_entry e = SANDBOX_ENTRY_INIT;
	int r;

	/* Whoever removes what a dead supervisor left has its lock. */
	if (s->end >= 0 && job_is_ready(s->end, POLLIN))
		return true;
	r = sandbox_open(m->base, s->id, &e, NULL);
	return r == -E_NOT_FOUND || (r == 0 && e.life != SANDBOX_LIVE);
}

unsigned manager_count_running(cloche_manager *m)
{
	struct managed *s;
	unsigned n = 0;

	DL_FOREACH (m->sandboxes, s) {
		s->over = s->over || has_ended(m, s);
		if (s->over)
			s->end = fd_close(s->end);
		n += !s->over;
	}
	return n;
}

/* --- memory --- */

uint64_t manager_memory(const cloche_sandbox *sb)
{
	return sandbox_is_elsewhere(sb) ? 0 : sb->limits.memory_bytes;
}

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
	_cleanup_fd_ int promises = -1;
	uint64_t others;

	/* Others wait for it, whatever becomes of this job. */
	job_hold_cancel();
	promises = owner_lock(m->base, NULL);
	job_release_cancel();
	if (promises < 0)
		return;
	pthread_mutex_lock(&m->lock);
	(void)!owner_promise(
		m->base, promises, &m->owner, manager_sum_promises(m), 0, &others, NULL);
	pthread_mutex_unlock(&m->lock);
}

static int promise(
	cloche_manager *m, int promises, uint64_t memory, bool *ret_blind, struct cloche_err *err)
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
	*ret_blind = memory > here.available;
	if (*ret_blind)
		return err_set(err, E_BUSY,
			"a sandbox may have %llu MiB, and %llu MiB are available now",
			(unsigned long long)(memory / MIB),
			(unsigned long long)(here.available / MIB));
	r = owner_promise(m->base, promises, &m->owner, mine + memory, here.total, &others, err);
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
static int try_admit(
	cloche_manager *m, int promises, uint64_t memory, bool *ret_blind, struct cloche_err *err)
{
	unsigned running = manager_count_running(m) + m->entered;
	uint64_t others;
	int r = 0;

	if (m->max_runs > 0 && running >= m->max_runs)
		return err_set(
			err, E_BUSY, "no place is free: at most %u may run at a time", m->max_runs);
	/* What has ended may have been the last of a promise. */
	(void)!owner_promise(
		m->base, promises, &m->owner, manager_sum_promises(m), 0, &others, NULL);
	/* Without a limit nothing is promised. */
	if (memory > 0)
		r = promise(m, promises, memory, ret_blind, err);
	if (r == 0) {
		m->entered++;
		m->entered_memory += memory;
	}
	return r;
}

static void waiting_done(struct waiting *w)
{
	while (w->orphans_n > 0)
		fd_close(w->orphans[--w->orphans_n]);
	fd_close(w->wake);
	fd_close(w->ends);
	fd_close(w->promises);
}

void manager_changed(cloche_manager *m)
{
	const uint64_t one = 1;
	const struct waiting *w;

	pthread_cond_broadcast(&m->changed);
	DL_FOREACH (m->waiting, w) {
		if (w->wake >= 0)
			(void)!write(w->wake, &one, sizeof(one));
		if (!m->closing)
			break;
	}
}

/* Watch a descriptor for as long as it is open. */
static bool watch_end(const struct waiting *w, int fd)
{
	struct epoll_event e = {.events = EPOLLIN};

	return fd >= 0 && (epoll_ctl(w->ends, EPOLL_CTL_ADD, fd, &e) == 0 || errno == EEXIST);
}

static void watch_orphan(const char *id, uint64_t limit, void *user)
{
	const cloche_manager *m = user;
	struct waiting *w = m->waiting;
	int fd = w->orphans_n < ARRAY_SIZE(w->orphans) ? sandbox_watch(m->base, id) : -1;

	if (watch_end(w, fd))
		w->orphans[w->orphans_n++] = fd;
	else
		fd_close(fd);
	w->blind |= fd < 0;
}

/* With the lock held. The first in the queue watches all that it may wait for. */
static void watch_all(cloche_manager *m, bool memory)
{
	struct waiting *w = m->waiting;
	struct managed *s;

	w->blind = false;
	if (w->ends < 0)
		w->ends = epoll_create1(EPOLL_CLOEXEC);
	DL_FOREACH (m->sandboxes, s) {
		if (s->over)
			continue;
		if (s->end < 0)
			s->end = sandbox_watch(m->base, s->id);
		w->blind |= !watch_end(w, s->end);
	}
	while (w->orphans_n > 0)
		fd_close(w->orphans[--w->orphans_n]);
	if (!memory)
		return;
	if (w->promises < 0)
		w->promises = owner_watch(m->base, NULL);
	w->blind |= w->promises < 0 || owner_each_orphan(m->base, watch_orphan, m, NULL) < 0;
}

/* With the lock held: whether it may start, has to wait (-E_BUSY), or never may. */
static int look(
	cloche_manager *m, struct waiting *w, int promises, uint64_t memory, struct cloche_err *err)
{
	bool blind = false;
	int r;

	if (m->closing)
		return err_set(err, E_CANCELLED, "the manager is being closed");
	if (m->waiting != w || promises < 0)
		return err_set(err, E_BUSY, "others have waited longer");
	if (w->wake >= 0)
		watch_all(m, memory > 0);
	r = try_admit(m, promises, memory, &blind, err);
	w->blind |= blind;
	return r;
}

/* Wait until something has changed, or until this time. */
static int wait_for_change(
	const cloche_manager *m, struct waiting *w, uint64_t until, struct cloche_err *err)
{
	struct pollfd p[] = {{.fd = w->wake, .events = POLLIN}, {.fd = w->ends, .events = POLLIN},
		{.fd = w->promises, .events = POLLIN}};
	uint64_t now = clock_mono_usec(), count;
	int ms = -1, r;

	if (w->blind)
		until = MIN(until, now + AGAIN_USEC);
	if (until <= now)
		return 0;
	if (until - now < INT32_MAX * USEC_PER_MSEC)
		ms = (int)((until - now + USEC_PER_MSEC - 1) / USEC_PER_MSEC);
	r = job_wait(p, ARRAY_SIZE(p), ms);
	if (r < 0)
		return err_sys(err, -r, "wait for a place");
	(void)!read(w->wake, &count, sizeof(count));
	if (w->promises >= 0)
		owner_watch_take(m->base, w->promises);
	return 0;
}

/* The first time it only looks; before it waits, it begins to watch and looks again. */
static int wait_for_place(cloche_manager *m, struct waiting *w, uint64_t memory, uint64_t deadline,
	struct cloche_err *err)
{
	for (bool watched = false;; watched = true) {
		_cleanup_fd_ int promises = -1;
		bool first;
		int r;

		pthread_mutex_lock(&m->lock);
		first = m->waiting == w;
		pthread_mutex_unlock(&m->lock);
		if (first && (promises = owner_lock(m->base, err)) < 0)
			return promises;
		pthread_mutex_lock(&m->lock);
		r = look(m, w, promises, memory, err);
		if (r == -E_BUSY && w->wake < 0)
			w->wake = fd_lift(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
		pthread_mutex_unlock(&m->lock);
		promises = fd_close(promises);
		if (r != -E_BUSY || clock_mono_usec() >= deadline)
			return r;
		if (w->wake < 0)
			return err_sys(err, errno, "make an eventfd");
		if (watched && (r = wait_for_change(m, w, deadline, err)) < 0)
			return r;
	}
}

int cloche_manager_enter(
	cloche_manager *m, const cloche_sandbox *sb, uint64_t wait_ms, cloche_err *err)
{
	uint64_t now = clock_mono_usec(), most = (UINT64_MAX - now) / USEC_PER_MSEC;
	uint64_t deadline = wait_ms > most ? UINT64_MAX : now + wait_ms * USEC_PER_MSEC;
	struct cloche_err why = CLOCHE_ERR_INIT;
	struct waiting w = {.wake = -1, .ends = -1, .promises = -1};
	int r;

	pthread_mutex_lock(&m->lock);
	DL_APPEND(m->waiting, &w);
	pthread_mutex_unlock(&m->lock);
	r = wait_for_place(m, &w, manager_memory(sb), deadline, &why);
	pthread_mutex_lock(&m->lock);
	DL_DELETE(m->waiting, &w);
	manager_changed(m);
	pthread_mutex_unlock(&m->lock);
	waiting_done(&w);
	if (r < 0 && err)
		*err = why;
	return r;
}

void cloche_manager_leave(cloche_manager *m, const cloche_sandbox *sb)
{
	pthread_mutex_lock(&m->lock);
	m->entered--;
	m->entered_memory -= manager_memory(sb);
	manager_changed(m);
	pthread_mutex_unlock(&m->lock);
	manager_settle_promises(m);
}
