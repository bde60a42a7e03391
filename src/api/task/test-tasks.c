/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox as the owner of tasks: several threads execute some in real rooms while another shuts
 * the sandbox down. The agent is a stand-in, as in test-run.c. */
#include "client/test-job.h"

#include <cloche/task.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static const char agent[] =
	"#!/bin/sh\n"
	"read -r prompt\n"
	"echo '{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s-1\"}'\n"
	"case \"$prompt\" in hang*) sleep 60;; esac\n"
	"echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,"
	"\"result\":\"done\"}'\n";

static char dir[TAP_DIR_BYTES];

static cloche_sandbox *new_sandbox(void)
{
	cloche_sandbox *sb = cloche_sandbox_new();

	must(sb && cloche_sandbox_set(sb, "net", "none", NULL) == 0);
	return sb;
}

static int create(cloche_sandbox *sb, const char *context, uint64_t timeout_ms, cloche_task **ret,
	cloche_err *err)
{
	_cleanup_(freep) char *path = fs_join(dir, context), *program = fs_join(dir, "claude");
	int r;

	must(path && program);
	r = cloche_sandbox_create_task(sb, context, NULL, path, NULL, timeout_ms, ret, err);
	if (r == 0)
		must(cloche_task_set(*ret, "agent-binary", program, err) == 0);
	return r;
}

static cloche_task *create_ok(cloche_sandbox *sb, const char *context, uint64_t timeout_ms)
{
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_task *task = NULL;

	if (create(sb, context, timeout_ms, &task, &err) < 0)
		tap_fail("%s", err.message);
	must(task);
	return task;
}

static int execute(cloche_task *task, const char *prompt, cloche_err *err)
{
	return cloche_task_execute(task, prompt, strlen(prompt), err);
}

static void test_life(void)
{
	cloche_sandbox *sb = new_sandbox();
	_cleanup_(freep) char *path = fs_join(dir, "never");
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_task *task = NULL, *late = NULL;

	check_int(create(sb, "never", 0, &task, &err), -CLOCHE_E_CANCELLED);
	check(!task && path && access(path, F_OK) < 0); /* nothing was made */
	check_int(cloche_sandbox_shutdown(sb, &err), 0);
	check_int(cloche_sandbox_startup(sb, &err), 0);
	check_int(cloche_sandbox_startup(sb, NULL), 0);
	task = create_ok(sb, "life", 0);
	check_z(cloche_task_paths_of(task)->context_id, "life");
	check_int(execute(task, "work\n", &err), 0);
	check_int(cloche_task_result_of(task)->outcome, CLOCHE_OUTCOME_SUCCESS);
	check_int(cloche_sandbox_shutdown(sb, &err), 0);
	check_int(create(sb, "never", 0, &late, &err), -CLOCHE_E_CANCELLED);
	check_int(execute(task, "work\n", &err), -CLOCHE_E_CANCELLED);
	check_int(cloche_sandbox_startup(sb, &err), 0);
	check_int(execute(task, "work\n", &err), 0);
	cloche_sandbox_free(sb);
	/* It outlives its sandbox. */
	check_int(execute(task, "work\n", &err), 0);
	check_int(cloche_task_result_of(task)->outcome, CLOCHE_OUTCOME_SUCCESS);
	cloche_task_free(task);
}

static void test_settings_are_the_tasks_own(void)
{
	_cleanup_(freep) char *path = fs_join(dir, "own"), *log = fs_join(dir, "own.log");
	cloche_sandbox *sb = cloche_sandbox_new();
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_task *task = NULL;

	must(sb && path && log && cloche_sandbox_startup(sb, &err) == 0);
	task = create_ok(sb, "brief", 700);
	check_int(execute(task, "hang\n", &err), 0);
	check_int(cloche_task_result_of(task)->outcome, CLOCHE_OUTCOME_TIMEOUT);
	cloche_task_free(task);
	must(cloche_sandbox_create_task(sb, NULL, NULL, path, log, 0, &task, &err) == 0);
	cloche_task_free(task);
	task = NULL;
	check_int(cloche_sandbox_create_task(sb, NULL, "no-such:image", path, log, 0, &task, &err),
		-CLOCHE_E_NOT_FOUND);
	check(!task && strstr(err.message, "no-such"));
	cloche_sandbox_free(sb);
}

