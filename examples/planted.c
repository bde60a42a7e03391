/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a command in a directory and says what it left there that this machine would obey:
 * planted DIR COMMAND [ARG...]. */
#include <cloche/planted.h>
#include <cloche/run.h>
#include <stdio.h>

static void print(const cloche_planted *thing, void *user)
{
	int *count = user;

	++*count;
	if (thing->set_aside)
		printf("set aside %s, %s; back: %s\n", thing->quoted, thing->what, thing->restore);
	else if (thing->notice)
		printf("%s\n", thing->what);
	else
		printf("look at %s, %s\n", thing->quoted, thing->what);
}

static void ignore(const cloche_planted *thing, void *user)
{
	(void)thing;
	(void)user;
}

int main(int argc, char **argv)
{
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_sandbox *sandbox = cloche_sandbox_new();
	cloche_run *run = NULL;
	int count = 0, r = -1;

	if (argc < 3 || !sandbox) {
		fprintf(stderr, "usage: planted DIR COMMAND [ARG...]\n");
		cloche_sandbox_free(sandbox);
		return 2;
	}
	r = cloche_sandbox_set(sandbox, "workspace", argv[1], &err);
	if (r == 0)
		r = cloche_run_new(sandbox, (const char *const *)argv + 2, &run, &err);
	if (r == 0)
		r = cloche_run_execute(run, &err);
	/* What only looks at them would leave them to be told once more. */
	if (r == 0)
		r = cloche_planted_look(cloche_run_result(run)->id, print, &count, &err);
	if (r == 0)
		r = cloche_planted_take(cloche_run_result(run)->id, ignore, NULL, &err);
	if (r < 0)
		fprintf(stderr, "planted: %s\n", err.message);
	cloche_run_free(run);
	cloche_sandbox_free(sandbox);
	return r < 0 ? 1 : count > 0;
}
