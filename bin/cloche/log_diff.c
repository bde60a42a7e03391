/* SPDX-License-Identifier: Apache-2.0 */
/* `cloche log ID diff A B`: the differences between two entries. Nothing in a log can be trusted,
 * so names and values are escaped before they are shown. */
#include "cli.h"
#include "json_out.h"
#include "log.h"
#include "names.h"

#include <cloche/state.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void log_diff_print_value(
	char sign, const cloche_difference *d, const void *value, uint64_t length)
{
	char size[32];

	printf("%c%s ", sign, d->part == CLOCHE_DIFFERENCE_ENV ? "env" : "kv");
	name_print(d->name, d->name_length);
	/* A variable that was there before the log: nobody knows what it was. */
	if (!value && length == 0) {
		putchar('\n');
		return;
	}
	putchar('=');
	if (value && length <= 4096) {
		name_print(value, (size_t)length);
	} else {
		format_size(length, size, sizeof(size));
		printf("(%s)", size);
	}
	putchar('\n');
}

static bool print_one(const cloche_difference *d, void *user)
{
	char before[32], after[32];

	if (d->part != CLOCHE_DIFFERENCE_FILE) {
		if (d->kind != CLOCHE_CHANGE_ADDED)
			log_diff_print_value('-', d, d->before, d->before_length);
		if (d->kind != CLOCHE_CHANGE_DELETED)
			log_diff_print_value('+', d, d->after, d->after_length);
		return !ferror(stdout);
	}
	printf("%c ", (int)d->kind);
	name_print(d->name, d->name_length);
	if (d->before_mode != d->after_mode && d->kind == CLOCHE_CHANGE_CHANGED &&
		d->before_mode != UINT32_MAX && d->after_mode != UINT32_MAX)
		printf("  (mode %04o, was %04o)", d->after_mode, d->before_mode);
	/* A file of which nothing else is on record. */
	if (d->before_mode == UINT32_MAX && d->after_mode != UINT32_MAX &&
		d->kind == CLOCHE_CHANGE_CHANGED && !d->before && !d->after)
		printf("  (mode %04o)", d->after_mode);
	if (!d->unified && (d->before_length || d->after_length)) {
		format_size(d->before_length, before, sizeof(before));
		format_size(d->after_length, after, sizeof(after));
		printf("  (%s, was %s)", after, before);
	}
	putchar('\n');
	return flush_output() && (!d->unified || put_shown(STDOUT_FILENO, d->unified));
}

static bool log_diff_print_json(const cloche_difference *d, void *user)
{
	static const char *const parts[] = {"file", "env", "storage"};
	json_t *o = json_object();
	char kind[2] = {(char)d->kind, 0};

	json_object_set_new(o, "kind", json_string(kind));
	json_object_set_new(o, "part", json_string(parts[d->part]));
	name_to_json(o, "name", d->name, d->name_length);
	json_object_set_new(o, "before_bytes", json_integer((json_int_t)d->before_length));
	json_object_set_new(o, "after_bytes", json_integer((json_int_t)d->after_length));
	if (d->before_mode != UINT32_MAX)
		json_object_set_new(o, "before_mode", json_integer(d->before_mode));
	if (d->after_mode != UINT32_MAX)
		json_object_set_new(o, "after_mode", json_integer(d->after_mode));
	if (d->part != CLOCHE_DIFFERENCE_FILE && d->before)
		json_object_set_new(o, "before", json_bytes(d->before, (size_t)d->before_length));
	if (d->part != CLOCHE_DIFFERENCE_FILE && d->after)
		json_object_set_new(o, "after", json_bytes(d->after, (size_t)d->after_length));
	if (d->unified)
		json_object_set_new(o, "unified", json_bytes(d->unified, d->unified_length));
	return json_print_line(o);
}

/* Finds the number of the last entry up to a bound. */
struct resolving {
	uint64_t time_us, number;
};

static bool resolve_one(const cloche_operation *op, void *user)
{
	struct resolving *q = user;

	/* As in "show --to", include the whole second. */
	if (op->time_us < q->time_us + 1000000)
		q->number = op->number;
	return true;
}

static int resolve(cloche_oplog *log, const char *text, uint64_t *ret, cloche_err *err)
{
	struct resolving q = {0};
	struct bound b = {0};
	int r = strcmp(text, "0") == 0 ? 0 : log_read_bound(text, &b, err);

	*ret = b.number;
	if (r == 0 && b.number)
		return log_check_entry(log, b.number, err);
	if (r < 0 || b.time_us == 0)
		return r;
	q.time_us = b.time_us;
	r = cloche_oplog_read(log, resolve_one, &q, err);
	*ret = q.number;
	return r;
}

int log_diff(const char *name, const char *from, const char *to, bool json, cloche_err *err)
{
	_cleanup_(close_logp) cloche_oplog *log = NULL;
	uint64_t a = 0, b = 0;
	int r = open_log(name, &log, err);

	if (r == 0)
		r = resolve(log, from, &a, err);
	if (r == 0)
		r = resolve(log, to, &b, err);
	return r < 0 ? r
		     : cloche_oplog_diff(
			       log, a, b, json ? log_diff_print_json : print_one, NULL, err);
}
