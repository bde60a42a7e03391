/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a run of code has beyond a run. */

#include "api/code_value.h"
#include <cloche/code.h>

struct code_runtime;

struct code {
	const struct code_runtime *runtime;
	bool expression;
	struct code_value value; /* of an expression alone */
	bool finished;
};

struct code *code_free(struct code *code);

/* One that the interpreter of was not found: what to say of it. */
void code_describe_missing(const struct code *code, char *ret, size_t size);

/* The drivers, which the interpreters get on their command line (code-driver.js, code-driver.py;
 * the build makes C of them). */
extern const char code_driver_js[], code_driver_py[];
