/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: closing a group asks each member to stop under the lock, so that none of
 * them can end, and be freed, meanwhile; then it waits without the lock until the list is empty. A
 * member that begins checks under the lock whether the group is open. So either it is on the list
 * when the group is closed, or it does not begin. */
#include "sandbox/group.h"

#include <pthread.h>
#include <stdlib.h>
#include <utlist.h>

struct sandbox_group {
	pthread_mutex_t lock; /* protects all below, and next and prev of members */
	pthread_cond_t changed;
	unsigned references;
	unsigned closing; /* threads that wait for members to end */
	bool open;
	struct sandbox_member *executing;
};

struct sandbox_group *sandbox_group_new(void)
{
	struct sandbox_group *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->changed, NULL);
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
		pthread_cond_destroy(&g->changed);
		pthread_mutex_destroy(&g->lock);
		free(g);
	}
	return NULL;
}

void sandbox_group_open(struct sandbox_group *g)
{
	pthread_mutex_lock(&g->lock);
	while (g->closing > 0)
		pthread_cond_wait(&g->changed, &g->lock);
	g->open = true;
	pthread_mutex_unlock(&g->lock);
}

void sandbox_group_close(struct sandbox_group *g)
{
	struct sandbox_member *m;

	pthread_mutex_lock(&g->lock);
	g->open = false;
	/* A second request to stop would kill, and the first closing thread has asked all
	 * members. */
	if (g->closing++ == 0)
		DL_FOREACH (g->executing, m)
			m->stop(m->user);
	while (g->executing)
		pthread_cond_wait(&g->changed, &g->lock);
	g->closing--;
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->lock);
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
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->lock);
}
