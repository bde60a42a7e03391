/* SPDX-License-Identifier: Apache-2.0 */
/* What managers leave that have died, by the public interface, and who ends it. */
#include "api/manager/test-managers.h"
#include "client/test-job.h"

#include <jansson.h>

enum { LIFETIME_MS = 4000 };

static atomic_int ended_told;

static void count_ended(const char *text, void *user)
{
	if (strstr(text, "its manager had died"))
		ended_told++;
}

/* A process with a manager and two sandboxes, in the first of which something runs; it is killed,
 * or it exits in order. The caller has no manager yet, so no thread: fork() and another thread's
 * malloc() do not go together under AddressSanitizer. */
static void die_with_two(bool in_order_, char busy[64], char idle[64])
{
	int pipes[2], status;
	pid_t pid;

	must(pipe2(pipes, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0) {
		cloche_manager *m = open_manager();

		set_lifetime(m, LIFETIME_MS);
		clean_up_at_exit(m);
		create(m, "r", busy);
		create(m, "r", idle);
		occupy(busy);
		must(write(pipes[1], busy, 64) == 64 && write(pipes[1], idle, 64) == 64);
		if (in_order_)
			exit(0);
		pause();
	}
	must(pid > 0);
	must(read(pipes[0], busy, 64) == 64 && read(pipes[0], idle, 64) == 64);
	fd_close(pipes[0]);
	fd_close(pipes[1]);
	if (!in_order_)
		must(kill(pid, SIGKILL) == 0);
	must(waitpid(pid, &status, 0) == pid);
	check(in_order_ ? status == 0 : WIFSIGNALED(status));
}

static void at_exit_all_is_ended(void)
{
	char busy[64], idle[64];

	die_with_two(true, busy, idle);
	check(is_gone(busy) && is_gone(idle));
	check_int(count_dirs(), 0);
}

static void end_commands_in(const char *id)
{
	const char *const argv[] = {"pkill", "sleep", NULL};
	cloche_instance *i = NULL;
	cloche_run *run = NULL;

	must(cloche_instance_open(id, &i, &err) == 0 &&
		cloche_run_new_in(i, argv, &run, &err) == 0);
	must(cloche_run_execute(run, &err) == 0);
	cloche_run_free(run);
	cloche_instance_free(i);
}

static void what_the_dead_left_is_ended_when_nobody_needs_it(void)
{
	char busy[64], idle[64];
	cloche_manager *m;

	die_with_two(false, busy, idle);
	m = open_manager();
	/* Nothing is left over yet. */
	check_int(cloche_manager_collect(m, &err), 0);
	check(runs(busy) && runs(idle));
	pause_ms(LIFETIME_MS + 100);
	check_int(cloche_manager_collect(m, &err), 0);
	check(is_gone(idle) && runs(busy));
	end_commands_in(busy);
	for (int k = 0; k < 100 && !is_gone(busy); k++) {
		check_int(cloche_manager_collect(m, &err), 0);
		pause_ms(20);
	}
	check(is_gone(busy));
	cloche_manager_close(m);
}

/* With the lifetime over, and a cleanup every few milliseconds. */
static void a_live_one_keeps_its_own(void)
{
	cloche_manager *one = open_manager(), *two = open_manager();
	char busy[64], idle[64];

	set_lifetime(one, 1);
	create(one, "r", idle);
	create(one, "r", busy);
	occupy(busy);
	set_interval(one, 5);
	set_interval(two, 5);
	pause_ms(1500);
	check(runs(busy) && runs(idle));
	check(cloche_manager_is_live(one));
	check_int(cloche_manager_cleanup(one, &err), 0);
	cloche_manager_close(one);
	cloche_manager_close(two);
}

static void it_is_done_now_and_then(void)
{
	cloche_manager *m = NULL;
	char busy[64], idle[64];

	ended_told = 0;
	die_with_two(false, busy, idle);
	must(cloche_manager_open(count_ended, NULL, &m, &err) == 0);
	set_interval(m, 50);
	check(becomes_gone(idle));
	check(runs(busy));
	for (int k = 0; k < 500 && ended_told == 0; k++)
		pause_ms(20);
	check_int(ended_told, 1);
	end_commands_in(busy);
	check(becomes_gone(busy));
	cloche_manager_close(m);
}

/* Any command that lists sandboxes does it as well. */
static bool see_any(const cloche_instance *instance, void *user)
{
	++*(int *)user;
	return true;
}

static void who_lists_sandboxes_ends_them_too(void)
{
	char busy[64], idle[64];
	cloche_instance *i = NULL;
	int n = 0;

	die_with_two(false, busy, idle);
	pause_ms(LIFETIME_MS + 100);
	must(cloche_instance_list(true, see_any, &n, &err) == 0);
	check_int(n, 1);
	check(is_gone(idle) && runs(busy));
	must(cloche_instance_open(busy, &i, &err) == 0 &&
		cloche_instance_remove(i, true, &err) == 0);
	cloche_instance_free(i);
}

static pid_t supervisor_of(const char *id)
{
	cloche_instance *i = NULL;
	json_t *record;
	pid_t pid;

	must(cloche_instance_open(id, &i, &err) == 0 && cloche_instance_refresh(i, &err) == 0);
	record = json_loads(cloche_instance_info_of(i)->json, 0, NULL);
	pid = (pid_t)json_integer_value(json_object_get(record, "pid"));
	must(pid > 1);
	json_decref(record);
	cloche_instance_free(i);
	return pid;
}

/* One that is stopped holds nobody up, and ends when it goes on. */
static void a_supervisor_that_does_not_answer_is_left(void)
{
	char busy[64], idle[64];
	pid_t pid;
	int n = 0;

	die_with_two(false, busy, idle);
	pid = supervisor_of(idle);
	must(kill(pid, SIGSTOP) == 0);
	pause_ms(LIFETIME_MS + 100);
	must(cloche_instance_list(false, see_any, &n, &err) == 0);
	check_int(n, 2);
	must(kill(pid, SIGCONT) == 0);
	for (int k = 0; k < 500 && runs(idle); k++)
		pause_ms(20);
	check(!runs(idle) && runs(busy));
	must(cloche_instance_prune(NULL, NULL, &err) == 0);
	end_commands_in(busy);
	for (int k = 0; k < 500 && !is_gone(busy); k++) {
		must(cloche_instance_list(false, see_any, &n, &err) == 0);
		pause_ms(20);
	}
	check(is_gone(busy));
}

static cloche_manager *of_the_child;

static void close_it(void)
{
	/* The cleanup at exit came first. */
	if (cloche_manager_is_live(of_the_child))
		_exit(1);
	cloche_manager_close(of_the_child);
}

/* Whoever closes it at exit as well does so before or after. After the cleanup it is not live. */
static void it_may_be_closed_at_exit_too(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		char id[64];

		must(atexit(close_it) == 0);
		of_the_child = open_manager();
		clean_up_at_exit(of_the_child);
		create(of_the_child, "r", id);
		if (!cloche_manager_is_live(of_the_child))
			_exit(2);
		exit(0);
	}
	must(pid > 0 && waitpid(pid, &status, 0) == pid);
	check_int(status, 0);
	check_int(count_dirs(), 0);
}

static void run_list(void)
{
	run_test(at_exit_all_is_ended);
	run_test(what_the_dead_left_is_ended_when_nobody_needs_it);
	run_test(a_live_one_keeps_its_own);
	run_test(it_is_done_now_and_then);
	run_test(who_lists_sandboxes_ends_them_too);
	run_test(a_supervisor_that_does_not_answer_is_left);
	run_test(it_may_be_closed_at_exit_too);
}

int main(void)
{
	return run_everything(run_list);
}
