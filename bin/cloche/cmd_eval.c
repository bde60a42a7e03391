/* SPDX-License-Identifier: Apache-2.0 */
/* Runs code of node, python or the shell, in an existing sandbox or in one of its own. */
#include "cli.h"
#include "eval_show.h"
#include "foreground.h"
#include "json_out.h"
#include "planted.h"

#include <cloche/host_file.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct eval_options {
	struct sandbox_options sandbox; /* must be first: the library's options set it */
	const char *runtime, *file, *code, *context, *output;
	bool expression, cell, contexts, interrupt, restart;
};

struct text {
	char *p;
	size_t n;
};

#define NO_INPUT "code has no terminal and no input: cloche exec ID -t -- node"
static const struct option options[] = {
	{"runtime", 0, "shell|node|python",
		"the interpreter (default: that of the sandbox; required without an ID)",
		.at = offsetof(struct eval_options, runtime)},
	{"code", 'c', "CODE", "the code itself", .at = offsetof(struct eval_options, code)},
	{"file", 0, "FILE", "read the code from FILE of this machine; -: standard input (default)",
		.at = offsetof(struct eval_options, file)},
	{"expr", 0, NULL, "the code is an expression: print its value (node, python)",
		.at = offsetof(struct eval_options, expression)},
	{"cell", 0, NULL,
		"the code is a cell of a notebook: print the value of the last expression",
		.at = offsetof(struct eval_options, cell)},
	{"output", 'o', "FILE",
		"write the first result of FILE's type (.png, .svg, .html, ...); the code is a\n"
		"cell",
		.at = offsetof(struct eval_options, output)},
	{"context", 0, "NAME",
		"use an interpreter that lives on in the sandbox: variables stay; the code is a\n"
		"cell",
		.at = offsetof(struct eval_options, context)},
	{"interrupt", 0, NULL, "with --context: interrupt the code that it runs",
		.at = offsetof(struct eval_options, interrupt)},
	{"restart", 0, NULL, "with --context: end it; the next call begins it anew",
		.at = offsetof(struct eval_options, restart)},
	{"contexts", 0, NULL, "list the sandbox's contexts",
		.at = offsetof(struct eval_options, contexts)},
	{"tty", 't', .instead = NO_INPUT},
	{"no-tty", 'T', .instead = NO_INPUT},
	{"interactive", 'i', .instead = NO_INPUT},
	{0},
};

/* --- the code --- */

/* The library refuses code that is too long. */
static int read_file(int fd, const char *name, struct text *ret, cloche_err *err)
{
	int failure = read_whole(fd, CLOCHE_CODE_MAX, &ret->p, &ret->n);

	return failure ? wrong_usage(err, NULL, "eval: cannot read %s: %s", name, strerror(failure))
		       : 0;
}

static int read_code(const struct eval_options *o, struct text *ret, cloche_err *err)
{
	bool from_stdin = !o->file || strcmp(o->file, "-") == 0;
	int fd, r;

	if (o->file && o->code)
		return wrong_usage(
			err, "leave out one of them", "eval: both -c and --file give code");
	if (o->code) {
		ret->p = strdup(o->code);
		ret->n = strlen(o->code);
		return ret->p ? 0 : wrong_usage(err, NULL, "out of memory");
	}
	if (!o->file && isatty(STDIN_FILENO))
		return wrong_usage(err,
			"for example: cloche eval --runtime node -c 'console.log(1)'",
			"eval: no code was given (-c CODE, --file FILE, or on standard input)");
	if (from_stdin)
		return read_file(STDIN_FILENO, "standard input", ret, err);
	r = cloche_host_open(o->file, &fd, err);
	if (r < 0)
		return r;
	r = read_file(fd, o->file, ret, err);
	close(fd);
	return r;
}

/* --- the run --- */

static enum cloche_code_kind kind_of(const struct eval_options *o)
{
	if (o->expression)
		return CLOCHE_CODE_EXPRESSION;
	return o->cell || o->output || o->context ? CLOCHE_CODE_CELL : CLOCHE_CODE_PROGRAM;
}

static cloche_code eval_code(const struct eval_options *o, const struct text *text)
{
	cloche_code c = CLOCHE_CODE_INIT;

	c.runtime = o->runtime;
	c.kind = kind_of(o);
	c.text = text->p;
	c.length = text->n;
	c.context = o->context;
	return c;
}

