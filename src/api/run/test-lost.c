/* SPDX-License-Identifier: Apache-2.0 */
/* If there is no memory, a run fails: it never ends as if the command had printed less or had ended
 * otherwise. The sandbox that the run is in goes on. */
#include "client/test-job.h"
#include "torture.h"

#include <cloche/instance.h>
#include <cloche/run.h>

enum { LINES = 3000 };

static struct cloche_err err;
static cloche_instance *box;
static unsigned long fails_at; /* that allocation after the first callback */
static bool was_armed;

static void arm(void)
{
	if (!was_armed)
		torture_countdown = fails_at;
	was_armed = true;
}

static void on_start(const char *id, void *user)
{
	arm();
}

/* Execute the run; return what it returned. Whether an allocation failed, torture_failed says. */
static int execute(cloche_run *run)
{
	int r;

	torture_failed = was_armed = false;
	r = cloche_run_execute(run, &err);
	torture_countdown = 0;
	check(was_armed);
	return r;
}

static void check_whole(int r, const cloche_run *run)
{
	const cloche_result *end = cloche_run_result(run);

	if (r < 0) {
		check(torture_failed && err.message[0]);
		return;
	}
	check_int(end->exit_code, 7);
	check_int((long)end->stdout_length, 4 * LINES);
	check(!end->stdout_truncated);
}

static void test_of_its_own(void)
{
	const char *argv[] = {
		"sh", "-c", "i=0; while [ $((i += 1)) -le 3000 ]; do echo abc; done; exit 7", NULL};

	for (fails_at = 1, torture_failed = true; torture_failed; fails_at++) {
		cloche_sandbox *sb = cloche_sandbox_new();
		cloche_run *run = NULL;

		must(sb && cloche_run_new(sb, argv, &run, &err) == 0);
		cloche_run_on_start(run, on_start, NULL);
		check_whole(execute(run), run);
		cloche_run_free(run);
		cloche_sandbox_free(sb);
	}
}

struct heard {
	size_t bytes;
};

static void on_output(bool is_stderr, const void *data, size_t n, void *user)
{
	((struct heard *)user)->bytes += n;
	arm();
}

/* A command that waits for a line; return its number. */
static uint32_t begin_command(void)
{
	const char *argv[] = {"sh", "-c", "echo abc; read x; echo abc; exit 7", NULL};
	cloche_run_options o = CLOCHE_RUN_OPTIONS_INIT;
	cloche_run *run = NULL;
	uint32_t number;

	o.detached = o.keep_input = true;
	must(cloche_run_new_in(box, argv, &run, &err) == 0);
	must(cloche_run_set_options(run, &o, &err) == 0);
	if (cloche_run_execute(run, &err) < 0)
		tap_fail("%s", err.message);
	number = cloche_run_result(run)->number;
	cloche_run_free(run);
	return number;
}

static void test_of_a_joined_command(void)
{
	cloche_run_options o = CLOCHE_RUN_OPTIONS_INIT;

	o.stdin_data = "go\n";
	o.stdin_length = 3;
	for (fails_at = 1, torture_failed = true; torture_failed; fails_at++) {
		struct heard heard = {0};
		cloche_run *run = NULL;
		int r;

		must(cloche_run_new_joining(box, begin_command(), &run, &err) == 0);
		must(cloche_run_set_options(run, &o, &err) == 0);
		cloche_run_on_output(run, on_output, &heard);
		r = execute(run);
		check(r == 0 ? heard.bytes == 8 : torture_failed);
		cloche_run_free(run);
	}
	check_int(cloche_instance_refresh(box, &err), 0);
	check_int(cloche_instance_info_of(box)->state, CLOCHE_INSTANCE_RUNNING);
}

static uint32_t ended;

static void join_ended(void)
{
	cloche_run *run = NULL;
	int r = cloche_run_new_joining(box, ended, &run, &err);

	if (r == 0)
		r = cloche_run_execute(run, &err);
	check(r == 0 || torture_failed);
	if (r == 0)
		check_int(cloche_run_result(run)->exit_code, 7);
	if (r == 0)
		check_int((long)cloche_run_result(run)->stdout_length, 4);
	cloche_run_free(run);
}

static void refresh(void)
{
	const cloche_instance_info *info = cloche_instance_info_of(box);
	int r = cloche_instance_refresh(box, &err);

	check_int(r, r == 0 ? 0 : -CLOCHE_E_NO_MEMORY);
	if (r < 0)
		return;
	check_int(info->state, CLOCHE_INSTANCE_STOPPED);
	check(strstr(info->json, "\"exit_code\": 7") != NULL);
	/* Not the text itself: jansson loses a byte of one that it has no memory for. */
	check(info->command[0]);
	check_z(cloche_instance_label(box, "kind"), "test");
}

static bool count_one(const cloche_instance *instance, void *user)
{
	++*(int *)user;
	return true;
}

static void list_all(void)
{
	int n = 0, r = cloche_instance_list(true, count_one, &n, &err);

	check_int(r, r == 0 ? 0 : -CLOCHE_E_NO_MEMORY);
	check(r < 0 || n == 1);
}

/* What its record says is not lost, either: no exit code is 0, and no sandbox is gone, because
 * there was no memory to read it. */
static void test_of_a_record(void)
{
	const char *argv[] = {"sh", "-c", "echo abc; exit 7", NULL};
	cloche_sandbox *sb = cloche_sandbox_new();
	cloche_run *run = NULL;

	must(sb && cloche_sandbox_set(sb, "label", "kind=test", &err) == 0);
	must(cloche_instance_create(sb, NULL, NULL, &box, &err) == 0);
	must(cloche_run_new_in(box, argv, &run, &err) == 0);
	must(cloche_run_execute(run, &err) == 0);
	ended = cloche_run_result(run)->number;
	cloche_run_free(run);
	must(cloche_instance_stop(box, 0, &err) == 0);
	torture(join_ended);
	torture(refresh);
	torture(list_all);
	check_int(cloche_instance_remove(box, true, &err), 0);
	cloche_instance_free(box);
	cloche_sandbox_free(sb);
}

static void everything(void)
{
	cloche_sandbox *sb = cloche_sandbox_new();

	must(sb && cloche_instance_create(sb, NULL, NULL, &box, &err) == 0);
	cloche_sandbox_free(sb);
	run_test(test_of_its_own);
	run_test(test_of_a_joined_command);
	check_int(cloche_instance_remove(box, true, &err), 0);
	cloche_instance_free(box);
	run_test(test_of_a_record);
}

int main(void)
{
	return run_everything(everything);
}
