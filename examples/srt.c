/* SPDX-License-Identifier: Apache-2.0 */
/* Runs "cat NAME" as a settings file of srt allows it: srt FILE NAME */
#include <cloche/run.h>
#include <cloche/srt.h>
#include <stdio.h>

static void warn(const cloche_srt_rule *rule, void *user)
{
	(void)user;
	if (rule->weaker)
		fprintf(stderr, "%s %s: %s\n", rule->key, rule->value, rule->here);
}

int main(int argc, char **argv)
{
	const char *command[] = {"cat", argc == 3 ? argv[2] : NULL, NULL};
	cloche_sandbox *sb = cloche_sandbox_new();
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_run *run = NULL;
	const cloche_result *end;
	int code = 1;

	if (sb && argc == 3 && cloche_srt_explain(argv[1], warn, NULL, &err) == 0 &&
		cloche_sandbox_load_srt_settings(sb, argv[1], &err) == 0 &&
		cloche_run_new(sb, command, &run, &err) == 0 &&
		cloche_run_execute(run, &err) == 0) {
		end = cloche_run_result(run);
		code = end->exit_code;
		fwrite(end->stdout_data, 1, end->stdout_length, stdout);
	} else {
		fprintf(stderr, "%s\n", err.message);
	}
	cloche_run_free(run);
	cloche_sandbox_free(sb);
	return code;
}