static int eval_run(cloche_run *run, const struct eval_options *o, bool own)
{
	enum cloche_code_kind kind = kind_of(o);
	const struct foreground f = {.no_input = true,
		.no_output = o->sandbox.json,
		.stays = !own,
		.no_timeout = o->context != NULL,
		.again = own || kind != CLOCHE_CODE_PROGRAM ? NULL : "cloche attach"};
	bool ran, ok = true;
	int r = foreground_run(run, &f, &ran);

	if (!ran)
		return r;
	if (own)
		json_decref(planted_say(cloche_run_result(run)->id));
	if (o->context)
		eval_tell_context(run, o->context);
	if (o->sandbox.json)
		ok = eval_print_json(run, kind, o->context);
	else if (kind != CLOCHE_CODE_PROGRAM)
		ok = eval_print_values(run, kind);
	if (status_of_output(ok, 0) != 0)
		return EXIT_CLOCHE;
	if (o->output && r == 0 && !eval_write_file(run, o->output))
		return EXIT_CLOCHE;
	return r;
}

/* --- contexts --- */

static bool eval_list_one(const cloche_context *c, void *user)
{
	static const char *const states[] = {[CLOCHE_CONTEXT_IDLE] = "idle",
		[CLOCHE_CONTEXT_BUSY] = "busy",
		[CLOCHE_CONTEXT_ENDED] = "ended"};

	if (user)
		json_array_append_new(user,
			json_pack("{s:s, s:s, s:s, s:I}", "name", c->name, "runtime", c->runtime,
				"state", states[c->state], "exec", (json_int_t)c->number));
	else
		printf("%-20s  %-7s  %s\n", c->name, c->runtime, states[c->state]);
	return true;
}

static int list_contexts(const cloche_instance *i, bool as_json, cloche_err *err)
{
	json_t *all = as_json ? json_array() : NULL;
	int r = cloche_instance_contexts(i, eval_list_one, all, err);

	if (r == 0 && as_json)
		return json_print(all) ? 0 : EXIT_CLOCHE;
	json_decref(all);
	return r;
}

/* Operations that need no code. */
static bool is_about_contexts(const struct eval_options *o)
{
	return o->contexts || o->interrupt || o->restart;
}

static int about_contexts(const struct eval_options *o, const char *id, cloche_err *err)
{
	_cleanup_(instance_freep) cloche_instance *i = NULL;
	int r = cloche_instance_open(id, &i, err);

	if (r < 0)
		return r;
	if (o->contexts)
		return list_contexts(i, o->sandbox.json, err);
	if (o->interrupt)
		return cloche_instance_interrupt_context(i, o->context, err);
	return cloche_instance_restart_context(i, o->context, err);
}

/* --- where --- */

static int new_own(
	struct eval_options *o, const struct text *code, cloche_run **ret, cloche_err *err)
{
	const cloche_code c = eval_code(o, code);
	int r = sandbox_options_finish(&o->sandbox, NULL, err);

	return r < 0 ? r : cloche_run_new_code(o->sandbox.sb, &c, ret, err);
}

static int not_for_existing(const char *option, cloche_err *err)
{
	return wrong_usage(err, "leave out the ID, or give the option to \"cloche create\"",
		"eval: --%s is for a sandbox that is made for the code", option);
}

/* Apply options of a sandbox to this code only, if that is possible. */
static int eval_configure(
	cloche_run *run, const struct eval_options *o, const struct given *g, cloche_err *err)
{
	cloche_run_options set = CLOCHE_RUN_OPTIONS_INIT;
	int r = 0;

	if (o->context && strcmp(g->name, "timeout") != 0)
		return wrong_usage(err,
			"the code can set it itself; \"cloche env\" sets variables of "
			"contexts that begin later",
			"eval: --%s cannot be given to a context", g->name);
	if (strcmp(g->name, "env") == 0)
		return foreground_set_env(run, g->value, err);
	if (strcmp(g->name, "workdir") == 0)
		set.workdir = g->value;
	else if (strcmp(g->name, "timeout") == 0)
		r = read_duration(g->name, g->value, &set.timeout_ms, err);
	else
		return not_for_existing(g->name, err);
	return r < 0 ? r : cloche_run_set_options(run, &set, err);
}

/* Refuse the command's own options that only make a sandbox, as eval_configure() does the
 * library's. */
static int check_existing(const struct sandbox_options *o, cloche_err *err)
{
	const char *name = o->config              ? "config"
			   : o->no_config         ? "no-config"
			   : o->no_workspace      ? "no-workspace"
			   : o->network_log_live  ? "network-log-live"
			   : o->allow_unsandboxed ? "allow-unsandboxed"
						  : NULL;

	return name ? not_for_existing(name, err) : 0;
}

static int new_in(const struct eval_options *o, const char *id, const struct text *code,
	cloche_run **ret, cloche_err *err)
{
	_cleanup_(instance_freep) cloche_instance *i = NULL;
	const cloche_code c = eval_code(o, code);
	int r = check_existing(&o->sandbox, err);

	if (r == 0)
		r = cloche_instance_open(id, &i, err);
	if (r < 0)
		return r;
	r = cloche_run_new_code_in(i, &c, ret, err);
	for (size_t k = 0; r == 0 && k < o->sandbox.given_n; k++)
		r = eval_configure(*ret, o, &o->sandbox.given[k], err);
	return r;
}

