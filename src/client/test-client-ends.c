/* SPDX-License-Identifier: Apache-2.0 */
/* Ends that come from outside a process: of its time, or of somebody's patience. */
#include "client/test-job.h"

/* The commands sleep for 60 s: well before that nobody has waited for them. */
#define BEFORE_SLEEP_ENDS (40 * USEC_PER_SEC)

static void nobody_waits_for_grandchildren(void)
{
	uint64_t start = clock_mono_usec();
	struct job j;

	job_init(&j, "sleep 60 & echo hi");
	job_run(&j);
	check_int(j.result.end.status, 0);
	check_out(j, 1, "hi\n");
	check(clock_mono_usec() - start < BEFORE_SLEEP_ENDS);
	job_done(&j);
}

static void a_timeout_ends_everything(void)
{
	uint64_t start = clock_mono_usec();
	struct job j;

	job_init(&j, "echo before; (trap '' HUP; sleep 60) & sleep 60");
	j.spec.timeout_usec = 300 * USEC_PER_MSEC;
	job_run(&j);
	check_int(j.code, 0);
	check(j.result.end.timed_out);
	check(ended_by(&j, SIGTERM));
	check_out(j, 1, "before\n");
	check_int(j.ended.reason, CTL_REASON_TIMEOUT);
	check(clock_mono_usec() - start < BEFORE_SLEEP_ENDS);
	job_done(&j);
	check_int(count_marked(), 0);
}

static void a_timeout_does_not_ask_twice(void)
{
	uint64_t start = clock_mono_usec(), took;
	struct job j;

	job_init(&j, "trap '' TERM; echo deaf; while :; do sleep 1; done");
	j.spec.timeout_usec = 1000 * USEC_PER_MSEC;
	j.grace_usec = 400 * USEC_PER_MSEC;
	job_run(&j);
	took = clock_mono_usec() - start;
	check(j.result.end.timed_out && j.result.end.signaled);
	check_int(j.result.end.status, SIGKILL);
	check_out(j, 1, "deaf\n");
	check(took >= 1400 * USEC_PER_MSEC); /* only KILL ends it */
	job_done(&j);
}

static void a_trapped_timeout_keeps_its_code(void)
{
	struct job j;

	job_init(&j, "trap 'echo bye; exit 9' TERM; while :; do sleep 0.05; done");
	j.spec.timeout_usec = 1000 * USEC_PER_MSEC;
	job_run(&j);
	check(j.result.end.timed_out && !j.result.end.signaled);
	check_int(j.result.end.status, 9);
	check_out(j, 1, "bye\n");
	job_done(&j);
}

/* --- from another thread --- */

static void *stop_soon(void *arg)
{
	struct job *j = arg;

	wait_for_word(j);
	check_int(client_stop(j->client, 5 * USEC_PER_SEC), 0);
	return NULL;
}

static void *stop_twice(void *arg)
{
	struct job *j = arg;

	wait_for_word(j);
	check_int(client_stop(j->client, 60 * USEC_PER_SEC), 0);
	pause_ms(100);
	check_int(client_stop(j->client, 0), 0);
	return NULL;
}

static void *interrupt_soon(void *arg)
{
	struct job *j = arg;

	wait_for_word(j);
	check_int(client_signal(j->client, SIGINT, CTL_SCOPE_GROUP), 0);
	return NULL;
}

static void stopped_by_another_thread(void)
{
	struct job j;

	job_init(&j, "echo up; sleep 60");
	run_beside(&j, stop_soon);
	check_int(j.code, 0);
	check(j.result.end.stopped && !j.result.end.timed_out);
	check(ended_by(&j, SIGTERM));
	check_out(j, 1, "up\n");
	check_int(j.ended.reason, CTL_REASON_STOPPED);
	check_int(client_stop(j.client, 0), -E_NOT_FOUND);
	job_done(&j);

	job_init(&j, "trap '' TERM; echo up; while :; do sleep 1; done");
	run_beside(&j, stop_twice);
	check(j.result.end.stopped && j.result.end.signaled);
	check_int(j.result.end.status, SIGKILL);
	job_done(&j);
}

static void signalled_by_another_thread(void)
{
	struct job j;

	job_init(&j, "trap 'echo got; exit 6' INT; echo up; while :; do sleep 0.05; done");
	run_beside(&j, interrupt_soon);
	check_int(j.result.end.status, 6);
	check(!j.result.end.signaled && !j.result.end.stopped);
	check_out(j, 1, "up\ngot\n");
	job_done(&j);
}

static void the_sandbox_has_a_deadline(void)
{
	struct client_start start = {
		.m = {.timeout_usec = 200 * USEC_PER_MSEC, .grace_usec = USEC_PER_SEC}};
	struct job j;
	int config;

	job_init(&j, "sleep 60");
	start.room = &j.room;
	must(client_new(&start, &j.client, &config, &j.err) == 0);
	job_exec(&j);
	check_int(j.code, 0);
	check(j.result.end.timed_out);
	check(ended_by(&j, SIGTERM));
	check_int(client_finish(j.client, &j.ended, NULL), 0);
	check_int(j.ended.reason, CTL_REASON_TIMEOUT);
	job_done(&j);
}

static void run_list(void)
{
	run_test(nobody_waits_for_grandchildren);
	run_test(a_timeout_ends_everything);
	run_test(a_timeout_does_not_ask_twice);
	run_test(a_trapped_timeout_keeps_its_code);
	run_test(stopped_by_another_thread);
	run_test(signalled_by_another_thread);
	run_test(the_sandbox_has_a_deadline);
}

int main(void)
{
	return run_everything(run_list);
}
