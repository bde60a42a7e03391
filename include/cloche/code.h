/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_CODE_H
#define CLOCHE_CODE_H
/* Runs of code: a program, or an expression or cell whose value comes back. Such a run is a
 * cloche_run (cloche/run.h): its environment, directory, timeout, output, ending and threads are
 * those of any run. It is given to an interpreter in the sandbox by a descriptor, whole, byte for
 * byte; nothing of it is in an argument, in the environment or in a line of shell. What it reads
 * from its standard input is empty, and it has no terminal.
 *
 * Runtimes: "shell" (/bin/sh; programs alone), "node", "python" (python3). If the interpreter is
 * not there, that is a result: exit code 127, and cloche_run_start_failure() names the package. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "run.h"
#include "sandbox.h"

#ifdef __cplusplus
extern "C" {
#endif

enum cloche_code_kind {
	/* Node: a CommonJS module (with "await" outside of functions if there is one). Python: the
	 * module __main__. An uncaught exception is exit code 1, and its trace on stderr. In a
	 * context it is a cell. */
	CLOCHE_CODE_PROGRAM,
	/* Node: a script; its value is that of the last statement, a promise's what it becomes.
	 * Python: one expression and nothing else. */
	CLOCHE_CODE_EXPRESSION,
	/* As a cell of a notebook: statements, and if the last one is an expression whose value is
	 * not None (undefined) that is the value. Python's may have "await" outside of functions,
	 * in a context those of node, too. */
	CLOCHE_CODE_CELL,
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
 * handle is needed for the call only. The output of an expression or a cell is in no log. */
CLOCHE_API int cloche_run_new_code_in(const cloche_instance *instance, const char *runtime,
	enum cloche_code_kind kind, const void *code, size_t length, cloche_run **ret,
	cloche_err *err);

/* --- contexts ---
 *
 * A context is an interpreter (node or python) that lives on in a sandbox of
 * cloche_instance_create(): variables, imports and functions stay for whoever calls it next, from
 * this process or another. It is a command of the sandbox like any other, so it ends with that, and
 * what it prints is in its log, with what it says of results. Environment and directory are those
 * of commands at the moment at which it began; a run's own are refused. */

/* A call into the context of this name: a letter, then letters, digits and . _ -, 64 at most. The
 * first call makes it (a sandbox may have 64), with this runtime; NULL: what it has, else the
 * sandbox's. Executing it waits until the calls that came before have ended, in their order. Its
 * time begins with its turn. At its end, and at cloche_run_stop(), the code is interrupted, as by
 * SIGINT; the context is ended only if that has not helped after two seconds. A second
 * cloche_run_stop() ends it at once. Whoever dies while it executes leaves the code running, and
 * the next one waits for that.
 *
 * The exit code is 1 after an uncaught exception, 130 after an interrupt, 124 after a timeout; the
 * interpreter's own if it ended. */
CLOCHE_API int cloche_run_new_code_context(const cloche_instance *instance, const char *context,
	const char *runtime, enum cloche_code_kind kind, const void *code, size_t length,
	cloche_run **ret, cloche_err *err);

/* What such a run did with its context, after cloche_run_execute(). */
typedef struct cloche_context_use {
	bool began; /* it began the interpreter */
	bool lost;  /* ... in the place of one that had ended since the last call */
	int lost_exit_code, lost_signal; /* how that had ended; both 0 also if it is not known */
	bool ended; /* the interpreter ended with the call: its variables are gone */
} cloche_context_use;
/* NULL: the run is not in a context. Borrowed until the run is freed. */
CLOCHE_API const cloche_context_use *cloche_run_context(const cloche_run *run);

enum cloche_context_state {
	CLOCHE_CONTEXT_IDLE,
	CLOCHE_CONTEXT_BUSY,  /* somebody calls it */
	CLOCHE_CONTEXT_ENDED, /* the next call begins it anew */
};
typedef struct cloche_context {
	const char *name, *runtime;
	enum cloche_context_state state;
	uint32_t number; /* of the command that is its interpreter; 0: none */
} cloche_context;
/* Calls fn with each context, in the order of their names; it is borrowed for the call. fn returns
 * false to end the listing. */
typedef bool (*cloche_context_fn)(const cloche_context *context, void *user);
CLOCHE_API int cloche_instance_contexts(
	const cloche_instance *instance, cloche_context_fn fn, void *user, cloche_err *err);
/* Interrupts what a context executes; nothing is done if that is nothing. CLOCHE_E_NOT_FOUND: no
 * such context, or it has ended. */
CLOCHE_API int cloche_instance_interrupt_context(
	const cloche_instance *instance, const char *context, cloche_err *err);
/* Ends its interpreter and what that started; the next call begins another. One that has ended is
 * fine. */
CLOCHE_API int cloche_instance_restart_context(
	const cloche_instance *instance, const char *context, cloche_err *err);

/* --- results ---
 *
 * After cloche_run_execute() of an expression or a cell. They come from the sandbox and are what
 * the code wants them to be: show and parse them as you would anything of a stranger. They are none
 * of what stdout has. Everything is borrowed until the run is freed.
 *
 * The first result is the value; each other is a figure of matplotlib that was open at the end. */

/* How many there are; 0: the code ended without a value (it failed, ran out of time, left the
 * process). */
CLOCHE_API size_t cloche_run_results(const cloche_run *run);
/* A representation of one, with a NUL behind it; NULL: it has none of this type.
 *
 *   text      as "node -p" and Python's print() show it: every result has it
 *   json      in ASCII on one line: not of undefined, a function, NaN, a number that fits neither
 *             64 bits nor a double
 *   repr      repr() of a Python value that has no JSON
 *   html, markdown, latex, svg, png, jpeg
 *             what Python's _repr_html_() and so on, or _repr_mimebundle_(), or node's
 *             [Symbol.for("Jupyter.display")]() give; a figure of matplotlib is a png
 *
 * A text or repr has 16 MiB at most, JSON 2 MiB, others 8 MiB, and all together 32 MiB. */
CLOCHE_API const void *cloche_run_result(
	const cloche_run *run, size_t i, const char *type, size_t *ret_length);
/* True: there was more. Of text and repr the beginning is there, of any other type nothing. */
CLOCHE_API bool cloche_run_result_cut(const cloche_run *run, size_t i, const char *type);

/* All of them as one JSON array of objects, a member for each type that there is; png and jpeg are
 * in base64; "cut" lists what was. NULL: out of memory. */
CLOCHE_API const char *cloche_run_results_json(const cloche_run *run);

/* Of the first result: text, whether that was cut, json, and repr. */
CLOCHE_API const char *cloche_run_value_text(const cloche_run *run, size_t *ret_length);
CLOCHE_API bool cloche_run_value_cut(const cloche_run *run);
CLOCHE_API const char *cloche_run_value_json(const cloche_run *run);
CLOCHE_API const char *cloche_run_value_repr(const cloche_run *run, size_t *ret_length);

#ifdef __cplusplus
}
#endif
#endif
