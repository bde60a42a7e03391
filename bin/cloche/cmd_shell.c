/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include "foreground.h"
#include "json_out.h"

enum { DEFAULT_TIMEOUT_MS = 30000 };

struct shell_options {
	bool json, interactive;
	uint64_t timeout_ms;
};

static const struct option options[] = {
	{"timeout", 0, "TIME", "end the command after TIME (default 30s)", set_duration,
		.at = offsetof(struct shell_options, timeout_ms)},
	{"interactive", 'i', NULL, "pass standard input even if it is a terminal",
		.at = offsetof(struct shell_options, interactive)},
	{"json", 0, NULL,
		"print {isolation, success, stdout, stderr, exitCode, executionTime, ...}",
		.at = offsetof(struct shell_options, json)},
	{0},
};

static int run_shell(
	cloche_instance *i, const char *text, const struct shell_options *o, cloche_err *err)
{
	const char *const argv[] = {"/bin/sh", "-c", text, NULL};
	const struct foreground f = {.interactive = o->interactive,
		.no_output = o->json,
		.stays = true,
		.again = "cloche attach"};
	_cleanup_(run_freep) cloche_run *run = NULL;
	bool ran;
	int r = cloche_run_new_in(i, argv, &run, err);

	if (r < 0)
		return r;
	cloche_run_set_timeout(run, o->timeout_ms);
	r = foreground_run(run, &f, &ran);
	if (ran && o->json && !json_print(json_shell_result(run)))
		r = EXIT_CLOCHE;
	return r;
}

static int main_shell(void *ctx, const struct operands *operands, cloche_err *err)
{
	_cleanup_(instance_freep) cloche_instance *i = NULL;
	int r;

	if (operands->n != 2)
		return wrong_usage(err, "for example: cloche shell ID 'ls | wc -l'",
			operands->n < 2 ? "shell: needs an id and a command string"
					: "shell: the command has to be one string: quote it");
	r = cloche_instance_open(operands->v[0], &i, err);
	return r < 0 ? r : run_shell(i, operands->v[1], ctx, err);
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
	.tables = {&(const struct option_table){"Options", options}},
	.ctx = &(struct shell_options){.timeout_ms = DEFAULT_TIMEOUT_MS},
	.run = main_shell,
};
