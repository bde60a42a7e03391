/* SPDX-License-Identifier: Apache-2.0 */
#include "json_out.h"
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pieces {
	char waiting[16384];
	size_t n;
};

static int take_piece(const char *p, size_t n, void *user)
{
	struct pieces *w = user;

	if (n > sizeof(w->waiting) - w->n) {
		if (!put(STDOUT_FILENO, w->waiting, w->n))
			return -1;
		w->n = 0;
	}
	if (n > sizeof(w->waiting))
		return put(STDOUT_FILENO, p, n) ? 0 : -1;
	memcpy(w->waiting + w->n, p, n);
	w->n += n;
	return 0;
}

static bool take_text(struct pieces *w, const char *text)
{
	return take_piece(text, strlen(text), w) == 0;
}

/* Write piece by piece, because the JSON of a command's output can be six times as long. */
static bool take_value(struct pieces *w, json_t *value, size_t flags)
{
	flags |= JSON_INDENT(2) | JSON_REAL_PRECISION(15);
	return value && json_dump_callback(value, take_piece, w, flags) == 0;
}

bool json_print(json_t *value)
{
	struct pieces w = {.n = 0};
	bool ok = take_value(&w, value, JSON_ENCODE_ANY) && take_text(&w, "\n") &&
		  put(STDOUT_FILENO, w.waiting, w.n);

	json_decref(value);
	return ok;
}

bool json_print_with(json_t *object, const struct json_member *members, size_t n)
{
	struct pieces w = {.n = 0};
	bool ok = take_text(&w, "{");

	for (size_t i = 0; i < n && ok; i++)
		ok = take_text(&w, "\n  \"") && take_text(&w, members[i].key) &&
		     take_text(&w, "\": ") && take_text(&w, members[i].value) && take_text(&w, ",");
	ok = ok && take_value(&w, object, JSON_EMBED) && take_text(&w, "}\n") &&
	     put(STDOUT_FILENO, w.waiting, w.n);
	json_decref(object);
	return ok;
}

/* Return the length of the valid UTF-8 sequence at p, or 0. jansson decides what is valid. */
static size_t sequence(const char *p, size_t n)
{
	for (size_t len = 1; len <= 4 && len <= n; len++) {
		json_t *one = json_stringn(p, len);

		if (one) {
			json_decref(one);
			return len;
		}
	}
	return 0;
}

json_t *json_bytes(const void *p, size_t n)
{
	const char *at = p;
	json_t *whole = json_stringn(n ? at : "", n);
	char *clean, *to;
	size_t i = 0;

	if (whole)
		return whole;
	clean = malloc(n * 3);
	if (!clean)
		return NULL;
	to = clean;
	while (i < n) {
		size_t len = (unsigned char)at[i] < 0x80 ? 1 : sequence(at + i, n - i);

		memcpy(to, len ? at + i : "\xef\xbf\xbd", len ? len : 3);
		to += len ? len : 3;
		i += len ? len : 1;
	}
	whole = json_stringn(clean, (size_t)(to - clean));
	free(clean);
	return whole;
}

static json_t *without_last_end(const char *text, size_t n)
{
	if (n > 0 && text[n - 1] == '\n')
		n--;
	if (n > 0 && text[n] == '\n' && text[n - 1] == '\r')
		n--;
	return json_bytes(text, n);
}

json_t *json_shell_result(const cloche_run *run)
{
	size_t out_n, err_n;
	const void *out = cloche_run_stdout(run, &out_n), *err = cloche_run_stderr(run, &err_n);
	int code = cloche_run_exit_code(run);

	return json_pack("{s:s, s:b, s:o, s:o, s:i, s:I, s:b, s:b, s:b}", "isolation",
		cloche_run_isolation(run), "success", code == 0, "stdout",
		without_last_end(out, out_n), "stderr", without_last_end(err, err_n), "exitCode",
		code, "executionTime", (json_int_t)cloche_run_duration_ms(run), "timedOut",
		(int)cloche_run_timed_out(run), "stdoutTruncated",
		(int)cloche_run_stdout_truncated(run), "stderrTruncated",
		(int)cloche_run_stderr_truncated(run));
}

