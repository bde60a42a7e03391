/* SPDX-License-Identifier: Apache-2.0 */
/* Code of node, python or the shell: in a sandbox that is there, or in one of its own. */
#include "cli.h"
#include "foreground.h"
#include "json_out.h"
#include "planted.h"
#include "terminal_filter.h"

#include <cloche/code.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct eval_options {
	struct sandbox_options sandbox; /* first: the library's options find it */
	const char *runtime, *file, *code;
	bool expression;
};

struct text {
	char *p;
	size_t n;
};

static const struct option options[] = {
	{"runtime", 0, "shell|node|python",
		"which interpreter (default: that of the sandbox; without an ID it is needed)",
		.at = offsetof(struct eval_options, runtime)},
	{"code", 'c', "CODE", "the code itself", .at = offsetof(struct eval_options, code)},
	{"file", 0, "FILE", "the code is in FILE of this machine; -: standard input (default)",
		.at = offsetof(struct eval_options, file)},
	{"expr", 0, NULL, "the code is an expression: print its value (node, python)",
		.at = offsetof(struct eval_options, expression)},
};
static const struct option_table table = {
	.options = options, .n = sizeof(options) / sizeof(options[0]), .title = "Options"};

/* --- the code --- */

/* One byte more than there may be is enough for the library to refuse it. */
static int read_all(int fd, const char *name, struct text *ret, cloche_err *err)
{
	const size_t most = CLOCHE_CODE_MAX + 1;
	size_t size = 0;

	for (;;) {
		ssize_t n;

		if (ret->n == size && size < most) {
			char *grown;

			size = size ? size * 2 : 64 << 10;
			size = size < most ? size : most;
			grown = realloc(ret->p, size);
			if (!grown)
				return wrong_usage(err, NULL, "out of memory");
			ret->p = grown;
		}
		n = read(fd, ret->p + ret->n, size - ret->n);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return wrong_usage(
				err, NULL, "eval: cannot read %s: %s", name, strerror(errno));
		if (n == 0)
			return 0;
		ret->n += (size_t)n;
	}
}

