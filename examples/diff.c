/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps what a command changes and lists it: diff DIR COMMAND [ARG...]. The next call with the same
 * DIR goes on from there. */
#include <cloche/diff.h>
#include <cloche/run.h>
#include <stdio.h>

static bool print(const cloche_change *change, void *user)
{
	int *count = user;

	/* The name is the sandbox's choice: not for a terminal as it is. */
	printf("%c %c %04o %8llu ", (int)change->kind, (int)change->type, change->mode,
		(unsigned long long)change->size);
	for (size_t i = 0; i < change->path_length; i++) {
		unsigned char c = (unsigned char)change->path[i];

		putchar(c < 0x20 || c >= 0x7f ? '?' : c);
	}
	putchar('\n');
	return ++*count < 1000;
}

int main(int argc, char **argv)
{
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_sandbox *sandbox = cloche_sandbox_new();
	cloche_run *run = NULL;
	int count = 0, r = -1;

	if (argc < 3 || !sandbox) {
		fprintf(stderr, "usage: diff DIR COMMAND [ARG...]\n");
		cloche_sandbox_free(sandbox);
		return 2;
	}
	r = cloche_sandbox_set(sandbox, "keep-changes", argv[1], &err);
	if (r == 0)
		r = cloche_run_new(sandbox, (const char *const *)argv + 2, &run, &err);
	if (r == 0)
		r = cloche_run_execute(run, &err);
	if (r == 0) {
		printf("exit code %d\n", cloche_run_result(run)->exit_code);
		r = cloche_diff_kept(argv[1], print, &count, &err);
	}
	if (r < 0)
		fprintf(stderr, "%s\n", err.message);
	cloche_run_free(run);
	cloche_sandbox_free(sandbox);
	return r < 0 ? 1 : 0;
}
