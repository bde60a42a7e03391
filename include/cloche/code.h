/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCHE_CODE_H
#define CLOCHE_CODE_H
/* Running code: a program, or an expression or cell whose value is returned. Such a run is a
 * cloche_run (cloche/run.h), so environment, directory, timeout, output, ending and thread rules
 * are those of any run. The code is passed to an interpreter in the sandbox through a descriptor,
 * byte for byte. No part of it appears in an argument, in the environment or in a shell command.
 * Its standard input is empty, and it has no terminal.
 *
 * Runtimes: "shell" (/bin/sh; programs only), "node", "python" (python3). If the interpreter is
 * missing, that is a result and not an error: the exit code is 127, and
 * cloche_run_result()->start_failure names the package to install. */

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
	/* Node: a CommonJS module (with "await" outside of functions if the code has one). Python:
	 * the module __main__. An uncaught exception gives exit code 1 and a stack trace on stderr.
	 * In a context it runs as a cell. */
	CLOCHE_CODE_PROGRAM,
	/* Node: a script. Its value is that of the last statement; a promise is awaited. Python:
	 * exactly one expression. */
	CLOCHE_CODE_EXPRESSION,
	/* Like a cell of a notebook: statements. If the last one is an expression and is not None
	 * (undefined), it is the value. Python code may have "await" outside of functions; so may
	 * node code in a context. */
	CLOCHE_CODE_CELL,
};

/* The default time limit, unless cloche_run_options.timeout_ms or the configuration of the run's
 * own sandbox sets another one, and the largest code (bytes). */
#define CLOCHE_CODE_TIMEOUT_MS 30000
#define CLOCHE_CODE_MAX ((size_t)64 << 20)

typedef struct cloche_code {
	size_t size;         /* of this struct; error.h */
	const char *runtime; /* NULL: the sandbox's (or the context's), or the shell */
	enum cloche_code_kind kind;
	const void *text;
	size_t length;       /* of text in bytes */
	const char *context; /* NULL: none; see below */
} cloche_code;

#define CLOCHE_CODE_INIT                                                                           \
	{                                                                                          \
		sizeof(cloche_code), NULL, CLOCHE_CODE_PROGRAM, NULL, 0, NULL                      \
	}

/* Create a run in a sandbox of its own, made from a copy of sb. What the interpreter needs from the
 * host is mounted as by cloche_sandbox_add_command(). The code is copied. CLOCHE_E_USAGE: the
 * runtime does not exist or has no expressions, or a context is named. CLOCHE_E_LIMIT: the code is
 * too large. */
CLOCHE_API int cloche_run_new_code(
	const cloche_sandbox *sb, const cloche_code *code, cloche_run **ret, cloche_err *err);
/* Create a run in an existing sandbox. The handle is needed during the call only. The output of an
 * expression or a cell does not go to a log. */
CLOCHE_API int cloche_run_new_code_in(const cloche_instance *instance, const cloche_code *code,
	cloche_run **ret, cloche_err *err);

/* --- contexts ---
 *
 * A context is an interpreter (node or python) that stays alive in a sandbox of
 * cloche_instance_create(): variables, imports and functions persist for later calls, from this
 * process or another. It is an ordinary command of the sandbox, so it ends with the sandbox, and
 * its output, including the results that it reports, is in its log. Its environment and directory
 * are those that commands had when it started; setting them for a single call is refused. */

/* A context's name is a letter, followed by letters, digits and . _ -, at most 64 characters. The
 * first call creates the context (at most 64 in a sandbox) with this runtime. If runtime is NULL,
 * it is that of the context, or that of the sandbox for a new one. cloche_run_execute() waits until
 * all earlier calls have ended, in order; the time limit starts when it is this call's turn. On
 * timeout, and at cloche_run_stop(), the code is interrupted as by SIGINT. The context is killed
 * only if that has not helped after two seconds. A second cloche_run_stop() kills it at once. If
 * the calling process dies meanwhile, the code keeps running, and the next call waits for it.
 *
 * The exit code is 1 after an uncaught exception, 130 after an interrupt, 124 after a timeout, and
 * the interpreter's own exit code if the interpreter ended. */

