/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a sandbox that stays, starts a command in it, follows its log, runs another, ends it all.
 */
#include <cloche/instance.h>
#include <stdio.h>

static bool print(bool is_stderr, uint64_t offset, const void *data, size_t length, void *user)
{
	printf("[%s at %llu] %.*s", is_stderr ? "stderr" : "stdout", (unsigned long long)offset,
		(int)length, (const char *)data);
	return true;
}

static int start_and_follow(const cloche_instance *sandbox, cloche_err *err)
{
	static const char *const argv[] = {
		"sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.2; done; echo done >&2", NULL};
	cloche_run *run = NULL;
	cloche_log *log = NULL;
	int r = cloche_run_new_in(sandbox, argv, &run, err);

	if (r == 0) {
		cloche_run_options o = CLOCHE_RUN_OPTIONS_INIT;

		o.detached = true;
		r = cloche_run_set_options(run, &o, err);
	}
	if (r == 0)
		r = cloche_run_execute(run, err);
	if (r == 0)
		r = cloche_log_open(sandbox, cloche_run_result(run)->number, &log, err);
	if (r == 0)
		r = cloche_log_follow(log, 0, print, NULL, NULL, err);
	cloche_log_free(log);
	cloche_run_free(run);
	return r;
}

static int run_and_wait(const cloche_instance *sandbox, cloche_err *err)
{
	static const char *const argv[] = {"sh", "-c", "echo $GREETING from $PWD", NULL};
	cloche_run *run = NULL;
	cloche_run_options o = CLOCHE_RUN_OPTIONS_INIT;
	const cloche_result *end;
	int r = cloche_run_new_in(sandbox, argv, &run, err);

	o.workdir = "/tmp";
	if (r == 0)
		r = cloche_run_set_env(run, "GREETING", "hello", err);
	if (r == 0)
		r = cloche_run_set_options(run, &o, err);
	if (r == 0)
		r = cloche_run_execute(run, err);
	if (r == 0) {
		end = cloche_run_result(run);
		fwrite(end->stdout_data, 1, end->stdout_length, stdout);
	}
	cloche_run_free(run);
	return r;
}

/* What changed in the mounts of a sandbox on another machine, both ways. */
static int copy_files(const cloche_instance *sandbox, cloche_err *err)
{
	cloche_synced done = {.size = sizeof(done)};
	int r = cloche_instance_sync(sandbox, NULL, NULL, &done, err);

	if (r == -CLOCHE_E_UNSUPPORTED)
		return 0; /* it is on this machine, with the files themselves */
	if (r == 0)
		printf("%llu came, %llu went\n", (unsigned long long)done.came,
			(unsigned long long)done.sent);
	return r;
}

int main(void)
{
	cloche_sandbox *configuration = cloche_sandbox_new();
	cloche_instance *sandbox = NULL;
	cloche_err err = CLOCHE_ERR_INIT;
	int r;

	if (!configuration)
		return 1;
	r = cloche_instance_create(configuration, NULL, NULL, &sandbox, &err);
	if (r == 0)
		r = start_and_follow(sandbox, &err);
	if (r == 0)
		r = run_and_wait(sandbox, &err);
	if (r == 0)
		r = copy_files(sandbox, &err);
	if (sandbox)
		(void)cloche_instance_remove(sandbox, true, NULL);
	if (r < 0)
		fprintf(stderr, "%s\n%s\n", err.message, err.hint);
	cloche_instance_free(sandbox);
	cloche_sandbox_free(configuration);
	return r < 0;
}
