/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs and fork(). */
#include "base/err.h"
#include "job/job.h"
#include "tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static cloche_job *start(cloche_job_fn fn, void *user)
{
	cloche_job *job = NULL;

	must(cloche_job_start(fn, user, &job, NULL) == 0);
	return job;
}

static bool is_due(const cloche_job *job)
{
	struct pollfd p = {.fd = cloche_job_fd(job), .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static int read_one_job(void *user, cloche_err *err)
{
	char byte;

	return job_read(*(const int *)user, &byte, 1) == 1 ? 0 : -E_CANCELLED;
}

static void test_a_forked_child_leaves_jobs_alone(void)
{
	int fds[2], status = -1;
	cloche_job *job;
	pid_t child;

	must(pipe2(fds, O_CLOEXEC) == 0);
	job = start(read_one_job, &fds[0]);
	check_int(cloche_job_dispatch(job, NULL), 1);
	fflush(stdout);
	child = fork();
	must(child >= 0);
	if (child == 0) {
		check_int(cloche_job_dispatch(job, NULL), -E_USAGE);
		cloche_job_cancel(job);
		cloche_job_free(job);
		_exit(tap_ok_now ? 0 : 1);
	}
	must(waitpid(child, &status, 0) == child);
	check_int(status, 0);
	check(!is_due(job));
	must(write(fds[1], "x", 1) == 1);
	check(is_due(job));
	check_int(cloche_job_dispatch(job, NULL), 0);
	cloche_job_free(job);
	close(fds[0]);
	close(fds[1]);
}

static int fork_job(void *user, cloche_err *err)
{
	const int *fds = user;
	pid_t child = fork();
	int status = -1;
	char byte;

	must(child >= 0);
	if (child == 0)
		_exit(job_is_here() || job_read(fds[0], &byte, 1) != 1);
	must(job_wait(NULL, 0, 50) == 0);
	must(write(fds[1], "x", 1) == 1 && job_wait_child(child, &status) == 0);
	return status == 0 ? 0 : err_set(err, E_INTERNAL, "%d", status);
}

/* A child that goes on in the job's function blocks where it waits: nobody dispatches it there. */
static void test_a_child_of_a_job_waits_by_itself(void)
{
	struct pollfd p = {.events = POLLIN};
	cloche_job *job;
	int fds[2], r;

	must(pipe2(fds, O_CLOEXEC) == 0);
	fflush(stdout);
	job = start(fork_job, fds);
	p.fd = cloche_job_fd(job);
	while ((r = cloche_job_dispatch(job, NULL)) > 0)
		must(poll(&p, 1, -1) == 1);
	check_int(r, 0);
	cloche_job_free(job);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	run_test(test_a_forked_child_leaves_jobs_alone);
	run_test(test_a_child_of_a_job_waits_by_itself);
	return tap_done();
}
