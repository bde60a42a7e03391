/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: an interpreter runs with a fixed driver on its command line. The driver
 * reads its standard input to the end: a line (empty, or kind and nonce if there are results), then
 * the code. After that the input is empty, so the code finds no input. The shell has no such line:
 * all of its input is code. In a context the input never ends; each call is one line of it
 * (run_context.c).
 *
 * The nonce comes with the code and not on the command line, which every process inside can read. A
 * process that learns it can forge the results of its own code and nothing else. */
#include "api/run/code.h"
#include "api/instance/instance.h"
#include "api/run/run.h"
#include "base/base64.h"
#include "base/rand.h"
#include "base/sized.h"

#include <stdio.h>

/* cat must not depend on the code's own PATH: without it, nothing would be run and the result would
 * still be success. */
#define SHELL_DRIVER "eval \"$(PATH=/usr/bin:/bin:$PATH cat || echo exit 127)\""

static const struct code_runtime runtimes[] = {
	{"shell", {"/bin/sh", "-c", SHELL_DRIVER, "sh"}, "dash", false, 2},
	{"node", {"node", "-e", code_driver_js}, "nodejs", true, 2},
	{"python", {"python3", "-u", "-c", code_driver_py}, "python3", true, 3},
};

static int find_runtime(const char *name, enum cloche_code_kind kind,
	const struct code_runtime **ret, struct cloche_err *err)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(runtimes) && strcmp(runtimes[i].name, name) != 0)
		i++;
	if (i == ARRAY_SIZE(runtimes))
		return err_set(
			err, E_USAGE, "unknown runtime \"%s\": use shell, node or python", name);
	if (kind != CLOCHE_CODE_PROGRAM && !runtimes[i].expressions) {
		err_set(err, E_USAGE, "the runtime %s has no expressions", name);
		err_hint(err, "name one that has them: --runtime node, --runtime python");
		return -E_USAGE;
	}
	*ret = &runtimes[i];
	return 0;
}

struct code *code_free(struct code *code)
{
	if (!code)
		return NULL;
	code_value_done(&code->value);
	buf_done(&code->printed[0]);
	buf_done(&code->printed[1]);
	buf_done(&code->json);
	if (code->call) {
		code_value_done(&code->call->errors);
		context_done(&code->call->file);
	}
	free(code->call);
	free(code);
	return NULL;
}

bool code_has_value(const struct code *code)
{
	return code->kind != CLOCHE_CODE_PROGRAM || code->call;
}

/* Write the whole input or, for a context, one line of it. That line begins with a newline because
 * a caller that died while it wrote may have left an unfinished line. */
static int put_request(cloche_run *run, const char *nonce, struct str code)
{
	struct buf *b = &run->stdin_data;
	const char *kind = run->code->kind == CLOCHE_CODE_EXPRESSION ? "expr" : "cell";
	int r = 0;

	if (run->code->call) {
		r = buf_printf(b, "\n%s %s %zu =", nonce, kind, code.n);
		if (r == 0)
			r = base64_encode(b, code);
		return r == 0 ? buf_add_char(b, '\n') : r;
	}
	if (code_has_value(run->code))
		r = buf_printf(b, "%s %s", kind, nonce);
	if (r == 0 && run->code->runtime->expressions)
		r = buf_add_char(b, '\n');
	return r == 0 ? buf_add_str(b, code) : r;
}

/* Give the run what the driver reads, and what is needed to parse its answer. */
static int add_code(cloche_run *run, const struct code_runtime *runtime, const cloche_code *c,
	struct cloche_err *err)
{
	const struct str code = str_make(c->text, c->length);
	const char *context = c->context;
	char nonce[CODE_NONCE_BYTES + 1] = "";

	if (code.n > CLOCHE_CODE_MAX)
		return err_set(err, E_LIMIT, "%zu MiB of code are too much: at most %zu MiB",
			code.n >> 20, CLOCHE_CODE_MAX >> 20);
	run->code = calloc(1, sizeof(*run->code));
	if (run->code && context)
		run->code->call = calloc(1, sizeof(*run->code->call));
	if (!run->code || (context && !run->code->call))
		return err_nomem(err);
	run->code->runtime = runtime;
	run->code->kind = c->kind;
	run->code->json = BUF_INIT((size_t)8 * CODE_ALL_MAX);
	run->code->printed[0] = run->code->printed[1] = BUF_INIT(CODE_PRINTED_MAX);
	rand_id(nonce, CODE_NONCE_BYTES);
	code_value_init(&run->code->value, nonce);
	if (context) {
		snprintf(run->code->call->name, sizeof(run->code->call->name), "%s", context);
		run->code->call->run = run;
		run->code->call->file = CONTEXT_FILE_INIT;
		code_value_init(&run->code->call->errors, nonce);
		run->code->value.quiet = run->code->call->errors.quiet = true;
	}
	run->note = code_note(run->code, &code);
	if (!run->note || put_request(run, nonce, code) < 0)
		return err_nomem(err);
	run->io.input = CLIENT_INPUT_BYTES;
	run->io.bytes = buf_str(&run->stdin_data);
	if (!run->sb || run->sb->timeout_ms == 0) {
		run->has_timeout = true;
		run->timeout_ms = CLOCHE_CODE_TIMEOUT_MS;
	}
	return 0;
}