static int read_code(const struct eval_options *o, struct text *ret, cloche_err *err)
{
	bool from_stdin = !o->file || strcmp(o->file, "-") == 0;
	int fd, r;

	if (o->file && o->code)
		return wrong_usage(err, "leave one of them out",
			"eval: -c has code, --file names a file of it");
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
		return read_all(STDIN_FILENO, "standard input", ret, err);
	fd = open(o->file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return wrong_usage(err, NULL, "eval: cannot read %s: %s", o->file, strerror(errno));
	r = read_all(fd, o->file, ret, err);
	close(fd);
	return r;
}

/* --- the result --- */

static json_t *json_signal(int number)
{
	static const char *const names[] = {[SIGHUP] = "SIGHUP",
		[SIGINT] = "SIGINT",
		[SIGQUIT] = "SIGQUIT",
		[SIGILL] = "SIGILL",
		[SIGTRAP] = "SIGTRAP",
		[SIGABRT] = "SIGABRT",
		[SIGBUS] = "SIGBUS",
		[SIGFPE] = "SIGFPE",
		[SIGKILL] = "SIGKILL",
		[SIGUSR1] = "SIGUSR1",
		[SIGSEGV] = "SIGSEGV",
		[SIGUSR2] = "SIGUSR2",
		[SIGPIPE] = "SIGPIPE",
		[SIGALRM] = "SIGALRM",
		[SIGTERM] = "SIGTERM",
		[SIGXCPU] = "SIGXCPU",
		[SIGXFSZ] = "SIGXFSZ",
		[SIGSYS] = "SIGSYS"};

	if (number <= 0)
		return json_null();
	if (number < (int)(sizeof(names) / sizeof(names[0])) && names[number])
		return json_string(names[number]);
	return json_sprintf("SIG%d", number);
}

/* The value is JSON already, with digits that a number of jansson's would not keep. */
static bool print_json(const cloche_run *run, bool expression)
{
	const char *value = cloche_run_value_json(run), *text, *repr;
	json_t *doc = json_shell_result(run);
	size_t n, repr_n;

	if (!doc || json_object_set_new(doc, "signal", json_signal(cloche_run_exit_signal(run))) ||
		json_object_set_new(doc, "timedOut", json_boolean(cloche_run_timed_out(run))))
		return false;
	if (!expression)
		return json_print(doc);
	text = cloche_run_value_text(run, &n);
	repr = cloche_run_value_repr(run, &repr_n);
	if (json_object_set_new(doc, "text", text ? json_bytes(text, n) : json_null()) ||
		json_object_set_new(doc, "repr", repr ? json_bytes(repr, repr_n) : json_null()) ||
		json_object_set_new(doc, "hasJson", json_boolean(value != NULL)))
		return false;
	return json_print_with(doc, "value", value ? value : "null");
}

static bool print_value(const cloche_run *run)
{
	struct terminal_filter f;
	size_t n;
	const char *text = cloche_run_value_text(run, &n);
	bool ok;

	if (!text) {
		if (cloche_run_exit_code(run) == 0)
			say("the expression ended without a value");
		return true;
	}
	if (cloche_run_value_cut(run))
		say("the value was cut: it is longer than 16 MiB");
	terminal_filter_open(&f, STDOUT_FILENO, false);
	ok = terminal_filter_write(&f, STDOUT_FILENO, text, n) &&
	     terminal_filter_write(&f, STDOUT_FILENO, "\n", 1);
	return terminal_filter_close(&f, STDOUT_FILENO) && ok;
}

static int eval_run(cloche_run *run, const struct eval_options *o, bool own)
{
	const struct foreground f = {.no_input = true,
		.no_output = o->sandbox.json,
		.stays = !own,
		.again = own || o->expression ? NULL : "cloche attach"};
	bool ran, ok = true;
	int r = foreground_run(run, &f, &ran);

	if (ran && own)
		json_decref(planted_say(cloche_run_id(run)));
	if (ran && o->sandbox.json)
		ok = print_json(run, o->expression);
	else if (ran && o->expression)
		ok = print_value(run);
	if (!ok) {
		say("cannot write the result");
		return EXIT_CLOCHE;
	}
	return r;
}

/* --- where --- */

static int new_own(
	struct eval_options *o, const struct text *code, cloche_run **ret, cloche_err *err)
{
	int r = sandbox_options_finish(&o->sandbox, err);

	if (r == 0)
		r = sandbox_options_command(&o->sandbox, NULL, err);
	if (r < 0)
		return r;
	return cloche_run_new_code(o->sandbox.sb, o->runtime,
		o->expression ? CLOCHE_CODE_EXPRESSION : CLOCHE_CODE_PROGRAM, code->p, code->n, ret,
		err);
}

static int set_env(cloche_run *run, const char *text, cloche_err *err)
{
	char *name = strdup(text), *equals = name ? strchr(name, '=') : NULL;
	int r;

	if (!equals) {
		free(name);
		return wrong_usage(err, NULL, "--env is NAME=VALUE, not \"%s\"", text);
	}
	*equals = '\0';
	r = cloche_run_set_env(run, name, equals + 1, err);
	free(name);
	return r;
}

/* What is said of the sandbox holds for this code alone, where it can. */
static int configure(cloche_run *run, const struct given *g, cloche_err *err)
{
	uint64_t ms;
	int r;

	if (strcmp(g->name, "env") == 0)
		return set_env(run, g->value, err);
	if (strcmp(g->name, "workdir") == 0)
		return cloche_run_set_workdir(run, g->value, err);
	if (strcmp(g->name, "timeout") != 0)
		return wrong_usage(err, "leave out the ID, or give it to \"cloche create\"",
			"eval: --%s is for a sandbox that is made for the code", g->name);
	r = cloche_parse_duration(g->value, &ms, err);
	if (r == 0)
		cloche_run_set_timeout(run, ms);
	return r;
}

static int new_in(const struct eval_options *o, const char *id, const struct text *code,
	cloche_run **ret, cloche_err *err)
{
	cloche_instance *i = NULL;
	int r = cloche_instance_open(id, &i, err);

	if (r < 0)
		return r;
	r = cloche_run_new_code_in(i, o->runtime,
		o->expression ? CLOCHE_CODE_EXPRESSION : CLOCHE_CODE_PROGRAM, code->p, code->n, ret,
		err);
	cloche_instance_free(i);
	for (size_t k = 0; r == 0 && k < o->sandbox.given_n; k++)
		r = configure(*ret, &o->sandbox.given[k], err);
	return r;
}

static int check(const struct eval_options *o, const struct operands *operands, cloche_err *err)
{
	if (operands->n > 1)
		return wrong_usage(err, "code is given by -c or --file",
			"eval: takes one id, and so not %s", operands->v[1]);
	if (operands->n == 0 && !o->runtime)
		return wrong_usage(err, "for example: cloche eval --runtime python -c 'print(1)'",
			"eval: which sandbox, or which runtime?");
	if (o->sandbox.tty || o->sandbox.interactive)
		return wrong_usage(err, "cloche exec ID -t -- node",
			"eval: code has no terminal and no input");
	return 0;
}

static int main_eval(int argc, char **argv)
{
	struct eval_options o = {0};
	struct operands operands = {0};
	struct text code = {0};
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_run *run = NULL;
	int r = sandbox_options_init(&o.sandbox, &err);

	if (r == 0)
		r = options_read(&command_eval, &o, argc, argv, &operands, &err);
	if (r == 0 && !operands.help)
		r = check(&o, &operands, &err);
	if (r == 0 && !operands.help)
		r = read_code(&o, &code, &err);
	if (r == 0 && !operands.help)
		r = operands.n ? new_in(&o, operands.v[0], &code, &run, &err)
			       : new_own(&o, &code, &run, &err);
	if (r < 0)
		r = complain(&err);
	else if (!operands.help)
		r = eval_run(run, &o, operands.n == 0);
	cloche_run_free(run);
	free(code.p);
	sandbox_options_done(&o.sandbox);
	return r;
}

const struct command command_eval = {
	.name = "eval",
	.summary = "run code of node, python or the shell",
	.synopsis = "ID|--runtime RUNTIME [OPTIONS] [-c CODE | --file FILE]",
	.text = "Runs code in the sandbox ID, or without one in a sandbox of its own, for at most "
		"30 s.\n"
		"\n"
		"  cloche eval --runtime node --expr -c '[1, 2, 3].map(x => x * 2)'\n"
		"  cloche eval dev --file build.py\n"
		"  generate-code | cloche eval dev --runtime python --json\n"
		"\n"
		"Without --expr the code is a program: what it prints is the output. With --expr "
		"the "
		"value is\n"
		"printed as \"node -p\" and Python's print() show it; --json has it as JSON, too.\n"
		"\n"
		"In a sandbox that is there, of the options of a sandbox --timeout, --env and "
		"--workdir\n"
		"are for the code. The exit status is the code's; 1 after an uncaught exception, "
		"124 "
		"after\n"
		"a timeout, 127 if the interpreter is not there.",
	.tables = {&table, &sandbox_option_table, &sandbox_command_table},
	.run = main_eval,
};