/* What a call did to its context. Valid after cloche_run_execute(). */
typedef struct cloche_context_use {
	bool began; /* the call started the interpreter */
	bool lost;  /* ... because the previous one had ended since the last call */
	int lost_exit_code, lost_signal; /* how that one ended; both 0 if unknown */
	bool ended; /* the interpreter ended during the call: its variables are lost */
} cloche_context_use;
/* Return NULL if the run is not in a context. Borrowed until the run is freed. */
CLOCHE_API const cloche_context_use *cloche_run_context(const cloche_run *run);

enum cloche_context_state {
	CLOCHE_CONTEXT_IDLE,
	CLOCHE_CONTEXT_BUSY,  /* a call is running */
	CLOCHE_CONTEXT_ENDED, /* the next call starts it again */
};
typedef struct cloche_context {
	const char *name, *runtime;
	enum cloche_context_state state;
	uint32_t number; /* of the command that is its interpreter; 0 if there is none */
} cloche_context;
/* Call fn for each context, sorted by name. The context is borrowed for the call. fn returns false
 * to stop. */
typedef bool (*cloche_context_fn)(const cloche_context *context, void *user);
CLOCHE_API int cloche_instance_contexts(
	const cloche_instance *instance, cloche_context_fn fn, void *user, cloche_err *err);
/* Interrupt the code that a context is running; do nothing if it is idle. CLOCHE_E_NOT_FOUND if
 * there is no such context, or it has ended. */
CLOCHE_API int cloche_instance_interrupt_context(
	const cloche_instance *instance, const char *context, cloche_err *err);
/* End the context's interpreter and everything that it started. The next call starts a new one. A
 * context that has already ended is not an error. */
CLOCHE_API int cloche_instance_restart_context(
	const cloche_instance *instance, const char *context, cloche_err *err);

/* --- results ---
 *
 * Results are available after cloche_run_execute() of an expression or a cell. They come from the
 * sandbox and the code chooses what they contain, so parse and display them like any untrusted
 * data. They are separate from stdout. Everything is borrowed until the run is freed.
 *
 * The first result is the value. Each further result is a matplotlib figure that was open at the
 * end. */

/* Return the number of results. 0 means that the code ended without a value (it failed, ran out of
 * time, or exited the process). */
CLOCHE_API size_t cloche_code_results(const cloche_run *run);
/* Return one representation of a result, with a NUL after its *ret_length bytes, or NULL if the
 * result has none of this type.
 *
 *   text      as "node -p" and Python's print() show it; every result has it
 *   json      ASCII on one line; missing for undefined, functions, NaN, and numbers that fit
 *             neither 64 bits nor a double
 *   repr      repr() of a Python value that has no JSON
 *   html, markdown, latex, svg, png, jpeg
 *             what Python's _repr_html_() and so on, _repr_mimebundle_(), or node's
 *             [Symbol.for("Jupyter.display")]() return; a matplotlib figure is a png
 *
 * A text or repr has at most 16 MiB, JSON 2 MiB, others 8 MiB, and all together 32 MiB.
 * If one was larger, *ret_cut (may be NULL) is true: then text and repr hold the beginning, and any
 * other type is missing. */
CLOCHE_API const void *cloche_code_result(
	const cloche_run *run, size_t i, const char *type, size_t *ret_length, bool *ret_cut);

/* Return all results as one JSON array of objects with a member for each available type. png and
 * jpeg are in base64. "cut" lists the types that were cut. NULL if out of memory. */
CLOCHE_API const char *cloche_code_results_json(const cloche_run *run);

#ifdef __cplusplus
}
#endif
#endif
