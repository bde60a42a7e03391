/* SPDX-License-Identifier: Apache-2.0 */
/* Commands in an existing sandbox. To run one should cost little more than starting two small
 * programs, so nothing here reads files, or frees what the end of the process frees anyway. */
#include "base/envfile.h"
#include "cli.h"
#include "foreground.h"
#include "json_out.h"
#include "refusals.h"

#include <string.h>
#include <unistd.h>

/* --- exec --- */

enum { MAX_ENV = 256, COMMAND_NOT_FOUND = 127 };

struct exec_options {
	bool interactive, tty, no_tty, detach, json, quiet;
	const char *user;    /* NULL: the sandbox's */
	uint64_t timeout_ms; /* UINT64_MAX: that of the sandbox */
	const char *workdir;
	const char *env[MAX_ENV]; /* NAME=VALUE or NAME */
	const char *env_file;
	size_t env_n;
	char keys[3]; /* the detach keys */
};

static int add_env(const struct option *option, void *at, const char *value, cloche_err *err)
{
	struct exec_options *o = at;

	if (*value == '\0' || *value == '=')
		return wrong_usage(err, NULL, "--env is NAME=VALUE or NAME, not \"%s\"", value);
	if (o->env_n == MAX_ENV)
		return wrong_usage(err, NULL, "more than %d variables", MAX_ENV);
	o->env[o->env_n++] = value;
	return 0;
}

static int exec_set_variable(
	void *user, const char *name, const char *value, struct cloche_err *err)
{
	return cloche_run_set_env(user, name, value, err);
}

static const struct option exec_options[] = {
	{"tty", 't', NULL,
		"give the command a terminal (default if standard input, output and error\n"
		"are all a terminal)",
		.at = offsetof(struct exec_options, tty),
		.off = offsetof(struct exec_options, no_tty)},
	{"no-tty", 'T', NULL, "give the command no terminal",
		.at = offsetof(struct exec_options, no_tty),
		.off = offsetof(struct exec_options, tty)},
	{"interactive", 'i', NULL,
		"pass standard input even if it is a terminal; without -t, the command has no\n"
		"terminal of its own; with --detach: keep its input open for \"cloche attach\"",
		.at = offsetof(struct exec_options, interactive)},
	{"detach", 'd', NULL, "return at once and print the command's number",
		.at = offsetof(struct exec_options, detach)},
	{"user", 'u', "NAME|UID[:GROUP]", "user and group inside (default: the sandbox's)",
		.at = offsetof(struct exec_options, user)},
	{"workdir", 'w', "DIR", "working directory inside (default: the sandbox's)",
		.at = offsetof(struct exec_options, workdir)},
	{"env", 'e', "NAME[=VALUE]", "set a variable for this command, or pass yours", add_env},
	{"env-file", 0, "FILE", "the same for each line of FILE, before --env",
		.at = offsetof(struct exec_options, env_file)},
	{"timeout", 0, "TIME", "end the command after TIME (500ms, 30s, 5m): TERM, KILL 5 s later",
		set_duration, .at = offsetof(struct exec_options, timeout_ms)},
	{"detach-keys", 0, "KEYS", DETACH_KEYS_HELP, set_detach_keys,
		.at = offsetof(struct exec_options, keys)},
	{"json", 0, NULL, "print the result as one JSON document",
		.at = offsetof(struct exec_options, json)},
	{"quiet", 0, NULL, "do not say at the end what the network refused",
		.at = offsetof(struct exec_options, quiet)},
	{0},
};

static int exec_configure(cloche_run *run, const struct exec_options *o, cloche_err *err)
{
	cloche_run_options set = CLOCHE_RUN_OPTIONS_INIT;
	int r = o->env_file ? envfile_read(o->env_file, exec_set_variable, run, err) : 0;

	for (size_t i = 0; r == 0 && i < o->env_n; i++)
		r = foreground_set_env(run, o->env[i], err);
	set.workdir = o->workdir;
	set.detach_keys = o->keys;
	set.timeout_ms = o->timeout_ms; /* or CLOCHE_RUN_UNCHANGED */
	return r < 0 ? r : cloche_run_set_options(run, &set, err);
}

static int exec_run_detached(cloche_run *run, const struct exec_options *o, cloche_err *err)
{
	const struct foreground f = {
		.tty = o->tty, .interactive = o->interactive, .no_output = o->json, .stays = true};

	return foreground_detach(run, &f, err);
}

static int exec_run_attached(
	cloche_run *run, const struct exec_options *o, const char *sandbox, const char *program)
{
	const struct foreground f = {
		.tty = foreground_has_tty(o->tty, o->no_tty || o->interactive || o->json),
		.interactive = o->interactive || o->tty,
		.no_output = o->json,
		.stays = true,
		.again = "cloche attach"};
	cloche_network_log *log = o->quiet ? NULL : refusals_open(sandbox, true);
	bool ran;
	int r = foreground_run(run, &f, &ran);

	refusals_say(log, sandbox, true);
	if (ran && r == COMMAND_NOT_FOUND && cloche_run_result(run)->start_failure[0] &&
		!strchr(program, '/') && program_is_here(program))
		say("%s is a program of this machine: \"cloche create --tool %s\" shows it inside",
			program, program);
	return ran && o->json ? status_of_output(json_print_exec(run), r) : r;
}

