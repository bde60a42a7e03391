/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shows the results of code: on standard output, as JSON, or in a file. */

#include <cloche/code.h>

/* Print the result document of `cloche eval --json`. kind is that of the code; context is NULL or
 * its name. Return false if standard output failed. */
bool eval_print_json(const cloche_run *run, enum cloche_code_kind kind, const char *context);
/* Print the text of each result. Return false if standard output failed. */
bool eval_print_values(const cloche_run *run, enum cloche_code_kind kind);
/* Print on standard error what happened to the context. */
void eval_tell_context(const cloche_run *run, const char *context);

/* Return the type of result for a file of this name ("png"), or NULL. */
const char *eval_type_of(const char *path);
/* Write the first result of the type completely or not at all. On failure print a message and
 * return false. */
bool eval_write_file(const cloche_run *run, const char *path);
