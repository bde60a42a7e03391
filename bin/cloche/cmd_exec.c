/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a command in an existing sandbox. This should cost little more than starting two small
 * programs, so nothing here reads files, or frees what the end of the process frees anyway. */
#include "cli.h"
#include "foreground.h"
#include "json_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ENV = 256 };

struct exec_options {
	bool tty, no_tty, interactive, detach, json;
	bool has_user, has_timeout;
	uint32_t uid, gid;
	uint64_t timeout_ms;
	const char *workdir;
	const char *env[MAX_ENV]; /* NAME=VALUE */
	size_t env_n;
	char keys[3]; /* the detach keys */
};

static int set_tty(void *ctx, const char *value, cloche_err *err)
{
	struct exec_options *o = ctx;

	o->tty = true;
	o->no_tty = false;
	return 0;
}

static int set_no_tty(void *ctx, const char *value, cloche_err *err)
{
	struct exec_options *o = ctx;

	o->no_tty = true;
	o->tty = false;
	return 0;
}

static int set_timeout(void *ctx, const char *value, cloche_err *err)
{
	struct exec_options *o = ctx;

	o->has_timeout = true;
	return read_duration("timeout", value, &o->timeout_ms, err);
}

static int add_env(void *ctx, const char *value, cloche_err *err)
{
	struct exec_options *o = ctx;
	const char *equals = strchr(value, '=');

	if (!equals || equals == value)
		return wrong_usage(err, NULL, "--env is NAME=VALUE, not \"%s\"", value);
	if (o->env_n == MAX_ENV)
		return wrong_usage(err, NULL, "more than %d variables", MAX_ENV);
	o->env[o->env_n++] = value;
	return 0;
}

static int set_user(void *ctx, const char *value, cloche_err *err)
{
	struct exec_options *o = ctx;

	o->has_user = true;
	return read_user(value, &o->uid, &o->gid, err);
}

static int set_keys(void *ctx, const char *value, cloche_err *err)
{
	return read_detach_keys(value, ((struct exec_options *)ctx)->keys, err);
}

static const struct option options[] = {
	{"tty", 't', NULL,
		"give the command a terminal (default if standard input, output and error\n"
		"are all a terminal)",
		set_tty},
	{"no-tty", 'T', NULL, "give the command no terminal", set_no_tty},
	{"interactive", 'i', NULL,
		"pass standard input even if it is a terminal; without -t, the command has no\n"
		"terminal of its own; with --detach: keep its input open for \"cloche attach\"",
		.at = offsetof(struct exec_options, interactive)},
	{"detach", 'd', NULL, "return at once and print the command's number",
		.at = offsetof(struct exec_options, detach)},
	{"user", 'u', "UID[:GID]", "user and group inside (default 0:0)", set_user},
	{"workdir", 'w', "DIR", "working directory inside (default: the sandbox's)",
		.at = offsetof(struct exec_options, workdir)},
	{"env", 'e', "NAME=VALUE", "set a variable for this command", add_env},
	{"timeout", 0, "TIME", "end the command after TIME (500ms, 30s, 5m): TERM, KILL 5 s later",
		set_timeout},
	{"detach-keys", 0, "KEYS", DETACH_KEYS_HELP, set_keys},
	{"json", 0, NULL, "print the result as one JSON document",
		.at = offsetof(struct exec_options, json)},
};
static const struct option_table table = {
	.options = options, .n = sizeof(options) / sizeof(options[0]), .title = "Options"};

static int configure(cloche_run *run, const struct exec_options *o, cloche_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < o->env_n; i++) {
		char *name = strdup(o->env[i]), *equals = name ? strchr(name, '=') : NULL;

		if (!equals)
			return wrong_usage(err, NULL, "out of memory");
		*equals = '\0';
		r = cloche_run_set_env(run, name, equals + 1, err);
		free(name);
	}
	if (r == 0 && o->workdir)
		r = cloche_run_set_workdir(run, o->workdir, err);
	if (r == 0)
		r = cloche_run_set_detach_keys(run, o->keys, err);
	if (o->has_user)
		cloche_run_set_user(run, o->uid, o->gid);
	if (o->has_timeout)
		cloche_run_set_timeout(run, o->timeout_ms);
	return r;
}

static int run_detached(cloche_run *run, const struct exec_options *o)
{
	cloche_err err = CLOCHE_ERR_INIT;
	char number[16];
	bool ok;

	cloche_run_set_detached(run, true);
	cloche_run_set_keep_input(run, o->interactive);
	if (o->tty)
		cloche_run_set_tty(run, STDIN_FILENO);
	if (cloche_run_execute(run, &err) < 0)
		return complain(&err);
	if (cloche_run_start_failure(run)[0]) {
		say("%s", cloche_run_start_failure(run));
		return cloche_run_exit_code(run);
	}
	snprintf(number, sizeof(number), "%u", cloche_run_number(run));
	ok = o->json ? json_print(json_pack("{s:s, s:I}", "id", cloche_run_id(run), "number",
			       (json_int_t)cloche_run_number(run)))
		     : put_line(number);
	if (!ok)
		say("started command %u in %s", cloche_run_number(run), cloche_run_id(run));
	return ok ? 0 : EXIT_CLOCHE;
}

static int run_attached(cloche_run *run, const struct exec_options *o)
{
	const struct foreground f = {
		.tty = foreground_has_tty(o->tty, o->no_tty || o->interactive || o->json),
		.interactive = o->interactive || o->tty,
		.no_output = o->json,
		.stays = true,
		.again = "cloche attach"};
	bool ran;
	int r = foreground_run(run, &f, &ran);

	if (ran && o->json && print_exec_json(run) < 0)
		r = EXIT_CLOCHE;
	return r;
}

static int main_exec(int argc, char **argv)
{
	struct exec_options o = {.keys = DETACH_KEYS};
	struct operands operands = {0};
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_instance *i = NULL;
	cloche_run *run = NULL;
	int r = options_read(&command_exec, &o, argc, argv, &operands, &err);

	if (r == 0 && operands.help)
		return 0;
	if (r == 0 && operands.n < 2)
		r = wrong_usage(&err, "for example: cloche exec ID -- ls -l",
			operands.n ? "exec: no command was given"
				   : "exec: which sandbox? Give its id or name");
	if (r == 0)
		r = cloche_instance_open(operands.v[0], &i, &err);
	if (r == 0)
		r = cloche_run_new_in(i, (const char *const *)operands.v + 1, &run, &err);
	cloche_instance_free(i);
	if (r == 0)
		r = configure(run, &o, &err);
	if (r < 0)
		return complain(&err);
	return o.detach ? run_detached(run, &o) : run_attached(run, &o);
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
	.tables = {&table},
	.command_line = true,
	.leading = 1,
	.run = main_exec,
};
