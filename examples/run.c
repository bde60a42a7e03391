/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a command in a sandbox and looks at how it ended. */
#include <cloche/run.h>
#include <stdio.h>

int main(void)
{
	static const char *const argv[] = {
		"sh", "-c", "echo I am $(id -un), and in /home is: $(ls /home)", NULL};
	cloche_sandbox *sb = cloche_sandbox_new();
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_run *run = NULL;
	const void *out;
	size_t n;
	int code;

	if (!sb || cloche_run_new(sb, argv, &run, &err) < 0 || cloche_run_execute(run, &err) < 0) {
		fprintf(stderr, "%s\n%s\n", err.message, err.hint);
		cloche_run_free(run);
		cloche_sandbox_free(sb);
		return 1;
	}
	out = cloche_run_stdout(run, &n);
	code = cloche_run_exit_code(run);
	printf("%.*s-- %s ended with %d after %llu ms\n", (int)n, (const char *)out,
		cloche_run_id(run), code, (unsigned long long)cloche_run_duration_ms(run));
	cloche_run_free(run);
	cloche_sandbox_free(sb);
	return code;
}
