/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: closing a group asks each member to stop under the lock, so that none of
 * them can end, and be freed, meanwhile; then it waits without the lock until the list is empty. A
 * member that begins checks under the lock whether the group is open. So either it is on the list
 * when the group is closed, or it does not begin. Whoever waits has an eventfd, since it may be a
 * job of the thread whose other jobs are the members. */
#include "sandbox/group.h"
#include "base/fd.h"
#include "job/job.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utlist.h>

struct group_waiter {
	struct group_waiter *prev, *next;
	int fd; /* an eventfd: the list of members, or closing, has changed */
};

struct sandbox_group {
	pthread_mutex_t lock; /* protects all below, and next and prev of members */
	struct group_waiter *waiters;
	unsigned references;
	unsigned closing; /* callers that wait for members to end */
	bool open;
	struct sandbox_member *executing;
};

struct sandbox_group *sandbox_group_new(void)
{
	struct sandbox_group *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	pthread_mutex_init(&g->lock, NULL);
	g->references = 1;
	return g;
}

struct sandbox_group *sandbox_group_unref(struct sandbox_group *g)
{
	bool last;

	if (!g)
		return NULL;
	pthread_mutex_lock(&g->lock);
	last = --g->references == 0;
	pthread_mutex_unlock(&g->lock);
	if (last) {
		pthread_mutex_destroy(&g->lock);
		free(g);
	}
	return NULL;
}

/* The lock is held. */
static void group_changed(const struct sandbox_group *g)
{
	const struct group_waiter *w;
	const uint64_t one = 1;

	DL_FOREACH (g->waiters, w)
		(void)!write(w->fd, &one, sizeof(one));
}

static bool group_is_empty(const struct sandbox_group *g)
{
	return !g->executing;
}

static bool group_is_settled(const struct sandbox_group *g)
{
	return g->closing == 0;
}

/* The lock is held, but not while this waits. Return 0 or -errno. */
static int group_wait(struct sandbox_group *g, bool (*is_so)(const struct sandbox_group *g))
{
	struct group_waiter w = {.fd = -1};
	uint64_t count;
	int r = 0;

	if (is_so(g))
		return 0;
	w.fd = eventfd(0, EFD_CLOEXEC);
	if (w.fd < 0)
		return -errno;
	DL_APPEND(g->waiters, &w);
	while (r == 0 && !is_so(g)) {
		ssize_t n;

		pthread_mutex_unlock(&g->lock);
		n = job_read(w.fd, &count, sizeof(count));
		r = n < 0 ? (int)n : 0;
		pthread_mutex_lock(&g->lock);
	}
	DL_DELETE(g->waiters, &w);
	fd_close(w.fd);
	return r;
}

int sandbox_group_open(struct sandbox_group *g, struct cloche_err *err)
{
	int r;

	pthread_mutex_lock(&g->lock);
	r = group_wait(g, group_is_settled);
	g->open = g->open || r == 0;
	pthread_mutex_unlock(&g->lock);
	return r < 0 ? err_sys(err, -r, "wait for the end of the sandbox's tasks") : 0;
}

int sandbox_group_close(struct sandbox_group *g, struct cloche_err *err)
{
	struct sandbox_member *m;
	int r;

	pthread_mutex_lock(&g->lock);
	g->open = false;
	/* A second request to stop would kill, and the first caller has asked all members. */
	if (g->closing++ == 0)
		DL_FOREACH (g->executing, m)
			m->stop(m->user);
	r = group_wait(g, group_is_empty);
	g->closing--;
	group_changed(g);
	pthread_mutex_unlock(&g->lock);
	return r < 0 ? err_sys(err, -r, "wait for the end of the sandbox's tasks") : 0;
}

/* The lock is held. */
static int group_check_open(const struct sandbox_group *g, struct cloche_err *err)
{
	return g->open ? 0
		       : err_set(err, E_CANCELLED, "the sandbox was not started, or was shut down");
}

int sandbox_group_check(struct sandbox_group *g, struct cloche_err *err)
{
	int r;

	if (!g)
		return err_set(err, E_CANCELLED, "the sandbox was not started");
	pthread_mutex_lock(&g->lock);
	r = group_check_open(g, err);
	pthread_mutex_unlock(&g->lock);
	return r;
}

int sandbox_group_join(struct sandbox_group *g, struct sandbox_member *m, void (*stop)(void *user),
	void *user, struct cloche_err *err)
{
	int r = sandbox_group_check(g, err);

	if (r < 0)
		return r;
	pthread_mutex_lock(&g->lock);
	g->references++;
	pthread_mutex_unlock(&g->lock);
	*m = (struct sandbox_member){.group = g, .stop = stop, .user = user};
	return 0;
}

void sandbox_member_leave(struct sandbox_member *m)
{
	m->group = sandbox_group_unref(m->group);
}

int sandbox_member_begin(struct sandbox_member *m, struct cloche_err *err)
{
	struct sandbox_group *g = m->group;
	int r;

	if (!g)
		return 0;
	pthread_mutex_lock(&g->lock);
	r = group_check_open(g, err);
	if (r == 0)
		DL_PREPEND(g->executing, m);
	pthread_mutex_unlock(&g->lock);
	return r;
}

void sandbox_member_end(struct sandbox_member *m)
{
	struct sandbox_group *g = m->group;

	if (!g)
		return;
	pthread_mutex_lock(&g->lock);
	DL_DELETE(g->executing, m);
	group_changed(g);
	pthread_mutex_unlock(&g->lock);
}
