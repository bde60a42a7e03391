/* SPDX-License-Identifier: Apache-2.0 */
/* Runs 200 commands at once, each in a sandbox of its own, with one thread and one poll loop. That
 * needs some 1,600 descriptors. */
#include <cloche/job.h>
#include <cloche/run.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>

enum { RUNS = 200 };

static cloche_job *jobs[RUNS];
static cloche_run *runs[RUNS];

static int start(const cloche_sandbox *sb, int i, cloche_err *err)
{
	char text[32];
	const char *argv[] = {"sh", "-c", text, NULL};

	snprintf(text, sizeof(text), "echo %d", i);
	return cloche_run_new(sb, argv, &runs[i], err) == 0
		       ? cloche_run_start(runs[i], &jobs[i], err)
		       : -1;
}

int main(void)
{
	cloche_sandbox *sb = cloche_sandbox_new();
	cloche_err err = CLOCHE_ERR_INIT;
	struct pollfd fds[RUNS];
	struct rlimit limit;
	int left = RUNS, right = 0;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i < RUNS; i++) {
		if (!sb || start(sb, i, &err) < 0)
			return fprintf(stderr, "%s\n%s\n", err.message, err.hint), 1;
		fds[i] = (struct pollfd){.fd = cloche_job_fd(jobs[i]), .events = POLLIN};
	}
	while (left > 0 && poll(fds, RUNS, -1) > 0) {
		for (int i = 0; i < RUNS; i++) {
			if (!fds[i].revents || cloche_job_dispatch(jobs[i], &err) == 1)
				continue;
			fds[i].fd = -1; /* this job has ended */
			left--;
			right += cloche_run_result(runs[i])->stdout_length > 1;
		}
	}
	printf("%d of %d commands have printed something\n", right, RUNS);
	for (int i = 0; i < RUNS; i++) {
		cloche_job_free(jobs[i]);
		cloche_run_free(runs[i]);
	}
	cloche_sandbox_free(sb);
	return right == RUNS ? 0 : 1;
}
