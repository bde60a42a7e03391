/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What came of code: on standard output, as JSON, in a file. */

#include <cloche/code.h>

/* The result document of `cloche eval --json`. kind: of the code; context: NULL, or its name. False
 * if standard output failed. */
bool eval_print_json(const cloche_run *run, enum cloche_code_kind kind, const char *context);
/* The text of each result. False if standard output failed. */
bool eval_print_values(const cloche_run *run, enum cloche_code_kind kind);
/* Says on standard error what became of the context. */
void eval_tell_context(const cloche_run *run, const char *context);

/* The type of result that a file of this name holds ("png"), or NULL. */
const char *eval_type_of(const char *path);
/* Writes the first result that has the type, whole or not at all. False if that failed, which
 * has been said. */
bool eval_write_file(const cloche_run *run, const char *path);
