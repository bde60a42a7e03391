/* SPDX-License-Identifier: Apache-2.0 */
/* One thread with one loop drives 200 tasks in real rooms, each of which first waits in the queue
 * of a manager. Some are cancelled, whatever they are doing. The agent is a stand-in, as in
 * test-tasks.c. */
#include "api/manager/test-managers.h"
#include "client/test-job.h"
#include "nowait.h"

#include <cloche/job.h>
#include <cloche/task.h>
#include <sys/epoll.h>

enum { TASKS = 200, AT_ONCE = 24, HANGING = 8 };

static const char agent[] =
	"#!/bin/sh\n"
	"read -r prompt\n"
	"echo '{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s-1\"}'\n"
	"case \"$prompt\" in hang*) exec sleep 1000;; esac\n"
	"echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,"
	"\"result\":\"done\"}'\n";

static char dir[TAP_DIR_BYTES];
static const char *loop_stack; /* about where the loop has its stack */
static int admitted;           /* the last one */
static bool in_order;

struct one {
	int number;
	cloche_manager *m;
	cloche_sandbox *sb;
	cloche_task *task;
	const char *prompt;
	cloche_job *job; /* NULL: it has ended */
	bool cancelled;
	int events, elsewhere; /* those that were told on another stack */
	cloche_err err;
};

static void on_event(cloche_event *event, void *user)
{
	struct one *o = user;
	char here;

	o->events++;
	o->elsewhere += llabs(&here - loop_stack) > 1 << 20;
}

static int work(void *user, cloche_err *why)
{
	struct one *o = user;
	int r = o->m ? cloche_manager_enter(o->m, o->sb, UINT64_MAX, why) : 0;

	if (r < 0)
		return r;
	in_order &= o->number > admitted;
	admitted = o->number;
	r = cloche_task_execute(o->task, o->prompt, strlen(o->prompt), why);
	if (o->m)
		cloche_manager_leave(o->m, o->sb);
	return r;
}

static int shut_down(void *user, cloche_err *why)
{
	return cloche_sandbox_shutdown(user, why);
}

static cloche_job *start(int set, cloche_job_fn fn, void *user, void *data)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = data};
	cloche_job *job = NULL;

	must(cloche_job_start(fn, user, &job, &err) == 0);
	must(epoll_ctl(set, EPOLL_CTL_ADD, cloche_job_fd(job), &ev) == 0);
	return job;
}

static void make_task(struct one *o)
{
	char context[32];
	_cleanup_(freep) char *path = NULL, *program = fs_join(dir, "claude");

	snprintf(context, sizeof(context), "context-%d", o->number);
	path = fs_join(dir, context);
	must(path && program);
	if (cloche_sandbox_create_task(o->sb, NULL, NULL, path, NULL, 0, &o->task, &o->err) < 0 ||
		cloche_task_set(o->task, "agent-binary", program, &o->err) < 0)
		tap_bail(__FILE__, __LINE__, o->err.message);
	cloche_task_on_event(o->task, on_event, o);
}

static void end_one(struct one *o, int r)
{
	const cloche_task_result *result = cloche_task_result_of(o->task);

	if (r == 0) {
		check_int(result->outcome, CLOCHE_OUTCOME_SUCCESS);
		check_int(o->events, 2);
	} else if (!o->cancelled || r != -CLOCHE_E_CANCELLED) {
		tap_fail("task %d: %d, %s", o->number, r, o->err.message);
	}
	check_int(o->elsewhere, 0);
	cloche_job_free(o->job);
	o->job = NULL;
}

static void check_idle(cloche_manager *m)
{
	cloche_status *s = NULL;

	must(cloche_status_read(m, NULL, 0, &s, &err) == 0);
	check(strstr(s->json, "\"activeRuns\": 0"));
	check(strstr(s->json, "\"waiting\": 0"));
	check(strstr(s->json, "\"promisedMemoryMB\": 0"));
	cloche_status_free(s);
}

static int count_in(const char *path)
{
	_cleanup_(fs_list_closep) DIR *list = fs_list(AT_FDCWD, path);
	int n = 0;

	must(list != NULL);
	while (fs_list_next(list))
		n++;
	return n;
}

