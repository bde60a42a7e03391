/* SPDX-License-Identifier: Apache-2.0 */
/* Runs an agent's task, in an image that is stored or on the host's root: task CONTEXT_DIR PROMPT
 * [IMAGE]. Needs Claude Code on this machine and ANTHROPIC_API_KEY in the environment; the sandbox
 * gets only a surrogate of the key. */
#include <cloche/task.h>
#include <stdio.h>
#include <string.h>

static void on_progress(const char *line, void *user)
{
	(void)user;
	fprintf(stderr, "%s\n", line);
}

int main(int argc, char **argv)
{
	cloche_sandbox *sb = cloche_sandbox_new();
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_task *task = NULL;
	int status = 125;

	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: task CONTEXT_DIR PROMPT [IMAGE]\n");
		cloche_sandbox_free(sb);
		return 2;
	}
	if (sb && cloche_sandbox_set(sb, "workspace", ".", &err) == 0 &&
		cloche_sandbox_startup(sb, &err) == 0 &&
		cloche_sandbox_create_task(sb, NULL, argv[3], argv[1], NULL, 0, &task, &err) == 0) {
		cloche_task_on_progress(task, on_progress, NULL);
		if (cloche_task_execute(task, argv[2], strlen(argv[2]), &err) == 0) {
			const cloche_task_result *end = cloche_task_result_of(task);

			printf("%s: %s\n", end->outcome_name, end->response ? end->response : "");
			status = end->exit_status;
		}
	}
	if (status == 125)
		fprintf(stderr, "%s\n%s\n", err.message, err.hint);
	cloche_task_free(task);
	cloche_sandbox_free(sb);
	return status;
}
