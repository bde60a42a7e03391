/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_CODE_H
#define CLOCHE_CODE_H
/* Runs of code: a program, or one expression whose value comes back. Such a run is a cloche_run
 * (cloche/run.h): its environment, directory, timeout, output, ending and threads are those of any
 * run. It is given to an interpreter in the sandbox by a descriptor, whole, byte for byte; nothing
 * of it is in an argument, in the environment or in a line of shell. What it reads from its
 * standard input is empty, and it has no terminal.
 *
 * Runtimes: "shell" (/bin/sh; programs alone), "node", "python" (python3). If the interpreter is
 * not there, that is a result: exit code 127, and cloche_run_start_failure() names the package. */

#include <stdbool.h>
#include <stddef.h>

#include "error.h"
#include "run.h"
#include "sandbox.h"

#ifdef __cplusplus
extern "C" {
#endif

enum cloche_code_kind {
	/* Node: a CommonJS module (with "await" outside of functions if there is one). Python: the
	 * module __main__. An uncaught exception is exit code 1, and its trace on stderr. */
	CLOCHE_CODE_PROGRAM,
	/* Node: a script; its value is that of the last statement, a promise's what it becomes.
	 * Python: one expression and nothing else. */
	CLOCHE_CODE_EXPRESSION,
};

/* Time that code has unless cloche_run_set_timeout() (or the configuration of a sandbox of its own)
 * says otherwise, and the most of it (bytes). */
#define CLOCHE_CODE_TIMEOUT_MS 30000
#define CLOCHE_CODE_MAX ((size_t)64 << 20)

/* In a sandbox of its own, made from a copy of sb; what the interpreter needs of the host is
 * mounted as by cloche_sandbox_add_command(). The code is copied. CLOCHE_E_USAGE: no such runtime,
 * or one without expressions; CLOCHE_E_LIMIT: too much code. */
CLOCHE_API int cloche_run_new_code(const cloche_sandbox *sb, const char *runtime,
	enum cloche_code_kind kind, const void *code, size_t length, cloche_run **ret,
	cloche_err *err);
/* In a sandbox that is there. runtime NULL: that of the sandbox, and if it has none the shell. The
 * handle is needed for the call only. An expression's output is in no log. */
CLOCHE_API int cloche_run_new_code_in(const cloche_instance *instance, const char *runtime,
	enum cloche_code_kind kind, const void *code, size_t length, cloche_run **ret,
	cloche_err *err);

/* The value of an expression, after cloche_run_execute(). It comes from the sandbox and is what the
 * code wants it to be; it is none of what stdout has. Borrowed until the run is freed; NULL: there
 * is none. */

/* Its text, as "node -p" and Python's print() show it: any bytes, at most 16 MiB, and a NUL behind
 * them. NULL: the code ended without a value (it failed, ran out of time, left the process). */
CLOCHE_API const char *cloche_run_value_text(const cloche_run *run, size_t *ret_length);
/* True: the text was longer. */
CLOCHE_API bool cloche_run_value_cut(const cloche_run *run);
/* The value as JSON in ASCII on one line, if it has one: not undefined, a function, NaN, a number
 * that fits neither 64 bits nor a double, or what takes more than 2 MiB. */
CLOCHE_API const char *cloche_run_value_json(const cloche_run *run);
/* Of a Python value that has no JSON: its repr(), as the text. */
CLOCHE_API const char *cloche_run_value_repr(const cloche_run *run, size_t *ret_length);

#ifdef __cplusplus
}
#endif
#endif