static int check_contexts(
	const struct eval_options *o, const struct operands *operands, cloche_err *err)
{
	if (operands->n == 0)
		return wrong_usage(err, "for example: cloche eval dev --context lab -c 'x = 41'",
			"eval: a context belongs to a sandbox: which one?");
	if (o->contexts + o->interrupt + o->restart > 1)
		return wrong_usage(
			err, NULL, "eval: use only one of --contexts, --interrupt and --restart");
	if (o->contexts ? o->context != NULL : !o->context)
		return wrong_usage(err, NULL,
			o->contexts ? "eval: --contexts lists all contexts: leave out --context"
				    : "eval: which context? (--context NAME)");
	if (is_about_contexts(o) && (o->code || o->file || o->output || o->expression || o->cell ||
					    o->runtime || o->sandbox.given_n > 0))
		return wrong_usage(err, NULL,
			"eval: --contexts, --interrupt and --restart take no code, and no option "
			"for it");
	return 0;
}

static int eval_check(
	const struct eval_options *o, const struct operands *operands, cloche_err *err)
{
	if (operands->n > 1)
		return wrong_usage(err, "code is given by -c or --file",
			"eval: takes one id, but was also given %s", operands->v[1]);
	if (operands->n == 0 && !o->runtime && !o->context && !is_about_contexts(o))
		return wrong_usage(err, "for example: cloche eval --runtime python -c 'print(1)'",
			"eval: which sandbox, or which runtime?");
	if (o->expression && o->cell)
		return wrong_usage(err, NULL, "eval: use --expr or --cell, not both");
	if (o->output && !eval_type_of(o->output))
		return wrong_usage(err,
			"the name has to end in .png, .jpeg, .svg, .html, .md, .tex, .json or .txt",
			"eval: %s: its suffix names no type of result", o->output);
	if (o->context || is_about_contexts(o))
		return check_contexts(o, operands, err);
	return 0;
}

/* A last operand "-" is code from standard input. */
static int take_dash(struct eval_options *o, struct operands *operands, cloche_err *err)
{
	if (operands->n == 0 || strcmp(operands->v[operands->n - 1], "-") != 0)
		return 0;
	if (o->file || o->code)
		return wrong_usage(err, "leave out one of them",
			"eval: \"-\" is code from standard input; -c or --file gives code, too");
	o->file = operands->v[--operands->n];
	return 0;
}

static int main_eval(void *ctx, const struct operands *given, cloche_err *err)
{
	struct eval_options *o = ctx;
	struct operands operands = *given;
	struct text code = {0};
	cloche_run *run = NULL;
	int r = take_dash(o, &operands, err);

	if (r == 0)
		r = eval_check(o, &operands, err);
	if (r == 0 && is_about_contexts(o))
		return about_contexts(o, operands.v[0], err);
	if (r == 0)
		r = read_code(o, &code, err);
	if (r == 0)
		r = operands.n ? new_in(o, operands.v[0], &code, &run, err)
			       : new_own(o, &code, &run, err);
	if (r == 0)
		r = eval_run(run, o, operands.n == 0);
	cloche_run_free(run);
	free(code.p);
	return r;
}

const struct command command_eval = {
	.name = "eval",
	.summary = "run code of node, python or the shell",
	.synopsis = "ID|--runtime RUNTIME [OPTIONS] [-c CODE | --file FILE | -]",
	.text = "Runs code in the sandbox ID or, without an ID, in a sandbox of its own, for at\n"
		"most 30 s.\n"
		"\n"
		"  cloche eval --runtime node --expr -c '[1, 2, 3].map(x => x * 2)'\n"
		"  cloche eval dev --file build.py\n"
		"  generate-code | cloche eval dev --runtime python --json\n"
		"\n"
		"Without --expr, the code is a program: what it prints is the output. With\n"
		"--expr, its value is printed as \"node -p\" and Python's print() show it; --json\n"
		"has the value as JSON, too.\n"
		"\n"
		"With --context, the code goes to an interpreter that lives on in the sandbox:\n"
		"\n"
		"  cloche eval dev --context lab -c 'x = 41'\n"
		"  cloche eval dev --context lab -c 'x + 1'\n"
		"\n"
		"With an ID, only these options of a sandbox can be given, for the code:\n"
		"--timeout, --env and --workdir (with --context, --timeout alone). The exit\n"
		"status is the code's; 1 after an uncaught exception, 124 after a timeout, 127 if\n"
		"the interpreter is not there.",
	.tables = {&(const struct option_table){"Options", options}, &sandbox_option_table,
		&sandbox_command_table},
	.ctx = &(struct eval_options){{0}},
	.run = main_eval,
	.done = sandbox_options_done,
};
