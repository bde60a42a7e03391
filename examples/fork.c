/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a sandbox with a file, two copies of it, changes the file in the first copy, and shows it
 * in all three. */
#include <cloche/fork.h>
#include <cloche/run.h>
#include <stdio.h>

struct forks {
	cloche_instance *all[2];
	unsigned n;
	cloche_err *err;
};

static int run(const cloche_instance *sandbox, const char *script, cloche_err *err)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	cloche_run *command = NULL;
	const cloche_result *end;
	int r = cloche_run_new_in(sandbox, argv, &command, err);

	if (r == 0)
		r = cloche_run_execute(command, err);
	if (r == 0) {
		end = cloche_run_result(command);
		fwrite(end->stdout_data, 1, end->stdout_length, stdout);
	}
	cloche_run_free(command);
	return r;
}

/* The handle is borrowed: one of our own stays. */
static bool take(const cloche_instance *fork, void *user)
{
	struct forks *f = user;

	return cloche_instance_open(cloche_instance_id(fork), &f->all[f->n], f->err) == 0 &&
	       ++f->n > 0;
}

static int fork_it(const cloche_instance *sandbox, struct forks *f, cloche_err *err)
{
	cloche_fork_options options = CLOCHE_FORK_INIT;
	int r = run(sandbox, "echo one > /tmp/file", err);

	options.count = 2;
	if (r == 0)
		r = cloche_instance_fork(sandbox, &options, take, NULL, f, err);
	if (r == 0)
		r = run(f->all[0], "echo two >> /tmp/file; echo first: $(cat /tmp/file)", err);
	if (r == 0)
		r = run(f->all[1], "echo second: $(cat /tmp/file)", err);
	return r == 0 ? run(sandbox, "echo original: $(cat /tmp/file)", err) : r;
}

int main(void)
{
	cloche_sandbox *configuration = cloche_sandbox_new();
	cloche_instance *sandbox = NULL;
	cloche_err err = CLOCHE_ERR_INIT;
	struct forks forks = {.err = &err};
	int r;

	if (!configuration)
		return 1;
	r = cloche_sandbox_set(configuration, "limits", "best-effort", &err);
	if (r == 0)
		r = cloche_instance_create(configuration, NULL, NULL, &sandbox, &err);
	if (r == 0)
		r = fork_it(sandbox, &forks, &err);
	if (r < 0)
		fprintf(stderr, "%s\n", err.message);
	for (unsigned i = 0; i < forks.n; i++) {
		(void)cloche_instance_remove(forks.all[i], true, NULL);
		cloche_instance_free(forks.all[i]);
	}
	if (sandbox)
		(void)cloche_instance_remove(sandbox, true, NULL);
	cloche_instance_free(sandbox);
	cloche_sandbox_free(configuration);
	return r < 0;
}