static void test_no_provider_works(void)
{
	cloche_sandbox *sb = new_sandbox();
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_task *task = NULL;

	must(cloche_sandbox_set(sb, "provider", "/bin/false", &err) == 0);
	check(cloche_sandbox_startup(sb, &err) < 0);
	check(strstr(err.message, "provider false") != NULL);
	check_int(create(sb, "never", 0, &task, &err), -CLOCHE_E_CANCELLED);
	cloche_sandbox_free(sb);
}

/* What a crash left is gone when a sandbox has started. */
static void test_leftovers_are_removed(void)
{
	cloche_sandbox *sb = new_sandbox();
	_cleanup_(freep) char *left = fs_join(runtime, "sandbox-aaaaaaaaaaaaaaaaaaaaa");
	_cleanup_(freep) char *lock = fs_join(left, "lock");
	cloche_err err = CLOCHE_ERR_INIT;

	must(left && lock && fs_mkdirs(left, 0700, NULL) == 0);
	must(fs_write_atomic(AT_FDCWD, lock, STR(""), 0600, false, NULL) == 0);
	check_int(cloche_sandbox_startup(sb, &err), 0);
	check(access(left, F_OK) < 0);
	cloche_sandbox_free(sb);
}

enum { THREADS = 4 };

struct worker {
	pthread_t thread;
	cloche_sandbox *sb;
	char context[16];
	const char *prompt;
	cloche_task *task; /* for work_once */
	atomic_bool began; /* the agent has spoken */
	unsigned cancelled, done, refused;
};

static void on_event(cloche_event *event, void *user)
{
	struct worker *w = user;

	if (event->type == CLOCHE_EVENT_SYSTEM)
		atomic_store(&w->began, true);
}

/* Executes until the sandbox is shut down. */
static void *work(void *user)
{
	struct worker *w = user;
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_task *task = NULL;

	while (w->refused == 0) {
		int r = create(w->sb, w->context, 0, &task, &err);

		if (r == 0) {
			cloche_task_on_event(task, on_event, w);
			r = execute(task, w->prompt, &err);
			if (r < 0)
				w->refused++;
			else if (cloche_task_result_of(task)->outcome == CLOCHE_OUTCOME_SUCCESS)
				w->done++;
			else if (cloche_task_result_of(task)->detail &&
				 strcmp(cloche_task_result_of(task)->detail, "cancelled") == 0)
				w->cancelled++;
		} else {
			w->refused++;
		}
		cloche_task_free(task);
		task = NULL;
		if (r < 0 && r != -CLOCHE_E_CANCELLED)
			printf("# %s: %s\n", w->context, err.message);
		if (r < 0)
			break;
	}
	return NULL;
}

static void *work_once(void *user)
{
	struct worker *w = user;
	cloche_err err = CLOCHE_ERR_INIT;
	int r = execute(w->task, w->prompt, &err);
	const char *detail = cloche_task_result_of(w->task)->detail;

	w->cancelled = r == 0 && detail && strcmp(detail, "cancelled") == 0;
	return NULL;
}

/* wait: until each agent speaks; else whatever the moment. */
static void shut_down_among(const char *prompt, bool wait)
{
	static struct worker workers[THREADS];
	cloche_sandbox *sb = new_sandbox();
	cloche_task *other = NULL;
	_cleanup_(freep) char *path = fs_join(dir, "other");
	cloche_err err = CLOCHE_ERR_INIT;
	uint64_t began;

	must(path && cloche_sandbox_startup(sb, &err) == 0);
	must(cloche_task_new(sb, NULL, path, NULL, &other, &err) == 0);
	for (int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){.sb = sb, .prompt = prompt};
		snprintf(workers[i].context, sizeof(workers[i].context), "worker-%d", i);
		must(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
	}
	for (int i = 0; wait && i < THREADS; i++)
		for (int k = 0; !atomic_load(&workers[i].began) && k < 3000; k++)
			pause_ms(10);
	began = clock_mono_usec();
	check_int(cloche_sandbox_shutdown(sb, &err), 0);
	check(clock_mono_usec() - began < 20 * USEC_PER_SEC);
	/* All have ended, not only been asked; directories go a moment later. */
	check(becomes_zero(count_dirs));
	for (int i = 0; i < THREADS; i++) {
		must(pthread_join(workers[i].thread, NULL) == 0);
		check_int(workers[i].refused, 1);
		if (wait)
			check_int(workers[i].cancelled, 1);
		check(workers[i].cancelled <= 1);
	}
	check_int(execute(other, "", &err), -CLOCHE_E_USAGE); /* it is none of the sandbox's */
	cloche_task_free(other);
	cloche_sandbox_free(sb);
}