static int exec_set_user(
	cloche_run *run, const cloche_instance *i, const char *user, cloche_err *err)
{
	cloche_run_options set = CLOCHE_RUN_OPTIONS_INIT;
	int r = find_user(i, user, &set.uid, &set.gid, err);

	return r < 0 ? r : cloche_run_set_options(run, &set, err);
}

static int main_exec(void *ctx, const struct operands *operands, cloche_err *err)
{
	const struct exec_options *o = ctx;
	cloche_instance *i = NULL;
	cloche_run *run = NULL;
	int r;

	if (operands->n < 2)
		return wrong_usage(err, "for example: cloche exec ID -- ls -l",
			operands->n ? "exec: no command was given"
				    : "exec: which sandbox? Give its id or name");
	r = cloche_instance_open(operands->v[0], &i, err);
	if (r == 0)
		r = cloche_run_new_in(i, (const char *const *)operands->v + 1, &run, err);
	if (r == 0 && o->user)
		r = exec_set_user(run, i, o->user, err);
	if (r == 0)
		r = exec_configure(run, o, err);
	if (r == 0)
		r = o->detach ? exec_run_detached(run, o, err)
			      : exec_run_attached(run, o, cloche_instance_id(i), operands->v[1]);
	cloche_instance_free(i);
	return r;
}

const struct command command_exec = {
	.name = "exec",
	.summary = "run a command in a running sandbox",
	.synopsis = "ID [OPTIONS] -- COMMAND [ARG...]",
	.text = "Runs COMMAND in the sandbox ID (an id, its unambiguous beginning, or a name).\n"
		"Its environment, directory and timeout are the sandbox's unless options say\n"
		"otherwise.\n"
		"\n"
		"  cloche exec dev -- make test\n"
		"  echo hi | cloche exec dev -i -- cat\n"
		"  cloche exec dev -- bash               Ctrl-P Ctrl-Q leaves it running\n"
		"  cloche exec dev -d -- npm run dev     then: cloche logs dev --follow\n"
		"\n"
		"Standard input is passed unless it is a terminal. The exit status is the\n"
		"command's own; 124 after a timeout, 125 if cloche itself failed, 126 or 127 if\n"
		"COMMAND could not be run or found, 128+N after signal N. If the client goes\n"
		"away, the command goes on.",
	.tables = {&(const struct option_table){"Options", exec_options}},
	.command_line = true,
	.leading = 1,
	.ctx = &(struct exec_options){.keys = DETACH_KEYS, .timeout_ms = UINT64_MAX},
	.run = main_exec,
};

/* --- shell --- */

enum { DEFAULT_TIMEOUT_MS = 30000 };

struct shell_options {
	bool json, interactive, quiet;
	uint64_t timeout_ms;
};

static const struct option shell_options[] = {
	{"timeout", 0, "TIME", "end the command after TIME (default 30s)", set_duration,
		.at = offsetof(struct shell_options, timeout_ms)},
	{"interactive", 'i', NULL, "pass standard input even if it is a terminal",
		.at = offsetof(struct shell_options, interactive)},
	{"json", 0, NULL,
		"print {isolation, success, stdout, stderr, exitCode, executionTime, ...}",
		.at = offsetof(struct shell_options, json)},
	{"quiet", 0, NULL, "do not say at the end what the network refused",
		.at = offsetof(struct shell_options, quiet)},
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
	cloche_run_options set = CLOCHE_RUN_OPTIONS_INIT;
	cloche_network_log *log;
	bool ran;
	int r = cloche_run_new_in(i, argv, &run, err);

	if (r < 0)
		return r;
	set.timeout_ms = o->timeout_ms;
	r = cloche_run_set_options(run, &set, err);
	if (r < 0)
		return r;
	log = o->quiet ? NULL : refusals_open(cloche_instance_id(i), true);
	r = foreground_run(run, &f, &ran);
	refusals_say(log, cloche_instance_id(i), true);
	return ran && o->json ? status_of_output(json_print(json_shell_result(run)), r) : r;
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
	.tables = {&(const struct option_table){"Options", shell_options}},
	.ctx = &(struct shell_options){.timeout_ms = DEFAULT_TIMEOUT_MS},
	.run = main_shell,
};

/* --- attach --- */

enum { SHOWN_FIRST = 16 * 1024 /* bytes of earlier output to show */ };

struct attach_options {
	uint32_t exec;
	bool no_stdin;
	char keys[3];
};

static const struct option attach_options[] = {
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
	cloche_run_options set = CLOCHE_RUN_OPTIONS_INIT;
	int r;

	set.detach_keys = o->keys;
	set.log_tail = SHOWN_FIRST;
	r = cloche_run_set_options(run, &set, err);
	return r < 0 ? r : foreground_run(run, &f, NULL);
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
	.tables = {&(const struct option_table){"Options", attach_options}},
	.ctx = &(struct attach_options){.keys = DETACH_KEYS},
	.run = main_attach,
};
