/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/group.h"
#include "tap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* Executes again and again until it may not. */
struct worker {
	struct sandbox_member member;
	pthread_t thread;
	atomic_bool stop;
	atomic_uint executed, stopped;
	bool endless; /* an execution ends only if it is stopped */
};

static atomic_uint executing;

static void stop_worker(void *user)
{
	struct worker *w = user;

	atomic_fetch_add(&w->stopped, 1);
	atomic_store(&w->stop, true);
}

static void *work(void *user)
{
	struct worker *w = user;

	while (atomic_store(&w->stop, false), sandbox_member_begin(&w->member, NULL) == 0) {
		atomic_fetch_add(&executing, 1);
		atomic_fetch_add(&w->executed, 1);
		for (int i = 0; !atomic_load(&w->stop) && (w->endless || i < 3); i++)
			usleep(100);
		atomic_fetch_sub(&executing, 1);
		sandbox_member_end(&w->member);
	}
	return NULL;
}

static void test_closed_at_first(void)
{
	struct sandbox_group *g = sandbox_group_new();
	struct sandbox_member m = {.group = NULL};
	struct cloche_err err = CLOCHE_ERR_INIT;

	must(g);
	check_int(sandbox_group_check(g, &err), -E_CANCELLED);
	check_int(sandbox_group_check(NULL, &err), -E_CANCELLED);
	check_int(sandbox_group_join(g, &m, stop_worker, NULL, &err), -E_CANCELLED);
	check(!m.group);
	check_int(sandbox_group_close(g, NULL), 0); /* nothing to wait for */
	check_int(sandbox_group_open(g, NULL), 0);
	check_int(sandbox_group_open(g, NULL), 0);
	check_int(sandbox_group_join(g, &m, stop_worker, NULL, &err), 0);
	/* The group lives on with its member. */
	sandbox_group_unref(g);
	check_int(sandbox_member_begin(&m, &err), 0);
	sandbox_member_end(&m);
	sandbox_member_leave(&m);
	sandbox_member_leave(&m);
}

static void test_no_group_is_no_matter(void)
{
	struct sandbox_member m = {.group = NULL};

	check_int(sandbox_member_begin(&m, NULL), 0);
	sandbox_member_end(&m);
	sandbox_member_leave(&m);
	check(!sandbox_group_unref(NULL));
}

static void *close_it(void *group)
{
	check_int(sandbox_group_close(group, NULL), 0);
	check_int(atomic_load(&executing), 0);
	return NULL;
}

/* Whatever the moment: when the group has been closed, nobody executes and nobody begins. */
static void close_among_workers(bool endless)
{
	enum { WORKERS = 8, ROUNDS = 50, CLOSERS = 3 };
	struct sandbox_group *g = sandbox_group_new();
	static struct worker w[WORKERS];

	must(g);
	for (int round = 0; round < ROUNDS; round++) {
		pthread_t closers[CLOSERS];

		check_int(sandbox_group_open(g, NULL), 0);
		for (int i = 0; i < WORKERS; i++) {
			w[i] = (struct worker){.endless = endless};
			must(sandbox_group_join(g, &w[i].member, stop_worker, &w[i], NULL) == 0);
			must(pthread_create(&w[i].thread, NULL, work, &w[i]) == 0);
		}
		usleep((useconds_t)(round * 20));
		for (int i = 0; i < CLOSERS; i++)
			must(pthread_create(&closers[i], NULL, close_it, g) == 0);
		for (int i = 0; i < CLOSERS; i++)
			must(pthread_join(closers[i], NULL) == 0);
		check_int(sandbox_group_check(g, NULL), -E_CANCELLED);
		for (int i = 0; i < WORKERS; i++) {
			must(pthread_join(w[i].thread, NULL) == 0);
			check(atomic_load(&w[i].stopped) <= 1);
			check(!endless || atomic_load(&w[i].executed) <= 1);
			sandbox_member_leave(&w[i].member);
		}
	}
	sandbox_group_unref(g);
}

static void test_closed_while_they_come_and_go(void)
{
	close_among_workers(false);
}

static void test_closed_while_they_would_not_end(void)
{
	close_among_workers(true);
}

int main(void)
{
	run_test(test_closed_at_first);
	run_test(test_no_group_is_no_matter);
	run_test(test_closed_while_they_come_and_go);
	run_test(test_closed_while_they_would_not_end);
	return tap_done();
}
