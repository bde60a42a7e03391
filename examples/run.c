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
	const cloche_result *end;
	int code;

	if (!sb || cloche_run_new(sb, argv, &run, &err) < 0 || cloche_run_execute(run, &err) < 0) {
		fprintf(stderr, "%s\n%s\n", err.message, err.hint);
		cloche_run_free(run);
		cloche_sandbox_free(sb);
		return 1;
	}
	end = cloche_run_result(run);
	code = end->exit_code;
	printf("%.*s-- %s ended with %d after %llu ms\n", (int)end->stdout_length,
		(const char *)end->stdout_data, end->id, code,
		(unsigned long long)end->duration_ms);
	cloche_run_free(run);
	cloche_sandbox_free(sb);
	return code;
}
