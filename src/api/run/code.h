/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a run of code has beyond an ordinary run. */

#include "api/run/code_value.h"
#include "api/run/context.h"
#include <cloche/code.h>

enum { CODE_PRINTED_MAX = 64 << 10 }; /* of each stream on record */

struct code_runtime {
	const char *name;
	const char *argv[6]; /* the interpreter and its driver */
	const char *package; /* of Debian, that has the interpreter */
	bool expressions;    /* it has them */
	uint8_t driver;      /* the argument that is ours */
};

/* A call into a context (run_context.c). */
struct code_call {
	struct cloche_run *run;
	char name[CONTEXT_NAME_MAX + 1];
	struct context_file file;
	struct code_value errors; /* parses the interpreter's standard error */
	struct cloche_context_use use;
	struct loop_timer timer; /* first the timeout, then KILL or the end of stderr */
	uint32_t number;         /* of the interpreter process that took it */
	bool has_turn;
	bool wake; /* there is a request, or it is time to check again */
	bool interrupted, timed_out, refused;
};

struct code {
	const struct code_runtime *runtime;
	enum cloche_code_kind kind;
	struct code_value value; /* unused for a program outside of a context */
	bool finished;
	struct buf printed[2]; /* for a full record, what came beside the value; not in a context */
	bool printed_cut;
	struct buf json;        /* the results as a document, made on demand */
	struct code_call *call; /* NULL: not in a context */
};

struct code *code_free(struct code *code);

/* Return what a full record says about the code (text), or, if text is NULL, about the interpreter
 * of a context. Heap; NULL if out of memory. */
char *code_note(const struct code *code, const struct str *text);
/* Keep output of an expression or a cell for its record. Return 0 or -ENOMEM. */
_warn_unused_ int code_keep_printed(struct code *code, int stream, const char *p, size_t n);
/* If the sandbox has a full record, record the end of a call into a context, of an expression or of
 * a cell. */
_warn_unused_ int code_record_call(const struct cloche_run *run, struct cloche_err *err);

/* Return whether its output is searched for marks (code_value.h). */
bool code_has_value(const struct code *code);

/* Return the index of our driver among the arguments of the run, which users need not see; 0: there
 * is none. */
uint8_t code_driver_arg(const struct cloche_run *run);

/* The drivers, which the interpreters get on their command line (the build generates them from
 * code-driver.js and code-driver.py). */
extern const char code_driver_js[], code_driver_py[];
