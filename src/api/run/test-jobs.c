/* SPDX-License-Identifier: Apache-2.0 */
/* Runs, commands in one sandbox, transfers of files and code in contexts, all at once in one thread
 * with one poll loop, and nothing keeps that thread waiting (tests/lib/nowait.h). */
#include "client/test-job.h"
#include "job/job.h"
#include "nowait.h"

#include <cloche/code.h>
#include <cloche/files.h>
#include <cloche/fork.h>
#include <cloche/instance.h>
#include <cloche/run.h>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/file.h>

enum { ALL = 200, CONTEXTS = 10, FILE_BYTES = 300000 };

/* How many of each kind, in this order; the rest of them are transfers. */
static int runs, execs, calls, all_kinds;

static cloche_err err;
static cloche_instance *box;

static int threads(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = -2;

	must(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* --- one of many --- */

struct one {
	cloche_job *job;
	cloche_run *run; /* NULL: a transfer */
	int number;
	unsigned told; /* bytes, by a callback */
	bool right, called_in_job;
	struct cloche_err err;
};

static void on_output(bool is_stderr, const void *data, size_t n, void *user)
{
	struct one *o = user;

	o->told += (unsigned)n;
	o->called_in_job |= job_is_here();
}

static int take_byte(void *user, const void *data, size_t n)
{
	struct one *o = user;
	const char *p = data;

	o->called_in_job |= job_is_here();
	for (size_t i = 0; i < n; i++)
		o->right &= p[i] == (char)(o->number + (int)(o->told + i));
	o->told += (unsigned)n;
	return 0;
}

static int transfer(void *user, cloche_err *e)
{
	struct one *o = user;
	_cleanup_(freep) char *data = malloc(FILE_BYTES);
	cloche_files *f = NULL;
	char path[32];
	int r;

	must(data);
	for (int i = 0; i < FILE_BYTES; i++)
		data[i] = (char)(o->number + i);
	snprintf(path, sizeof(path), "/tmp/file-%d", o->number);
	r = cloche_files_open(box, 0, 0, &f, e);
	if (r == 0)
		r = cloche_files_write(f, path, 0, 0644, cloche_from_data(data, FILE_BYTES), e);
	o->right = true;
	if (r == 0)
		r = cloche_files_read(f, path, 0, UINT64_MAX, take_byte, o, e);
	if (r == 0)
		r = cloche_files_remove(f, path, false, e);
	cloche_files_close(f);
	return r;
}

static void start_one(struct one *o, int i)
{
	char text[96], context[16];
	cloche_code code;
	const char *argv[] = {"sh", "-c", text, NULL};
	cloche_sandbox *sb = NULL;

	*o = (struct one){.number = i};
	snprintf(text, sizeof(text), "echo %d; echo err >&2; exit %d", i, i % 100);
	if (i < runs) {
		sb = cloche_sandbox_new();
		must(sb && cloche_run_new(sb, argv, &o->run, &err) == 0);
		cloche_sandbox_free(sb);
	} else if (i < runs + execs) {
		must(cloche_run_new_in(box, argv, &o->run, &err) == 0);
	} else if (i < runs + execs + calls) {
		snprintf(context, sizeof(context), "c%d", i % CONTEXTS);
		snprintf(text, sizeof(text), "print('x') or %d", i);
		code = (cloche_code){sizeof(code), "python", CLOCHE_CODE_EXPRESSION, text,
			strlen(text), context};
		must(cloche_run_new_code_in(box, &code, &o->run, &err) == 0);
	} else {
		must(cloche_job_start(transfer, o, &o->job, &err) == 0);
		return;
	}
	if (i % 2)
		cloche_run_on_output(o->run, on_output, o);
	must(cloche_run_start(o->run, &o->job, &err) == 0);
}

static void check_one(const struct one *o, int r)
{
	const cloche_result *end = o->run ? cloche_run_result(o->run) : NULL;
	char want[32];
	int i = o->number;
	size_t n;

	check(!o->called_in_job);
	if (r < 0)
		tap_fail("%d: %s", i, o->err.message);
	else if (!o->run)
		check(o->right && o->told == FILE_BYTES);
	else if (i < runs + execs) {
		snprintf(want, sizeof(want), "%d\n", i);
		check_int(end->exit_code, i % 100);
		if (i % 2)
			check_int(o->told, strlen(want) + 4);
		else
			check_str(str_make(end->stdout_data, end->stdout_length), want);
	} else {
		const char *value = cloche_code_result(o->run, 0, "text", &n, NULL);

		snprintf(want, sizeof(want), "%d", i);
		check(value && strcmp(value, want) == 0);
	}
}

static void free_one(struct one *o)
{
	cloche_job_free(o->job);
	cloche_run_free(o->run);
}

/* Start all, and drive them until each has ended; cancel every cancel'th after some of its turns.
 */
static void drive(int cancel)
{
	static struct one all[ALL];
	static struct pollfd fds[ALL];
	static int turns[ALL];
	int left = all_kinds, most = 0;

	for (int i = 0; i < all_kinds; i++) {
		start_one(&all[i], i);
		fds[i] = (struct pollfd){.fd = cloche_job_fd(all[i].job), .events = POLLIN};
		turns[i] = 0;
	}
	while (left > 0 && tap_ok_now) {
		must(poll(fds, (nfds_t)all_kinds, 20000) > 0);
		for (int i = 0; i < all_kinds; i++) {
			int r;

			if (!fds[i].revents)
				continue;
			r = cloche_job_dispatch(all[i].job, &all[i].err);
			if (cancel && i % cancel == 0 && turns[i]++ == i / cancel % 12)
				cloche_job_cancel(all[i].job);
			if (r > 0)
				continue;
			fds[i].fd = -1;
			left--;
			if (r == -E_CANCELLED && cancel && i % cancel == 0)
				check_int(all[i].err.code, E_CANCELLED);
			else
				check_one(&all[i], r);
		}
		most = MAX(most, threads());
	}
	check_int(left, 0);
	printf("# at most %d threads\n", most);
	for (int i = 0; i < all_kinds; i++)
		free_one(&all[i]);
	check_int(nowait_waits, 0);
}

static int box_make(void *user, cloche_err *e)
{
	cloche_sandbox *sb = cloche_sandbox_new();
	int r;

	must(sb);
	r = cloche_instance_create(sb, NULL, NULL, &box, e);
	cloche_sandbox_free(sb);
	return r;
}

static int box_remove(void *user, cloche_err *e)
{
	int r = cloche_instance_stop(box, 100, e);

	return r == 0 ? cloche_instance_remove(box, false, e) : r;
}

static int finish(cloche_job *job)
{
	int r;

	while ((r = cloche_job_dispatch(job, &err)) > 0) {
		struct pollfd p = {.fd = cloche_job_fd(job), .events = POLLIN};

		must(poll(&p, 1, 20000) == 1);
	}
	return r;
}

static int run_job(cloche_job_fn fn)
{
	cloche_job *job = NULL;
	int r;

	must(cloche_job_start(fn, NULL, &job, &err) == 0);
	r = finish(job);
	if (r < 0)
		tap_fail("%s", err.message);
	cloche_job_free(job);
	return r;
}

static void test_many_at_once(void)
{
	drive(0);
}

static void test_some_are_cancelled(void)
{
	drive(3);
	/* Whoever was cancelled leaves nothing that would be in the way. */
	drive(0);
}

/* --- input --- */

static cloche_run *new_run(const char *script, cloche_job **ret)
{
	const char *argv[] = {"sh", "-c", script, NULL};
	cloche_run *run = NULL;
	size_t none;

	must(cloche_run_new_in(box, argv, &run, &err) == 0);
	must(cloche_run_write_input(run, NULL, 0, &none, &err) == 0);
	must(cloche_run_start(run, ret, &err) == 0);
	return run;
}

static void test_input_is_written_while_it_runs(void)
{
	enum { BYTES = 3 << 20 };
	_cleanup_(freep) char *data = malloc(BYTES);
	cloche_job *job;
	cloche_run *run = new_run("sleep 0.3; cat", &job);
	size_t at = 0, taken;
	int short_writes = 0, r;

	must(data);
	for (size_t i = 0; i < BYTES; i++)
		data[i] = (char)(i * 7 / 3);
	while ((r = cloche_job_dispatch(job, &err)) > 0) {
		struct pollfd p = {.fd = cloche_job_fd(job), .events = POLLIN};

		if (at < BYTES) {
			must(cloche_run_write_input(run, data + at, BYTES - at, &taken, &err) == 0);
			at += taken;
			short_writes += at < BYTES;
			if (at == BYTES)
				cloche_run_close_input(run);
		}
		must(poll(&p, 1, 20000) == 1);
	}
	check_int(r, 0);
	check(short_writes > 0);
	check_int((int)cloche_run_result(run)->stdout_length, BYTES);
	check(memcmp(cloche_run_result(run)->stdout_data, data, BYTES) == 0);
	cloche_job_free(job);
	cloche_run_free(run);
}

static void test_input_that_nobody_wants(void)
{
	static char data[1 << 20];
	cloche_job *job;
	cloche_run *run = new_run("exec <&-; echo ready; sleep 2", &job);
	size_t taken = 0, all = 0;
	int r;

	while ((r = cloche_job_dispatch(job, &err)) > 0) {
		struct pollfd p = {.fd = cloche_job_fd(job), .events = POLLIN};

		must(cloche_run_write_input(run, data, sizeof(data), &taken, &err) == 0);
		all += taken;
		must(poll(&p, 1, 20000) == 1);
	}
	check_int(r, 0);
	check_int(cloche_run_result(run)->exit_code, 0);
	check(all >= sizeof(data));
	check_int(cloche_run_write_input(run, data, 5, &taken, &err), 0);
	check_int((int)taken, 5);
	cloche_run_close_input(run);
	cloche_job_free(job);
	cloche_run_free(run);
}

/* Answers each line with the next one, from the callback. */
struct talk {
	cloche_run *run;
	int lines;
};

static void on_line(bool is_stderr, const void *data, size_t n, void *user)
{
	struct talk *t = user;
	size_t taken = 0;

	if (++t->lines == 20)
		cloche_run_close_input(t->run);
	else
		check_int(cloche_run_write_input(t->run, "next\n", 5, &taken, &err), 0);
}

static void test_a_talk(void)
{
	struct talk t = {0};
	cloche_job *job;

	t.run = new_run("echo begin; while read -r line; do echo $line; done", &job);
	cloche_run_on_output(t.run, on_line, &t);
	check_int(finish(job), 0);
	check_int(t.lines, 20);
	cloche_job_free(job);
	cloche_run_free(t.run);
}

static void test_input_that_cannot_be_written(void)
{
	const char *argv[] = {"true", NULL};
	const cloche_code code = {sizeof(code), "shell", CLOCHE_CODE_PROGRAM, "true", 4, NULL};
	cloche_run *run = NULL;
	size_t taken;

	must(cloche_run_new_code_in(box, &code, &run, &err) == 0);
	check_int(cloche_run_write_input(run, "x", 1, &taken, &err), -E_USAGE);
	cloche_run_free(run);
	must(cloche_run_new_in(box, argv, &run, &err) == 0);
	check_int(cloche_run_execute(run, &err), 0);
	check_int(cloche_run_write_input(run, "x", 1, &taken, &err), -E_USAGE);
	cloche_run_free(run);
}

/* --- what waits for somebody else --- */

static bool watching;
static int seen, followed, forked;

static void on_ready(void *user)
{
	check(!job_is_here());
	watching = true;
}

static bool on_change(const cloche_files_event *event, void *user)
{
	check(!job_is_here());
	seen++;
	return false;
}

static int watch_job(void *user, cloche_err *e)
{
	cloche_files *f = NULL;
	int r = cloche_files_open(box, 0, 0, &f, e);

	if (r == 0)
		r = cloche_files_watch(f, "/tmp", false, on_ready, on_change, NULL, e);
	cloche_files_close(f);
	return r;
}

static bool on_log(bool is_stderr, uint64_t offset, const void *data, size_t n, void *user)
{
	check(!job_is_here());
	followed += (int)n;
	return true;
}

/* Until the command ends. */
static int follow_job(void *user, cloche_err *e)
{
	const char *argv[] = {"sh", "-c", "for i in 1 2 3 4; do echo $i; sleep 0.1; done", NULL};
	cloche_run *run = NULL;
	cloche_log *log = NULL;
	int r = cloche_run_new_in(box, argv, &run, e);

	if (r == 0) {
		cloche_run_options o = CLOCHE_RUN_OPTIONS_INIT;

		o.detached = true;
		r = cloche_run_set_options(run, &o, e);
	}
	if (r == 0)
		r = cloche_run_execute(run, e);
	if (r == 0)
		r = cloche_log_open(box, cloche_run_result(run)->number, &log, e);
	if (r == 0)
		r = cloche_log_follow(log, 0, on_log, NULL, NULL, e);
	cloche_log_free(log);
	cloche_run_free(run);
	return r;
}

static bool on_fork(const cloche_instance *fork, void *user)
{
	check(!job_is_here());
	forked++;
	check_int(cloche_instance_remove(fork, true, &err), 0); /* blocks, as in any callback */
	return true;
}

static int fork_job(void *user, cloche_err *e)
{
	const cloche_fork_options options = {.size = sizeof(options), .count = 1};

	return cloche_instance_fork(box, &options, on_fork, NULL, NULL, e);
}

static int write_job(void *user, cloche_err *e)
{
	cloche_files *f = NULL;
	int r = cloche_files_open(box, 0, 0, &f, e);

	if (r == 0)
		r = cloche_files_write(f, "/tmp/seen", 0, 0644, cloche_from_data("x", 1), e);
	cloche_files_close(f);
	return r;
}

static void test_a_watch_a_log_and_a_fork(void)
{
	cloche_job_fn fns[] = {watch_job, follow_job, fork_job, write_job};
	cloche_job *jobs[4] = {NULL};
	struct pollfd fds[4];
	int left = 0;

	watching = false;
	seen = followed = forked = 0;
	for (int i = 0; i < 4; i++)
		fds[i] = (struct pollfd){.fd = -1, .events = POLLIN};
	for (int begun = 0; begun < 4 || left > 0;) {
		if (begun < 3 || (begun == 3 && watching)) {
			must(cloche_job_start(fns[begun], NULL, &jobs[begun], &err) == 0);
			fds[begun].fd = cloche_job_fd(jobs[begun]);
			begun++;
			left++;
		}
		must(poll(fds, 4, 20000) > 0);
		for (int i = 0; i < 4; i++) {
			int r = fds[i].fd >= 0 && fds[i].revents
					? cloche_job_dispatch(jobs[i], &err)
					: 1;

			if (r > 0)
				continue;
			if (r < 0)
				tap_fail("%d: %s", i, err.message);
			fds[i].fd = -1;
			left--;
		}
	}
	check(seen == 1 && followed == 8 && forked == 1);
	for (int i = 0; i < 4; i++)
		cloche_job_free(jobs[i]);
	check_int(nowait_waits, 0);
}

/* --- ends --- */

static void test_a_cancelled_command_is_killed(void)
{
	struct talk t = {.lines = -1000};
	cloche_stats before = {.size = sizeof(before)}, now = before;
	cloche_job *job;

	must(cloche_instance_stats(box, &before, &err) == 0);

	t.run = new_run("echo begun; exec sleep 1000", &job);
	cloche_run_on_output(t.run, on_line, &t);
	while (t.lines == -1000 && cloche_job_dispatch(job, &err) > 0) {
		struct pollfd p = {.fd = cloche_job_fd(job), .events = POLLIN};

		must(poll(&p, 1, 20000) == 1);
	}
	cloche_job_cancel(job);
	check_int(finish(job), -E_CANCELLED);
	cloche_job_free(job);
	for (int i = 0; i < 1000; i++) {
		must(cloche_instance_stats(box, &now, &err) == 0);
		if (now.commands_running == before.commands_running)
			break;
		pause_ms(5);
	}
	check_int(now.commands_running, before.commands_running);
	cloche_run_free(t.run);
}

static void test_the_sandbox_is_made_and_removed_by_jobs(void)
{
	check_int(run_job(box_remove), 0);
	cloche_instance_free(box);
	check(becomes_zero(count_dirs));
	check(becomes_zero(count_marked));
	check_int(threads(), 1);
	check_int(nowait_waits, 0);
}

/* Cancel the job at its turn'th turn. Return its result. */
static int cancel_at(cloche_job_fn fn, int turn)
{
	cloche_job *job = NULL;
	int r;

	must(cloche_job_start(fn, NULL, &job, &err) == 0);
	while ((r = cloche_job_dispatch(job, &err)) > 0) {
		struct pollfd p = {.fd = cloche_job_fd(job), .events = POLLIN};

		if (turn-- == 0)
			cloche_job_cancel(job);
		must(poll(&p, 1, 20000) == 1);
	}
	cloche_job_free(job);
	return r;
}

static int create_and_remove_job(void *user, cloche_err *e)
{
	int r = box_make(user, e);

	if (r < 0)
		return r;
	r = box_remove(user, e);
	/* Whoever was not told to cancel the removal does it. */
	if (r < 0) {
		job_hold_cancel();
		(void)cloche_instance_remove(box, true, NULL);
		job_release_cancel();
	}
	cloche_instance_free(box);
	return r;
}

static void test_nothing_is_left_of_what_is_cancelled(void)
{
	int turn = 0, cancelled = 0, ended = 0, r;

	/* One job has more turns than the next: what is awaited may have come already. */
	while (ended < 3 && turn < 100 && tap_ok_now) {
		r = cancel_at(create_and_remove_job, turn++);
		if (r < 0 && r != -E_CANCELLED)
			tap_fail("turn %d: %s", turn, err.message);
		*(r < 0 ? &cancelled : &ended) += 1;
	}
	printf("# %d turns, %d were cancelled\n", turn, cancelled);
	check(cancelled > 0 && ended == 3);
	check(becomes_zero(count_dirs));
	check(becomes_zero(count_marked));
	check_int(threads(), 1);
	check_int(nowait_waits, 0);
}

static void everything(void)
{
	must(run_job(box_make) == 0);
	run_test(test_many_at_once);
	run_test(test_some_are_cancelled);
	run_test(test_input_is_written_while_it_runs);
	run_test(test_input_that_nobody_wants);
	run_test(test_a_talk);
	run_test(test_input_that_cannot_be_written);
	run_test(test_a_watch_a_log_and_a_fork);
	run_test(test_a_cancelled_command_is_killed);
	run_test(test_the_sandbox_is_made_and_removed_by_jobs);
	run_test(test_nothing_is_left_of_what_is_cancelled);
}

int main(void)
{
	fd_raise_limit();
	runs = (int)tap_rounds(60);
	execs = (int)tap_rounds(70);
	calls = (int)tap_rounds(40);
	all_kinds = runs + execs + calls + (int)tap_rounds(30);
	return run_everything(everything);
}
