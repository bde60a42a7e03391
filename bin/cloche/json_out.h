/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Prints JSON documents on standard output: all that this program prints, always as pure ASCII, so
 * that a terminal obeys and hides nothing of it (DEL and what is above is \u.... in strings). Bytes
 * that are not UTF-8 become U+FFFD. */

#include <cloche/instance.h>
#include <cloche/run.h>
#include <jansson.h>

/* Print and free the value. Return false if standard output failed. */
bool json_print(json_t *value);
/* A member whose value is JSON text (borrowed). */
struct json_member {
	const char *key, *value;
};
/* Do the same for an object, with these members first. */
bool json_print_with(json_t *object, const struct json_member *members, size_t n);
/* Print and free the value on one line, without blanks, by stdio. Return false if that failed. */
bool json_print_line(json_t *value);
/* Print and free the value on one line, at once. Return false if that failed. */
bool json_print_dense(json_t *value);
/* Print JSON text of the library (borrowed) at once, and a line end. Return false if that failed.
 */
bool json_print_text(const char *json);
/* A string of bytes. */
json_t *json_bytes(const void *p, size_t n);

/* Return the signal that ended a command; null: none. */
json_t *json_signal(int number);

/* Return {isolation, success, stdout, stderr, exitCode, signal, executionTime, timed_out,
 * oom_killed, stdout_truncated, stderr_truncated}, with SandboX's names where it has them: without
 * the newline that ends the output's last line. NULL if out of memory. */
json_t *json_shell_result(const cloche_run *run);

/* Return the result document of `cloche run --json`. planted (borrowed) lists the planted files.
 * NULL if out of memory. */
json_t *json_run_result(const cloche_run *run, json_t *planted);
/* Print the result document of `cloche run --json`. planted (borrowed) lists the planted files.
 * Return false if standard output failed. */
bool json_print_run(const cloche_run *run, json_t *planted);
/* Do the same for a command in a long-lived sandbox, without usage, which is not the command's
 * alone. */
bool json_print_exec(const cloche_run *run);

/* Return {id, name, provider, isolation, state} of a new sandbox. NULL if out of memory. */
json_t *json_instance(const cloche_instance *i);