static json_t *json_usage(const cloche_run *run)
{
	cloche_usage u = cloche_run_usage(run);

	return json_pack("{s:I, s:I, s:I}", "cpu_ms", (json_int_t)u.cpu_ms, "memory_peak_bytes",
		(json_int_t)u.memory_peak_bytes, "pids_peak", (json_int_t)u.pids_peak);
}

static json_t *json_ending(const cloche_run *run)
{
	size_t out_n, err_n;
	const void *out = cloche_run_stdout(run, &out_n), *err = cloche_run_stderr(run, &err_n);
	int signal_number = cloche_run_exit_signal(run);

	return json_pack("{s:i, s:o, s:b, s:b, s:I, s:o, s:o, s:b, s:b}", "exit_code",
		cloche_run_exit_code(run), "signal",
		signal_number ? json_integer(signal_number) : json_null(), "timed_out",
		(int)cloche_run_timed_out(run), "oom_killed", (int)cloche_run_oom_killed(run),
		"duration_ms", (json_int_t)cloche_run_duration_ms(run), "stdout",
		json_bytes(out, out_n), "stderr", json_bytes(err, err_n), "stdout_truncated",
		(int)cloche_run_stdout_truncated(run), "stderr_truncated",
		(int)cloche_run_stderr_truncated(run));
}

/* Add the members of an object. Both are taken. Return doc, or NULL if out of memory. */
static json_t *json_join(json_t *doc, json_t *more)
{
	if (json_object_update_new(doc, more) == 0)
		return doc;
	json_decref(doc);
	return NULL;
}

bool json_print_run(const cloche_run *run, json_t *planted)
{
	json_t *doc = json_pack("{s:s, s:s, s:s}", "id", cloche_run_id(run), "provider",
		cloche_run_provider(run), "isolation", cloche_run_isolation(run));

	doc = json_join(doc, json_ending(run));
	return json_print(json_join(
		doc, json_pack("{s:o, s:{s:I, s:I}, s:O}", "usage", json_usage(run), "network",
			     "allowed", (json_int_t)cloche_run_network_allowed(run), "blocked",
			     (json_int_t)cloche_run_network_blocked(run), "planted", planted)));
}

bool json_print_exec(const cloche_run *run)
{
	json_t *doc = json_pack("{s:s, s:s, s:I}", "id", cloche_run_id(run), "isolation",
		cloche_run_isolation(run), "number", (json_int_t)cloche_run_number(run));

	return json_print(json_join(doc, json_ending(run)));
}

json_t *json_instance(const cloche_instance *i)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s}", "id", cloche_instance_id(i), "name",
		cloche_instance_name(i), "provider", cloche_instance_provider(i), "isolation",
		cloche_instance_isolation(i), "state", cloche_instance_state_name(i));
}

char *json_line(const json_t *o)
{
	char *text = json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII);
	char *line = text ? malloc(strlen(text) * 6 + 1) : NULL, *to = line;

	for (const char *at = text; line && *at; at++) {
		size_t n = *at == 0x7f ? 6 : 1;

		memcpy(to, n == 6 ? "\\u007f" : at, n);
		to += n;
	}
	if (line)
		*to = '\0';
	free(text);
	return line;
}

bool json_print_line(json_t *value)
{
	char *line = json_line(value);
	bool ok = line && puts(line) >= 0;

	free(line);
	json_decref(value);
	return ok;
}

bool json_print_dense(json_t *value)
{
	char *text = value ? json_dumps(value, JSON_REAL_PRECISION(15)) : NULL;
	bool ok = text && put(STDOUT_FILENO, text, strlen(text)) && put(STDOUT_FILENO, "\n", 1);

	free(text);
	json_decref(value);
	return ok;
}
