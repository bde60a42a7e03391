/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include "foreground.h"

#include <stdio.h>
#include <unistd.h>

enum { SHOWN_FIRST = 16 * 1024 /* bytes of earlier output to show */ };

struct attach_options {
	uint64_t exec;
	bool no_stdin;
	char keys[3];
};

static int set_exec(void *ctx, const char *value, cloche_err *err)
{
	uint64_t *at = &((struct attach_options *)ctx)->exec;

	if (read_number(value, UINT32_MAX, at) && *at > 0)
		return 0;
	return wrong_usage(err, "\"cloche inspect ID\" lists the commands",
		"--exec is the number of a command, not \"%s\"", value);
}

static int set_keys(void *ctx, const char *value, cloche_err *err)
{
	return read_detach_keys(value, ((struct attach_options *)ctx)->keys, err);
}

static const struct option options[] = {
	{"exec", 0, "N", "join command N (default: the latest that runs)", set_exec},
	{"no-stdin", 0, NULL, "only watch: pass no input",
		.at = offsetof(struct attach_options, no_stdin)},
	{"detach-keys", 0, "KEYS", DETACH_KEYS_HELP, set_keys},
};
static const struct option_table table = {
	.options = options, .n = sizeof(options) / sizeof(options[0]), .title = "Options"};

static int attach(cloche_run *run, const struct attach_options *o)
{
	const struct foreground f = {.tty = isatty(STDIN_FILENO) && !o->no_stdin,
		.no_input = o->no_stdin,
		.joined = true,
		.stays = true,
		.again = "cloche attach"};
	cloche_err err = CLOCHE_ERR_INIT;

	if (cloche_run_set_detach_keys(run, o->keys, &err) < 0)
		return complain(&err);
	cloche_run_set_log_offset(run, SHOWN_FIRST, true);
	return foreground_run(run, &f, NULL);
}

static int main_attach(int argc, char **argv)
{
	struct attach_options o = {.keys = DETACH_KEYS};
	struct operands operands = {0};
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_instance *i = NULL;
	cloche_run *run = NULL;
	int r = options_read(&command_attach, &o, argc, argv, &operands, &err);

	if (r == 0 && operands.help)
		return 0;
	if (r == 0 && operands.n != 1)
		r = wrong_usage(&err, "\"cloche ps\" lists the sandboxes",
			operands.n ? "attach: one sandbox at a time"
				   : "attach: which sandbox? Give its id or name");
	if (r == 0)
		r = cloche_instance_open(operands.v[0], &i, &err);
	if (r == 0)
		r = cloche_run_new_joining(i, (uint32_t)o.exec, &run, &err);
	r = r < 0 ? complain(&err) : attach(run, &o);
	cloche_run_free(run);
	cloche_instance_free(i);
	return r;
}

const struct command command_attach = {
	.name = "attach",
	.summary = "join a command that runs in a sandbox",
	.synopsis = "ID [OPTIONS]",
	.text = "Shows the end of what the command has printed, and what it prints from now on.\n"
		"Input goes to the command if it has a terminal or was started with\n"
		"--interactive. Ctrl-P Ctrl-Q leaves it running, Ctrl-C goes to it. The exit\n"
		"status is the command's own.",
	.tables = {&table},
	.run = main_attach,
};
