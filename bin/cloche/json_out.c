/* SPDX-License-Identifier: Apache-2.0 */
#include "json_out.h"
#include "base/escape.h"
#include "base/utf8.h"
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Everything that is printed goes through one buffer and one escape (INV-TERMINAL). */
struct pieces {
	bool by_stdio; /* to stdout's buffer, else to the descriptor at once */
	char waiting[16384];
	size_t n;
};

static bool pieces_flush(struct pieces *w)
{
	size_t n = w->n;

	w->n = 0;
	return w->by_stdio ? fwrite(w->waiting, 1, n, stdout) == n
			   : put(STDOUT_FILENO, w->waiting, n);
}

/* Outside of strings, a CR is a blank like any other, and inside there is none. */
static size_t pieces_escape(struct pieces *w, struct str s)
{
	size_t used = 1;

	if (s.p[0] == '\r')
		w->waiting[w->n++] = ' ';
	else
		w->n += escape_json_char(s, w->waiting + w->n, &used);
	return used;
}

/* Take JSON that ends between two characters. jansson's pieces do. */
static int pieces_take(const char *p, size_t n, void *user)
{
	struct pieces *w = user;

	for (size_t i = 0, used; i < n; i += used) {
		used = 1;
		if (sizeof(w->waiting) - w->n < ESCAPE_JSON_MAX && !pieces_flush(w))
			return -1;
		if ((p[i] >= ' ' && p[i] < 0x7f) || p[i] == '\n' || p[i] == '\t')
			w->waiting[w->n++] = p[i];
		else
			used = pieces_escape(w, (struct str){p + i, n - i});
	}
	return 0;
}

static bool take_text(struct pieces *w, const char *text)
{
	return pieces_take(text, strlen(text), w) == 0;
}

/* Write piece by piece, because the JSON of a command's output can be six times as long. */
static bool take_value(struct pieces *w, json_t *value, size_t flags)
{
	flags |= JSON_REAL_PRECISION(15);
	return value && json_dump_callback(value, pieces_take, w, flags) == 0;
}

/* Print and free the value. */
static bool json_out_print_value(json_t *value, bool by_stdio, size_t flags)
{
	struct pieces w = {.by_stdio = by_stdio};
	bool ok = take_value(&w, value, JSON_ENCODE_ANY | flags) && take_text(&w, "\n") &&
		  pieces_flush(&w);

	json_decref(value);
	return ok;
}

bool json_print(json_t *value)
{
	return json_out_print_value(value, false, JSON_INDENT(2));
}

bool json_print_line(json_t *value)
{
	return json_out_print_value(value, true, JSON_COMPACT);
}

bool json_print_dense(json_t *value)
{
	return json_out_print_value(value, false, 0);
}

bool json_print_text(const char *json)
{
	struct pieces w = {.by_stdio = false};

	return json && take_text(&w, json) && take_text(&w, "\n") && pieces_flush(&w);
}

bool json_print_with(json_t *object, const struct json_member *members, size_t n)
{
	struct pieces w = {.by_stdio = false};
	bool ok = take_text(&w, "{");

	for (size_t i = 0; i < n && ok; i++)
		ok = take_text(&w, "\n  \"") && take_text(&w, members[i].key) &&
		     take_text(&w, "\": ") && take_text(&w, members[i].value) && take_text(&w, ",");
	ok = ok && take_value(&w, object, JSON_EMBED | JSON_INDENT(2)) && take_text(&w, "}\n") &&
	     pieces_flush(&w);
	json_decref(object);
	return ok;
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
		size_t len = utf8_decode((struct str){at + i, n - i}, NULL);

		memcpy(to, len ? at + i : UTF8_REPLACEMENT, len ? len : 3);
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

json_t *json_signal(int number)
{
	return number ? json_integer(number) : json_null();
}

json_t *json_shell_result(const cloche_run *run)
{
	const cloche_result *end = cloche_run_result(run);

	return json_pack("{s:s, s:b, s:o, s:o, s:i, s:o, s:I, s:b, s:b, s:b, s:b}", "isolation",
		end->isolation, "success", end->exit_code == 0, "stdout",
		without_last_end(end->stdout_data, end->stdout_length), "stderr",
		without_last_end(end->stderr_data, end->stderr_length), "exitCode", end->exit_code,
		"signal", json_signal(end->signal), "executionTime", (json_int_t)end->duration_ms,
		"timed_out", (int)end->timed_out, "oom_killed", (int)end->oom_killed,
		"stdout_truncated", (int)end->stdout_truncated, "stderr_truncated",
		(int)end->stderr_truncated);
}

static json_t *json_usage(const cloche_result *end)
{
	return json_pack("{s:I, s:I, s:I}", "cpu_ms", (json_int_t)end->cpu_ms, "memory_peak_bytes",
		(json_int_t)end->memory_peak_bytes, "pids_peak", (json_int_t)end->pids_peak);
}

static json_t *json_ending(const cloche_result *end)
{
	return json_pack("{s:i, s:o, s:b, s:b, s:b, s:I, s:o, s:o, s:b, s:b}", "exit_code",
		end->exit_code, "signal", json_signal(end->signal), "timed_out",
		(int)end->timed_out, "oom_killed", (int)end->oom_killed, "stopped",
		(int)end->stopped, "duration_ms", (json_int_t)end->duration_ms, "stdout",
		json_bytes(end->stdout_data, end->stdout_length), "stderr",
		json_bytes(end->stderr_data, end->stderr_length), "stdout_truncated",
		(int)end->stdout_truncated, "stderr_truncated", (int)end->stderr_truncated);
}

/* Add the members of an object. Both are taken. Return doc, or NULL if out of memory. */
static json_t *json_join(json_t *doc, json_t *more)
{
	if (json_object_update_new(doc, more) == 0)
		return doc;
	json_decref(doc);
	return NULL;
}

json_t *json_run_result(const cloche_run *run, json_t *planted)
{
	const cloche_result *end = cloche_run_result(run);
	json_t *doc = json_pack("{s:s, s:s, s:s}", "id", end->id, "provider", end->provider,
		"isolation", end->isolation);

	doc = json_join(doc, json_ending(end));
	return json_join(
		doc, json_pack("{s:o, s:{s:I, s:I}, s:O}", "usage", json_usage(end), "network",
			     "allowed", (json_int_t)end->network_allowed, "blocked",
			     (json_int_t)end->network_blocked, "planted", planted));
}

bool json_print_run(const cloche_run *run, json_t *planted)
{
	return json_print(json_run_result(run, planted));
}

bool json_print_exec(const cloche_run *run)
{
	const cloche_result *end = cloche_run_result(run);
	json_t *doc = json_pack("{s:s, s:s, s:I}", "id", end->id, "isolation", end->isolation,
		"number", (json_int_t)end->number);

	return json_print(json_join(doc, json_ending(end)));
}

json_t *json_instance(const cloche_instance *i)
{
	const cloche_instance_info *info = cloche_instance_info_of(i);

	return json_pack("{s:s, s:s, s:s, s:s, s:s}", "id", info->id, "name", info->name,
		"provider", info->provider, "isolation", info->isolation, "state",
		info->state_name);
}
