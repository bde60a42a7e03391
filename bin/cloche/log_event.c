/* SPDX-License-Identifier: Apache-2.0 */
/* Shows commands and how they ended, on one line each. */
#include "cli.h"
#include "log.h"
#include "names.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { MAX_SHOWN = 200 };

static void log_event_print_text(const json_t *value)
{
	const char *p = json_string_value(value);
	size_t n = json_string_length(value);

	if (!p)
		return;
	putchar(' ');
	name_print(p, n < MAX_SHOWN ? n : MAX_SHOWN);
	if (n > MAX_SHOWN)
		printf("...");
}

/* For code, print the code instead of the interpreter's command line. */
static void print_command(const json_t *args)
{
	const json_t *word, *code = json_object_get(args, "code");
	size_t i;

	if (code) {
		log_event_print_text(json_object_get(code, "runtime"));
		log_event_print_text(json_object_get(code, "context"));
		if (json_object_get(code, "text"))
			putchar(':');
		log_event_print_text(json_object_get(code, "text"));
		return;
	}
	json_array_foreach (json_object_get(args, "argv"), i, word)
		log_event_print_text(word);
	if (json_is_true(json_object_get(args, "argv_cut")))
		printf(" ...");
}

/* The length of what is there as base64. */
static size_t decoded_length(const json_t *value)
{
	const char *p = json_string_value(value);
	size_t n = json_string_length(value), missing = 0;

	while (missing < n && p[n - 1 - missing] == '=')
		missing++;
	return (n - missing) * 3 / 4;
}

static void print_printed(
	const json_t *args, const char *stream, const char *base64, const char *ref)
{
	const json_t *exact = json_object_get(args, base64), *contents = json_object_get(args, ref);
	size_t n =
		exact ? decoded_length(exact) : json_string_length(json_object_get(args, stream));
	char size[32];

	if (contents) {
		printf(", %s %s", stream, json_string_value(contents));
	} else if (n > 0) {
		format_size(n, size, sizeof(size));
		printf(", %s %s", stream, size);
	}
}

static void log_event_print_lost(const json_t *args, const char *key, const char *which)
{
	json_int_t n = json_integer_value(json_object_get(args, key));
	char size[32];

	if (n <= 0)
		return;
	format_size((uint64_t)n, size, sizeof(size));
	printf(", the %s %s of the output %s", which, size,
		strcmp(which, "first") == 0 ? "were not kept" : "could not be kept");
}

static void log_event_print_end(const json_t *args)
{
	json_int_t signal = json_integer_value(json_object_get(args, "signal"));
	const json_t *failed = json_object_get(args, "failed");

	if (json_is_string(failed)) {
		log_event_print_text(failed);
		return;
	}
	if (signal)
		printf(" signal %lld", (long long)signal);
	else
		printf(" exit status %lld",
			(long long)json_integer_value(json_object_get(args, "exit_code")));
	if (json_is_true(json_object_get(args, "timed_out")))
		printf(" (timed out)");
	if (json_is_true(json_object_get(args, "oom_killed")))
		printf(" (out of memory)");
	printf(", %.3f s",
		(double)json_integer_value(json_object_get(args, "duration_usec")) / 1e6);
	print_printed(args, "stdout", "stdout64", "stdoutRef");
	print_printed(args, "stderr", "stderr64", "stderrRef");
	log_event_print_lost(args, "lost", "first");
	log_event_print_lost(args, "lost_last", "last");
	if (json_is_true(json_object_get(args, "cut")))
		printf(", output cut off");
}

static void print_call(const json_t *args)
{
	print_command(args);
	putchar(',');
	log_event_print_end(args);
	if (json_object_get(args, "value")) {
		printf(", value");
		log_event_print_text(json_object_get(args, "value"));
	}
}

void event_print(const cloche_operation *op)
{
	json_t *line = json_loads(op->json, JSON_ALLOW_NUL, NULL);
	const json_t *args = json_object_get(line, "args");

	if (op->exec)
		printf(" #%u", op->exec);
	if (strcmp(op->name, "?") == 0)
		log_event_print_text(json_object_get(line, "op"));
	else if (strcmp(op->name, "exec.start") == 0)
		print_command(args);
	else if (strcmp(op->name, "exec.end") == 0)
		log_event_print_end(args);
	else if (strcmp(op->name, "code.call") == 0)
		print_call(args);
	else if (strcmp(op->name, "sandbox.start") == 0)
		log_event_print_text(json_object_get(args, "provider"));
	else if (strcmp(op->name, "sandbox.end") == 0)
		log_event_print_text(json_object_get(args, "reason"));
	else if (strcmp(op->name, "agent.end") == 0)
		log_event_print_text(json_object_get(args, "outcome"));
	else if (strcmp(op->name, "fs.skip") == 0) {
		log_event_print_text(json_object_get(args, "path"));
		putchar(',');
		log_event_print_text(json_object_get(args, "why"));
	}
	json_decref(line);
}
