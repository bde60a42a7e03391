/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include "foreground.h"
#include "json_out.h"

#include <string.h>

enum { DEFAULT_TIMEOUT_MS = 30000 };

struct shell_options {
	bool json, interactive;
	uint64_t timeout_ms;
};

static int set_timeout(void *ctx, const char *value, cloche_err *err)
{
	return read_duration("timeout", value, &((struct shell_options *)ctx)->timeout_ms, err);
}

static const struct option options[] = {
	{"timeout", 0, "TIME", "end the command after TIME (default 30s)", set_timeout},
	{"interactive", 'i', NULL, "pass standard input even if it is a terminal",
		.at = offsetof(struct shell_options, interactive)},
	{"json", 0, NULL,
		"print {isolation, success, stdout, stderr, exitCode, executionTime, ...}",
		.at = offsetof(struct shell_options, json)},
};
static const struct option_table table = {
	.options = options, .n = sizeof(options) / sizeof(options[0]), .title = "Options"};

static int run_shell(cloche_instance *i, const char *text, const struct shell_options *o)
{
	const char *const argv[] = {"/bin/sh", "-c", text, NULL};
	const struct foreground f = {.interactive = o->interactive,
		.no_output = o->json,
		.stays = true,
		.again = "cloche attach"};
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_run *run = NULL;
	bool ran;
	int r = cloche_run_new_in(i, argv, &run, &err);

	if (r < 0)
		return complain(&err);
	cloche_run_set_timeout(run, o->timeout_ms);
	r = foreground_run(run, &f, &ran);
	if (ran && o->json && !json_print(json_shell_result(run)))
		r = EXIT_CLOCHE;
	cloche_run_free(run);
	return r;
}

static int main_shell(int argc, char **argv)
{
	struct shell_options o = {.timeout_ms = DEFAULT_TIMEOUT_MS};
	struct operands operands = {0};
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_instance *i = NULL;
	int r = options_read(&command_shell, &o, argc, argv, &operands, &err);

	if (r == 0 && operands.help)
		return 0;
	if (r == 0 && operands.n != 2)
		r = wrong_usage(&err, "for example: cloche shell ID 'ls | wc -l'",
			operands.n < 2 ? "shell: needs an id and a command string"
				       : "shell: the command has to be one string: quote it");
	if (r == 0)
		r = cloche_instance_open(operands.v[0], &i, &err);
	if (r < 0)
		return complain(&err);
	r = run_shell(i, operands.v[1], &o);
	cloche_instance_free(i);
	return r;
}

const struct command command_shell = {
	.name = "shell",
	.summary = "run a line of shell in a running sandbox",
	.synopsis = "ID [OPTIONS] STRING",
	.text = "Runs STRING with /bin/sh -c in the sandbox ID, for at most 30 s.\n"
		"\n"
		"  cloche shell dev 'npm ls | grep react'\n"
		"  cloche shell dev --json 'git status --short'\n"
		"\n"
		"The exit status is that of the shell; see \"cloche help exec\".",
	.tables = {&table},
	.run = main_shell,
};
