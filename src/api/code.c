/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: an interpreter runs, with a fixed driver on its command line. The driver
 * reads its standard input to the end: a line (empty, or the nonce for a value) and the code.
 * Behind it that input is empty, which is what the code finds. The shell has no such line: it takes
 * all as its code.
 *
 * The nonce comes with the code and not on the command line, which everybody inside can read.
 * Whoever learns it can forge the value of his own expression and nothing else. */
#include "api/code.h"
#include "api/instance.h"
#include "api/run.h"
#include "base/rand.h"

#include <stdio.h>

enum { DRIVER_ARGS = 5 };

/* The code's own PATH is not for cat, without which nothing would be run and all be well. */
#define SHELL_DRIVER "eval \"$(PATH=/usr/bin:/bin:$PATH cat || echo exit 127)\""

struct code_runtime {
	const char *name;
	const char *argv[DRIVER_ARGS + 1];
	const char *package;
	bool expressions;
};

static const struct code_runtime runtimes[] = {
	{"shell", {"/bin/sh", "-c", SHELL_DRIVER, "sh"}, "dash", false},
	{"node", {"node", "-e", code_driver_js}, "nodejs", true},
	{"python", {"python3", "-u", "-c", code_driver_py}, "python3", true},
};

static int find_runtime(const char *name, enum cloche_code_kind kind,
	const struct code_runtime **ret, struct cloche_err *err)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(runtimes) && strcmp(runtimes[i].name, name) != 0)
		i++;
	if (i == ARRAY_SIZE(runtimes))
		return err_set(
			err, E_USAGE, "unknown runtime \"%s\": it is shell, node or python", name);
	if (kind == CLOCHE_CODE_EXPRESSION && !runtimes[i].expressions) {
		err_set(err, E_USAGE, "the runtime %s has no expressions", name);
		err_hint(err, "name one that has: --runtime node, --runtime python");
		return -E_USAGE;
	}
	*ret = &runtimes[i];
	return 0;
}

struct code *code_free(struct code *code)
{
	if (code)
		code_value_done(&code->value);
	free(code);
	return NULL;
}

/* What the driver reads: taken by the run, with what is needed to understand its answer. */
static int add_code(cloche_run *run, const struct code_runtime *runtime, enum cloche_code_kind kind,
	struct str code, struct cloche_err *err)
{
	char nonce[CODE_NONCE_BYTES + 1] = "";
	int r;

	if (code.n > CLOCHE_CODE_MAX)
		return err_set(err, E_LIMIT, "%zu MiB of code are too much: at most %zu",
			code.n >> 20, CLOCHE_CODE_MAX >> 20);
	run->code = calloc(1, sizeof(*run->code));
	if (!run->code)
		return err_nomem(err);
	run->code->runtime = runtime;
	run->code->expression = kind == CLOCHE_CODE_EXPRESSION;
	if (run->code->expression) {
		rand_id(nonce, CODE_NONCE_BYTES);
		code_value_init(&run->code->value, nonce);
	}
	r = buf_add_str(&run->stdin_data, str_from(nonce));
	if (r == 0 && runtime->expressions)
		r = buf_add_char(&run->stdin_data, '\n');
	if (r == 0)
		r = buf_add_str(&run->stdin_data, code);
	if (r < 0)
		return err_nomem(err);
	run->io.input = CLIENT_INPUT_BYTES;
	run->io.bytes = buf_str(&run->stdin_data);
	if (!run->sb || run->sb->timeout_ms == 0)
		cloche_run_set_timeout(run, CLOCHE_CODE_TIMEOUT_MS);
	return 0;
}

int cloche_run_new_code(const cloche_sandbox *sb, const char *name, enum cloche_code_kind kind,
	const void *code, size_t length, cloche_run **ret, cloche_err *err)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *copy = sandbox_copy(sb);
	_cleanup_(cloche_run_freep) cloche_run *run = NULL;
	_cleanup_(strv_freep) char **argv = NULL;
	const struct code_runtime *runtime;
	const char *program;
	int r;

	if (!copy)
		return err_nomem(err);
	r = find_runtime(name, kind, &runtime, err);
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
		r = add_code(run, runtime, kind, str_make(code, length), err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(run);
	return 0;
}

/* What the sandbox was made with. */
static int runtime_of(const cloche_instance *instance, enum cloche_code_kind kind,
	const struct code_runtime **ret, struct cloche_err *err)
{
	_cleanup_(cloche_instance_freep) cloche_instance *copy = instance_copy(instance);
	const char *name;
	int r;

	if (!copy)
		return err_nomem(err);
	r = cloche_instance_refresh(copy, err);
	if (r < 0)
		return r;
	name = cloche_instance_runtime(copy);
	return find_runtime(name[0] ? name : "shell", kind, ret, err);
}

int cloche_run_new_code_in(const cloche_instance *instance, const char *name,
	enum cloche_code_kind kind, const void *code, size_t length, cloche_run **ret,
	cloche_err *err)
{
	_cleanup_(cloche_run_freep) cloche_run *run = NULL;
	const struct code_runtime *runtime;
	int r = name ? find_runtime(name, kind, &runtime, err)
		     : runtime_of(instance, kind, &runtime, err);

	if (r == 0)
		r = cloche_run_new_in(instance, runtime->argv, &run, err);
	if (r == 0)
		r = add_code(run, runtime, kind, str_make(code, length), err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(run);
	return 0;
}

void code_describe_missing(const struct code *code, char *ret, size_t size)
{
	snprintf(ret, size,
		"there is no %s in the sandbox: install it (apt-get install %s), or mount "
		"it and name its directory in the PATH",
		code->runtime->argv[0], code->runtime->package);
}

/* A part as a terminated string; NULL: there is none. */
static const char *value_part(const cloche_run *run, enum code_part i, size_t *ret_length)
{
	struct buf *part;

	*ret_length = 0;
	if (!run->code || !run->code->finished || !run->code->value.whole)
		return NULL;
	part = &run->code->value.part[i];
	if (i != CODE_TEXT && buf_len(part) == 0)
		return NULL;
	*ret_length = buf_len(part);
	return buf_cstr(part);
}

const char *cloche_run_value_text(const cloche_run *run, size_t *ret_length)
{
	return value_part(run, CODE_TEXT, ret_length);
}

bool cloche_run_value_cut(const cloche_run *run)
{
	return run->code && run->code->value.cut[CODE_TEXT];
}

const char *cloche_run_value_json(const cloche_run *run)
{
	size_t n;

	return value_part(run, CODE_JSON, &n);
}

const char *cloche_run_value_repr(const cloche_run *run, size_t *ret_length)
{
	return value_part(run, CODE_REPR, ret_length);
}
