/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include "foreground.h"

#include <unistd.h>

enum { SHOWN_FIRST = 16 * 1024 /* bytes of earlier output to show */ };

struct attach_options {
	uint32_t exec;
	bool no_stdin;
	char keys[3];
};

static const struct option options[] = {
	{"exec", 0, "N", "join command N (default: the latest that runs)", set_exec,
		.at = offsetof(struct attach_options, exec)},
	{"no-stdin", 0, NULL, "only watch: pass no input",
		.at = offsetof(struct attach_options, no_stdin)},
	{"detach-keys", 0, "KEYS", DETACH_KEYS_HELP, set_detach_keys,
		.at = offsetof(struct attach_options, keys)},
	{0},
};

static int attach_run(cloche_run *run, const struct attach_options *o, cloche_err *err)
{
	const struct foreground f = {.tty = isatty(STDIN_FILENO) && !o->no_stdin,
		.no_input = o->no_stdin,
		.joined = true,
		.stays = true,
		.again = "cloche attach"};
	int r = cloche_run_set_detach_keys(run, o->keys, err);

	if (r < 0)
		return r;
	cloche_run_set_log_offset(run, SHOWN_FIRST, true);
	return foreground_run(run, &f, NULL);
}

static int main_attach(void *ctx, const struct operands *operands, cloche_err *err)
{
	const struct attach_options *o = ctx;
	_cleanup_(instance_freep) cloche_instance *i = NULL;
	_cleanup_(run_freep) cloche_run *run = NULL;
	int r;

	if (operands->n != 1)
		return wrong_usage(err, "\"cloche ps\" lists the sandboxes",
			operands->n ? "attach: one sandbox at a time"
				    : "attach: which sandbox? Give its id or name");
	r = cloche_instance_open(operands->v[0], &i, err);
	if (r == 0)
		r = cloche_run_new_joining(i, o->exec, &run, err);
	return r < 0 ? r : attach_run(run, o, err);
}

const struct command command_attach = {
	.name = "attach",
	.summary = "join a command that runs in a sandbox",
	.synopsis = "ID [OPTIONS]",
	.text = "Shows the end of what the command has printed, and what it prints from now on.\n"
		"Input goes to the command if it has a terminal or was started with\n"
		"--interactive. Ctrl-P Ctrl-Q leaves it running, Ctrl-C goes to it. The exit\n"
		"status is the command's own.",
	.tables = {&(const struct option_table){"Options", options}},
	.ctx = &(struct attach_options){.keys = DETACH_KEYS},
	.run = main_attach,
};