static void test_shutdown_ends_what_hangs(void)
{
	shut_down_among("hang\n", true);
}

static void test_shutdown_at_any_moment(void)
{
	for (int i = 0; i < 4; i++)
		shut_down_among(i % 2 ? "hang\n" : "work\n", false);
}

/* A second execute of the same task is refused, and changes nothing for the first. */
static void test_one_execute_at_a_time(void)
{
	struct worker w = {.sb = new_sandbox(), .prompt = "hang\n"};
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_task *task;

	must(cloche_sandbox_startup(w.sb, &err) == 0);
	task = w.task = create_ok(w.sb, "once", 0);
	cloche_task_on_event(task, on_event, &w);
	check(!cloche_task_stop(task));
	must(pthread_create(&w.thread, NULL, work_once, &w) == 0);
	for (int k = 0; !atomic_load(&w.began) && k < 3000; k++)
		pause_ms(10);
	check_int(execute(task, "work\n", &err), -CLOCHE_E_BUSY);
	check_int(cloche_sandbox_shutdown(w.sb, &err), 0);
	check(becomes_zero(count_dirs)); /* it has ended, not only been asked */
	must(pthread_join(w.thread, NULL) == 0);
	check_int(w.cancelled, 1);
	check(!cloche_task_stop(task));
	must(cloche_sandbox_startup(w.sb, &err) == 0);
	check_int(execute(task, "work\n", &err), 0);
	check_int(cloche_task_result_of(task)->outcome, CLOCHE_OUTCOME_SUCCESS);
	check(!cloche_task_stop(task));
	check_int(cloche_task_result_of(task)->outcome, CLOCHE_OUTCOME_SUCCESS);
	cloche_task_free(task);
	cloche_sandbox_free(w.sb);
}

/* A task that says that it was told to stop does stop, however early it was told. */
static void test_stop_at_once(void)
{
	struct worker w = {.sb = new_sandbox(), .prompt = "hang\n"};

	must(cloche_sandbox_startup(w.sb, NULL) == 0);
	w.task = create_ok(w.sb, "early", 0);
	for (int i = 0; i < 50; i++) {
		w.cancelled = 0;
		must(pthread_create(&w.thread, NULL, work_once, &w) == 0);
		while (!cloche_task_stop(w.task))
			continue;
		must(pthread_join(w.thread, NULL) == 0);
		if (w.cancelled != 1)
			break;
	}
	check_int(w.cancelled, 1);
	cloche_task_free(w.task);
	cloche_sandbox_free(w.sb);
}

int main(void)
{
	_cleanup_(freep) char *program = NULL;
	struct cloche_err why = CLOCHE_ERR_INIT;

	if (native_provider.probe(&native_provider, &(struct provider_about){0}, &why) < 0) {
		printf("1..0 # SKIP no rooms here: %s\n", why.message);
		return 0;
	}
	set_up();
	set_runtime("tasks");
	tap_dir(dir);
	program = fs_join(dir, "claude");
	must(program &&
		fs_write_atomic(AT_FDCWD, program, str_from(agent), 0755, false, NULL) == 0);
	must(chmod(program, 0755) == 0);
	setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdefghijklmnop", 1);
	run_test(test_life);
	run_test(test_settings_are_the_tasks_own);
	run_test(test_no_provider_works);
	run_test(test_leftovers_are_removed);
	run_test(test_shutdown_ends_what_hangs);
	run_test(test_shutdown_at_any_moment);
	run_test(test_one_execute_at_a_time);
	run_test(test_stop_at_once);
	(void)fs_remove_tree(AT_FDCWD, dir);
	(void)fs_remove_tree(AT_FDCWD, base);
	(void)fs_remove_tree(AT_FDCWD, runtime);
	return tap_done();
}
