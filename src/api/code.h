/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a run of code has beyond a run. */

#include "api/code_value.h"
#include "api/context.h"
#include <cloche/code.h>

struct code_runtime;

/* Of a call into a context (run_context.c). */
struct code_call {
	struct cloche_run *run;
	char name[CONTEXT_NAME_MAX + 1];
	struct context_file file;
	struct code_value errors; /* what comes on standard error */
	struct cloche_context_use use;
	struct loop_timer timer; /* its time; then until it is killed; or until stderr has ended */
	uint32_t number;         /* of the interpreter that took it */
	bool has_turn;
	bool wake; /* something was asked for, or it is time to look again */
	bool interrupted, timed_out, refused;
};

struct code {
	const struct code_runtime *runtime;
	enum cloche_code_kind kind;
	struct code_value value; /* of a program outside of a context: unused */
	bool finished;
	struct buf json;        /* the results as a document, once somebody has asked for it */
	struct code_call *call; /* NULL: not in a context */
};

struct code *code_free(struct code *code);

/* Keeps what a full record is to say of the code: run->note. -ENOMEM. */
_warn_unused_ int code_note(struct cloche_run *run, struct str text);
/* The same of the interpreter of a context. Owned by the caller; NULL: out of memory. */
char *code_context_note(const struct code *code);
/* Puts a call into a context on record that has ended, if the sandbox has a full record. */
_warn_unused_ int code_record_call(const struct cloche_run *run, struct cloche_err *err);

/* Whether marks are looked for in its output. */
bool code_has_value(const struct code *code);

/* Whether an argument of a command is the part of ours that takes code: nobody wants to read it. */
bool code_is_driver(struct str arg);

const char *code_runtime_name(const struct code *code);

/* One that the interpreter of was not found: what to say of it. */
void code_describe_missing(const struct code *code, char *ret, size_t size);

/* The drivers, which the interpreters get on their command line (code-driver.js, code-driver.py;
 * the build makes C of them). */
extern const char code_driver_js[], code_driver_py[];
