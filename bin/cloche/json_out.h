/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* JSON documents on standard output, with jansson. Output bytes that are no UTF-8 become U+FFFD. */

#include <cloche/run.h>
#include <jansson.h>

/* Prints and frees the value; false if standard output failed. */
bool json_print(json_t *value);
/* A member whose value is JSON text (borrowed). */
struct json_member {
	const char *key, *value;
};
/* The same of an object that has these members first. */
bool json_print_with(json_t *object, const struct json_member *members, size_t n);
/* One line of pure ASCII that no terminal obeys, DEL included. Heap; NULL on lack of memory. */
char *json_line(const json_t *o);
/* A string of bytes. */
json_t *json_bytes(const void *p, size_t n);

/* {success, stdout, stderr, exitCode, executionTime}, what callers of shells expect: output without
 * the line end that closes its last line. NULL on lack of memory. */
json_t *json_shell_result(const cloche_run *run);

/* The result document of `cloche run --json`; planted (borrowed): what it left. 0, or -1 if
 * standard output failed. */
int print_run_json(const cloche_run *run, json_t *planted);
/* The same of a command in a sandbox that lives on, whose usage is not the command's alone. */
int print_exec_json(const cloche_run *run);
