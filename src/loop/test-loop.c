/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/rand.h"
#include "base/str.h"
#include "loop/loop.h"
#include "seeded.h"
#include "tap.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

struct fixture {
	struct loop *loop;
	struct loop_io a, b;
	struct loop_timer timers[200];
	struct loop_job job;
	int fired, order_ok, pipe_a[2], pipe_b[2];
	uint64_t last;
};
static struct fixture f;

static void remove_other(struct loop_io *io, uint32_t events)
{
	f.fired++;
	loop_io_remove(io == &f.a ? &f.b : &f.a);
	loop_io_remove(io);
	loop_stop(f.loop, 7);
}

static void test_removal_in_a_callback_silences_the_batch(void)
{
	must((f.loop = loop_new()));
	must(fd_pipe(f.pipe_a) == 0 && fd_pipe(f.pipe_b) == 0);
	must(write(f.pipe_a[1], "x", 1) == 1 && write(f.pipe_b[1], "x", 1) == 1);
	must(loop_io_add(f.loop, &f.a, f.pipe_a[0], EPOLLIN, remove_other) == 0);
	must(loop_io_add(f.loop, &f.b, f.pipe_b[0], EPOLLIN, remove_other) == 0);
	check_int(loop_run(f.loop), 7);
	check_int(f.fired, 1);
	f.loop = loop_free(f.loop);
	for (int i = 0; i < 2; i++) {
		fd_close(f.pipe_a[i]);
		fd_close(f.pipe_b[i]);
	}
}

static void on_timer(struct loop_timer *t)
{
	if (t->at < f.last)
		f.order_ok = 0;
	f.last = t->at;
	f.fired++;
	if (f.fired == 100)
		loop_stop(f.loop, 0);
}

static void test_timers_fire_in_order_and_cleared_ones_do_not(void)
{
	uint64_t now = clock_mono_usec();

	f = (struct fixture){.order_ok = 1};
	must((f.loop = loop_new()));
	for (size_t i = 0; i < ARRAY_SIZE(f.timers); i++)
		must(loop_timer_set(f.loop, &f.timers[i], now + rand_below(5000), on_timer) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(f.timers); i += 2)
		must(loop_timer_set(f.loop, &f.timers[i], now + rand_below(9000), on_timer) == 0);
	for (size_t i = 1; i < ARRAY_SIZE(f.timers); i += 2)
		loop_timer_clear(&f.timers[i]);
	check_int(loop_run(f.loop), 0);
	check_int(f.fired, 100);
	check(f.order_ok);
	f.loop = loop_free(f.loop);
}

static void on_job(struct loop_job *job)
{
	if (++f.fired < 3)
		loop_defer(f.loop, job, on_job);
	else
		loop_stop(f.loop, 1);
}

static void test_a_job_may_queue_itself_again(void)
{
	f = (struct fixture){0};
	must((f.loop = loop_new()));
	loop_defer(f.loop, &f.job, on_job);
	loop_defer(f.loop, &f.job, on_job);
	check_int(loop_run(f.loop), 1);
	check_int(f.fired, 3);
	f.loop = loop_free(f.loop);
}

static void test_a_turn_is_one_iteration(void)
{
	f = (struct fixture){0};
	must((f.loop = loop_new()));
	must(loop_timer_set(f.loop, &f.timers[0], 0, on_timer) == 0);
	must(loop_timer_set(f.loop, &f.timers[1], clock_mono_usec() + 2000, on_timer) == 0);
	check_int(loop_turn(f.loop), 0);
	check_int(f.fired, 1);
	check_int(loop_turn(f.loop), 0); /* waits */
	check_int(f.fired, 2);
	f.loop = loop_free(f.loop);
}

static void stop_when_calm(struct loop_timer *t)
{
	if (syscall(SYS_sched_getscheduler, 0) == SCHED_OTHER)
		loop_stop(f.loop, 2);
	else
		must(loop_timer_set(f.loop, t, loop_now(f.loop) + USEC_PER_MSEC, stop_when_calm) ==
			0);
}

static void test_batches_while_much_is_under_way(void)
{
	const struct sched_param p = {0};

	f = (struct fixture){0};
	must((f.loop = loop_new()) && syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &p) == 0);
	loop_set_under_way(f.loop, 100); /* not allowed yet */
	check_int(syscall(SYS_sched_getscheduler, 0), SCHED_OTHER);
	loop_allow_batches(f.loop);
	loop_set_under_way(f.loop, 1);
	check_int(syscall(SYS_sched_getscheduler, 0), SCHED_OTHER);
	loop_set_under_way(f.loop, 100);
	check_int(syscall(SYS_sched_getscheduler, 0), SCHED_BATCH);
	loop_set_under_way(f.loop, 1); /* maybe for a moment only */
	check_int(syscall(SYS_sched_getscheduler, 0), SCHED_BATCH);
	must(loop_timer_set(f.loop, &f.timers[0], 0, stop_when_calm) == 0);
	check_int(loop_run(f.loop), 2); /* it ends when the policy has changed */
	f.loop = loop_free(f.loop);
}

static void test_batches_leave_a_chosen_policy(void)
{
	const struct sched_param p = {0};
	struct loop *l = loop_new();

	must(l && syscall(SYS_sched_setscheduler, 0, SCHED_IDLE, &p) == 0);
	loop_allow_batches(l);
	loop_set_under_way(l, 100);
	check_int(syscall(SYS_sched_getscheduler, 0), SCHED_IDLE);
	loop_set_under_way(l, 0);
	check_int(syscall(SYS_sched_getscheduler, 0), SCHED_IDLE);
	loop_free(l);
}

int main(void)
{
	seeded_begin();
	run_test(test_removal_in_a_callback_silences_the_batch);
	run_test(test_timers_fire_in_order_and_cleared_ones_do_not);
	run_test(test_a_job_may_queue_itself_again);
	run_test(test_a_turn_is_one_iteration);
	run_test(test_batches_while_much_is_under_way);
	run_test(test_batches_leave_a_chosen_policy); /* the last: it stays so */
	return tap_done();
}