static void test_many_in_one_loop(void)
{
	static struct one all[TASKS];
	cloche_manager *m = open_manager();
	cloche_sandbox *sb = cloche_sandbox_new();
	int tasks = (int)tap_rounds(TASKS), left = tasks, victims = 0;
	int set = epoll_create1(EPOLL_CLOEXEC);
	int threads = count_in("/proc/self/task"); /* the manager has one */

	must(sb && cloche_sandbox_set(sb, "net", "none", &err) == 0 &&
		cloche_sandbox_set(sb, "limits", "best-effort", &err) == 0);
	set_memory(sb, 16 << 20);
	set_max_runs(m, AT_ONCE);
	must(cloche_sandbox_startup(sb, &err) == 0);
	admitted = -1;
	in_order = true;
	/* A third is cancelled, half of which would not end by itself. */
	for (int i = 0; i < tasks; i++) {
		struct one *o = &all[i];

		*o = (struct one){
			.number = i, .m = m, .sb = sb, .prompt = i % 6 == 1 ? "hang\n" : "work\n"};
		make_task(o);
		o->job = start(set, work, o, o);
	}
	while (left > 0 && tap_ok_now) {
		struct epoll_event ev;
		struct one *o;
		int r;

		/* The last ones hang. */
		for (int i = 0; i < tasks; i++)
			if (all[i].job && !all[i].cancelled && i % 3 == 1 &&
				(left < tasks / 3 || rand_u64() % 2000 == 0)) {
				all[i].cancelled = true;
				cloche_job_cancel(all[i].job);
				victims++;
			}
		must(epoll_wait(set, &ev, 1, -1) == 1);
		o = ev.data.ptr;
		r = cloche_job_dispatch(o->job, &o->err);
		if (r <= 0) {
			end_one(o, r);
			left--;
		}
	}
	check(in_order);
	check_int(nowait_waits, 0);
	check(victims >= tasks / 7);
	check_int(count_in("/proc/self/task"), threads);
	check(becomes_zero(count_dirs));
	check_idle(m);
	for (int i = 0; i < tasks; i++) {
		cloche_job_free(all[i].job);
		/* Its context is whole, and can be used again. */
		if (i % 10 < 2)
			check_int(cloche_task_execute(all[i].task, "work\n", 5, &all[i].err), 0);
		cloche_task_free(all[i].task);
	}
	fd_close(set);
	cloche_manager_close(m);
	cloche_sandbox_free(sb);
}

/* The job that waits for the end of the others is one of the same thread. */
static void test_a_shutdown_is_a_job_too(void)
{
	struct one all[HANGING];
	cloche_sandbox *sb = cloche_sandbox_new();
	int set = epoll_create1(EPOLL_CLOEXEC), left = HANGING;
	cloche_job *last = NULL, *never;

	must(sb && cloche_sandbox_set(sb, "net", "none", &err) == 0);
	must(cloche_sandbox_startup(sb, &err) == 0);
	for (int i = 0; i < HANGING; i++) {
		all[i] = (struct one){.number = i, .sb = sb, .prompt = "hang\n"};
		make_task(&all[i]);
		all[i].job = start(set, work, &all[i], &all[i]);
	}
	while (left > 0 || last) {
		bool all_began = true;
		struct epoll_event ev;
		struct one *o;
		int r;

		must(epoll_wait(set, &ev, 1, -1) == 1);
		o = ev.data.ptr;
		if (!o) {
			if (cloche_job_dispatch(last, &err) == 1)
				continue;
			check_int(left, 0);
			cloche_job_free(last);
			last = NULL;
			continue;
		}
		r = cloche_job_dispatch(o->job, &o->err);
		if (r != 1) {
			if (r < 0)
				tap_fail("task %d: %d, %s", o->number, r, o->err.message);
			check_z(cloche_task_result_of(o->task)->detail, "cancelled");
			cloche_job_free(o->job);
			o->job = NULL;
			left--;
		}
		for (int i = 0; i < HANGING; i++)
			all_began &= all[i].events > 0;
		if (!all_began || last || left < HANGING)
			continue;
		/* One is given up, which stops the others nevertheless. */
		must(cloche_job_start(shut_down, sb, &never, &err) == 0);
		check_int(cloche_job_dispatch(never, &err), 1);
		cloche_job_cancel(never);
		check_int(cloche_job_dispatch(never, &err), -CLOCHE_E_CANCELLED);
		cloche_job_free(never);
		last = start(set, shut_down, sb, NULL);
	}
	check(becomes_zero(count_dirs));
	for (int i = 0; i < HANGING; i++)
		cloche_task_free(all[i].task);
	fd_close(set);
	cloche_sandbox_free(sb);
}

int main(void)
{
	_cleanup_(freep) char *program = NULL;
	struct cloche_err why = CLOCHE_ERR_INIT;
	char here;

	loop_stack = &here;
	if (native_provider.probe(&native_provider, &(struct provider_about){0}, &why) < 0) {
		printf("1..0 # SKIP no rooms here: %s\n", why.message);
		return 0;
	}
	set_up();
	set_runtime("task-jobs");
	tap_dir(dir);
	fd_raise_limit();
	program = fs_join(dir, "claude");
	must(program &&
		fs_write_atomic(AT_FDCWD, program, str_from(agent), 0755, false, NULL) == 0);
	must(chmod(program, 0755) == 0);
	setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdefghijklmnop", 1);
	run_test(test_many_in_one_loop);
	run_test(test_a_shutdown_is_a_job_too);
	(void)fs_remove_tree(AT_FDCWD, dir);
	(void)fs_remove_tree(AT_FDCWD, base);
	(void)fs_remove_tree(AT_FDCWD, runtime);
	return tap_done();
}
