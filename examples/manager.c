/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a command in as many sandboxes as were asked for, a few at a time, as the environment says
 * (AGENTGATE_MAX_CONCURRENT_RUNS), and leaves none behind, however it ends.
 * Usage: example-manager COUNT RUN-ID COMMAND [ARGUMENT...] */
#include <cloche/manager.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct job {
	cloche_manager *manager;
	const char *run_id, *const *argv;
	pthread_t thread;
	int status;
};

static int run_in(const cloche_instance *sandbox, const char *const *argv, cloche_err *err)
{
	cloche_run *run = NULL;
	const cloche_result *end;
	int r = cloche_run_new_in(sandbox, argv, &run, err);

	if (r == 0)
		r = cloche_run_execute(run, err);
	if (r == 0) {
		end = cloche_run_result(run);
		printf("%s: %.*s", end->id, (int)end->stdout_length,
			(const char *)end->stdout_data);
		r = end->exit_code;
	}
	cloche_run_free(run);
	return r;
}

/* In a sandbox of its own, when it is this one's turn. */
static void *do_job(void *arg)
{
	struct job *job = arg;
	cloche_sandbox *sb = cloche_manager_configure(job->manager);
	cloche_instance *sandbox = NULL;
	cloche_err err = CLOCHE_ERR_INIT;
	int r = cloche_manager_create(job->manager, sb, job->run_id, UINT64_MAX, &sandbox, &err);

	if (r == 0) {
		r = run_in(sandbox, job->argv, &err);
		if (cloche_manager_destroy(job->manager, cloche_instance_id(sandbox), &err) < 0)
			r = -1;
	}
	if (r < 0)
		fprintf(stderr, "%s\n", err.message);
	cloche_instance_free(sandbox);
	cloche_sandbox_free(sb);
	job->status = r;
	return NULL;
}

static void warn(const char *text, void *user)
{
	fprintf(stderr, "%s\n", text);
}

int main(int argc, char **argv)
{
	unsigned long count = argc > 3 ? strtoul(argv[1], NULL, 10) : 0, failed = 0;
	struct job *jobs = calloc(count + 1, sizeof(*jobs));
	cloche_manager_options options = CLOCHE_MANAGER_OPTIONS_INIT;
	cloche_manager *manager = NULL;
	cloche_err err = CLOCHE_ERR_INIT;

	options.cleanup_at_exit = true;
	if (count == 0 || count > 1000 || !jobs) {
		fprintf(stderr, "usage: %s COUNT RUN-ID COMMAND [ARGUMENT...]\n", argv[0]);
		return 2;
	}
	if (cloche_manager_open(warn, NULL, &manager, &err) < 0 ||
		cloche_manager_set_options(manager, &options, &err) < 0) {
		fprintf(stderr, "%s\n", err.message);
		return 1;
	}
	for (unsigned long i = 0; i < count; i++) {
		jobs[i] = (struct job){.manager = manager,
			.run_id = argv[2],
			.argv = (const char *const *)argv + 3};
		if (pthread_create(&jobs[i].thread, NULL, do_job, &jobs[i]) != 0)
			return 1;
	}
	for (unsigned long i = 0; i < count; i++) {
		pthread_join(jobs[i].thread, NULL);
		failed += jobs[i].status != 0;
	}
	printf("%lu of %lu ended well\n", count - failed, count);
	return failed ? 1 : 0;
}
