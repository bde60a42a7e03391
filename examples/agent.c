/* SPDX-License-Identifier: Apache-2.0 */
/* Runs an agent in a directory, once, with a home of its own, and lists the homes of agents:
 * agent AGENT DIR [ARGUMENT...] */
#include <cloche/agent.h>
#include <stdio.h>

static void tell(const char *text, void *user)
{
	(void)user;
	fprintf(stderr, "%s\n", text);
}

static void show(const cloche_home *home, void *user)
{
	(void)user;
	printf("%s: %s in %s%s\n", home->name, home->agent, home->project,
		home->in_use ? " (in use)" : "");
}

static int run_agent(int argc, char **argv, cloche_sandbox *sb, cloche_run **run, cloche_err *err)
{
	const char *const *arguments = argc > 3 ? (const char *const *)argv + 3 : NULL;
	int r = cloche_sandbox_set(sb, "workspace", argv[2], err);

	if (r == 0)
		r = cloche_agent_run_new(sb, argv[1], arguments, false, tell, NULL, run, err);
	return r == 0 ? cloche_run_execute(*run, err) : r;
}

int main(int argc, char **argv)
{
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_sandbox *sb = cloche_sandbox_new();
	cloche_run *run = NULL;
	int r;

	if (!sb || argc < 3 || !cloche_agent_exists(argv[1]))
		return 2;
	r = run_agent(argc, argv, sb, &run, &err);
	if (r == 0) {
		const cloche_result *end = cloche_run_result(run);

		printf("%.*s", (int)end->stdout_length, (const char *)end->stdout_data);
		printf("exit %d\n", end->exit_code);
		r = cloche_home_list(show, NULL, &err);
	}
	if (r < 0)
		fprintf(stderr, "%s\n", err.message);
	cloche_run_free(run);
	cloche_sandbox_free(sb);
	return r < 0;
}