static int code_take(cloche_code *to, const cloche_code *from, struct cloche_err *err)
{
	*to = (cloche_code)CLOCHE_CODE_INIT;
	return sized_take(to, sizeof(*to), from, "cloche_code", err);
}

int cloche_run_new_code(
	const cloche_sandbox *sb, const cloche_code *code, cloche_run **ret, cloche_err *err)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *copy = sandbox_copy(sb);
	_cleanup_(cloche_run_freep) cloche_run *run = NULL;
	_cleanup_(strv_freep) char **argv = NULL;
	const struct code_runtime *runtime;
	const char *program;
	cloche_code c;
	int r = copy ? code_take(&c, code, err)
		     : err_sys(err, errno, "copy a sandbox's configuration");

	if (r == 0 && c.context)
		r = err_set(err, E_USAGE, "a context is in an existing sandbox");
	if (r == 0)
		r = find_runtime(c.runtime ? c.runtime : "shell", c.kind, &runtime, err);
	if (r == 0)
		r = cloche_sandbox_add_command(copy, runtime->argv[0], &program, err);
	if (r < 0)
		return r;
	r = strv_add(&argv, str_from(program));
	for (size_t i = 1; r == 0 && runtime->argv[i]; i++)
		r = strv_add(&argv, str_from(runtime->argv[i]));
	if (r < 0)
		return err_nomem(err);
	r = run_new_take(TAKE_PTR(copy), argv, &run, err);
	if (r == 0)
		r = add_code(run, runtime, &c, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(run);
	return 0;
}

/* Find the runtime that the sandbox was made with. */
static int runtime_of(const cloche_instance *instance, enum cloche_code_kind kind,
	const struct code_runtime **ret, struct cloche_err *err)
{
	_cleanup_(cloche_instance_freep) cloche_instance *copy = NULL;
	const char *name;
	int r = instance_copy_fresh(instance, &copy, err);

	if (r < 0)
		return r;
	name = copy->info.runtime;
	return find_runtime(name[0] ? name : "shell", kind, ret, err);
}

/* Use the named runtime, else that of the context, else that of the sandbox. */
static int runtime_of_context(const cloche_instance *instance, const char *context,
	const char *name, const struct code_runtime **ret, struct cloche_err *err)
{
	struct context_file file = CONTEXT_FILE_INIT;
	char has[CONTEXT_RUNTIME_MAX + 1] = "";
	int r = context_open(instance, context, false, &file, NULL);

	if (r == 0)
		snprintf(has, sizeof(has), "%s", file.runtime);
	context_done(&file);
	/* After a restart it may begin with another one. */
	if (name && has[0] && file.number && strcmp(name, has) != 0) {
		err_set(err, E_USAGE, "context %s has the runtime %s", context, has);
		err_hint(err, "use another name, or end the context first (--restart)");
		return -E_USAGE;
	}
	if (!name && !has[0])
		return runtime_of(instance, CLOCHE_CODE_CELL, ret, err);
	return find_runtime(name ? name : has, CLOCHE_CODE_CELL, ret, err);
}

static int find_runtime_there(const cloche_instance *instance, const cloche_code *c,
	const struct code_runtime **ret, struct cloche_err *err)
{
	int r;

	if (!c->context)
		return c->runtime ? find_runtime(c->runtime, c->kind, ret, err)
				  : runtime_of(instance, c->kind, ret, err);
	r = context_check_name(c->context, err);
	return r < 0 ? r : runtime_of_context(instance, c->context, c->runtime, ret, err);
}

int cloche_run_new_code_in(
	const cloche_instance *instance, const cloche_code *code, cloche_run **ret, cloche_err *err)
{
	_cleanup_(cloche_run_freep) cloche_run *run = NULL;
	const struct code_runtime *runtime;
	cloche_code c;
	int r = code_take(&c, code, err);

	if (r == 0)
		r = find_runtime_there(instance, &c, &runtime, err);
	if (r == 0)
		r = cloche_run_new_in(instance, runtime->argv, &run, err);
	if (r == 0 && c.context && strv_add(&run->argv, STR("context")) < 0)
		r = err_nomem(err);
	if (r == 0)
		r = add_code(run, runtime, &c, err);
	if (r == 0)
		*ret = TAKE_PTR(run);
	return r;
}

uint8_t code_driver_arg(const cloche_run *run)
{
	return run->code ? run->code->runtime->driver : 0;
}
