/* SPDX-License-Identifier: Apache-2.0 */
/* `cloche log` and `cloche replay`: what was recorded of sandboxes. */
#include "cli.h"
#include "json_out.h"
#include "log.h"
#include "names.h"

#include <cloche/state.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct log_options {
	bool json;
	const char *from, *to;
};

static const struct option options[] = {
	{"json", 0, NULL, "list, compact: one JSON document; show: the entries, a line each",
		.at = offsetof(struct log_options, json)},
	{"from", 0, "N|TIME", "show: begin with entry N, or at TIME (2026-01-31T12:00:00Z)",
		.at = offsetof(struct log_options, from)},
	{"to", 0, "N|TIME", "show: end with it", .at = offsetof(struct log_options, to)},
};
static const struct option_table option_table = {
	.options = options, .n = sizeof(options) / sizeof(options[0]), .title = "Options"};

int open_log(const char *name, cloche_oplog **ret, cloche_err *err)
{
	size_t n = strlen(name);

	if (strchr(name, '/') || (n > 5 && strcmp(name + n - 5, ".json") == 0) ||
		(n > 6 && strcmp(name + n - 6, ".jsonl") == 0))
		return cloche_oplog_open_file(name, ret, err);
	return cloche_oplog_open(name, ret, err);
}

/* --- showing --- */

struct bound {
	uint64_t number, time_us; /* one of them; both 0: none */
};

static int read_bound(const char *text, struct bound *ret, cloche_err *err)
{
	struct tm tm = {0};
	const char *end;

	if (!text || read_number(text, INT64_MAX, &ret->number))
		return 0;
	end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	if (!end || (*end && strcmp(end, "Z") != 0))
		return wrong_usage(err, NULL,
			"log: a bound is an entry's number or a time such as "
			"2026-01-31T12:00:00Z, not \"%s\"",
			text);
	ret->time_us = (uint64_t)timegm(&tm) * 1000000;
	return 0;
}

struct showing {
	const struct log_options *o;
	struct bound from, to;
	bool ok;
};

static bool is_before(const cloche_operation *op, const struct bound *b)
{
	return op->number < b->number || (b->time_us && op->time_us < b->time_us);
}

static bool is_after(const cloche_operation *op, const struct bound *b)
{
	return (b->number && op->number > b->number) ||
	       (b->time_us && op->time_us >= b->time_us + 1000000);
}

static void show_time(uint64_t time_us)
{
	time_t s = (time_t)(time_us / 1000000);
	char text[32] = "-";
	struct tm tm;

	if (time_us && gmtime_r(&s, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	printf("%-20s  ", text);
}

static void show_object(const cloche_operation *op)
{
	const char *dot = strchr(op->name, '.');
	char size[32];

	if (!op->object)
		return;
	if (op->is_reference) {
		printf("  %.*s", (int)op->object_length, (const char *)op->object);
	} else if (dot && (strcmp(dot, ".write") == 0 || strcmp(dot, ".append") == 0)) {
		format_size(op->object_length, size, sizeof(size));
		printf("  %s", size);
	} else {
		printf("  ");
		name_print(op->object, op->object_length < 60 ? op->object_length : 60);
		if (op->object_length > 60)
			printf("...");
	}
}

static bool show_one(const cloche_operation *op, void *user)
{
	struct showing *s = user;

	if (is_before(op, &s->from) || is_after(op, &s->to))
		return true;
	if (s->o->json) {
		s->ok = put_line(op->json);
		return s->ok;
	}
	printf("%6llu  ", (unsigned long long)op->number);
	show_time(op->time_us);
	printf("%-14s", op->name);
	if (op->subject) {
		putchar(' ');
		name_print(op->subject, op->subject_length);
	}
	show_object(op);
	putchar('\n');
	return !ferror(stdout);
}

static int do_show(const struct log_options *o, char **v, cloche_err *err)
{
	struct showing s = {.o = o, .ok = true};
	cloche_oplog *log = NULL;
	int r = read_bound(o->from, &s.from, err);

	if (r == 0)
		r = read_bound(o->to, &s.to, err);
	if (r == 0)
		r = open_log(v[0], &log, err);
	if (r == 0)
		r = cloche_oplog_read(log, show_one, &s, err);
	cloche_oplog_free(log);
	return r < 0 ? r : s.ok ? 0 : EXIT_CLOCHE;
}

/* --- the others --- */

static int do_export(const struct log_options *o, char **v, cloche_err *err)
{
	cloche_oplog *log = NULL;
	int r;

	if (!v[2])
		return wrong_usage(err, NULL, "log: it is: cloche log ID export DIR");
	r = open_log(v[0], &log, err);
	if (r == 0)
		r = cloche_oplog_export(log, v[2], err);
	cloche_oplog_free(log);
	return r;
}

static int do_compact(const struct log_options *o, char **v, cloche_err *err)
{
	cloche_compacted c;
	char before[32], after[32], removed[32];
	int r = cloche_oplog_compact(v[0], &c, err);

	if (r < 0)
		return r;
	if (o->json)
		return json_print(json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "operations_before",
			       (json_int_t)c.operations_before, "operations_after",
			       (json_int_t)c.operations_after, "bytes_before",
			       (json_int_t)c.bytes_before, "bytes_after", (json_int_t)c.bytes_after,
			       "contents_removed", (json_int_t)c.contents_removed, "contents_bytes",
			       (json_int_t)c.contents_bytes))
			       ? 0
			       : EXIT_CLOCHE;
	format_size(c.bytes_before, before, sizeof(before));
	format_size(c.bytes_after, after, sizeof(after));
	format_size(c.contents_bytes, removed, sizeof(removed));
	printf("%llu operations became %llu, %s became %s; %llu contents (%s) were removed\n",
		(unsigned long long)c.operations_before, (unsigned long long)c.operations_after,
		before, after, (unsigned long long)c.contents_removed, removed);
	return 0;
}

static int do_remove(const struct log_options *o, char **v, cloche_err *err)
{
	return cloche_oplog_remove(v[0], err);
}

static bool list_one(const char *sandbox, uint64_t bytes, uint64_t modified_us, void *user)
{
	char size[32];

	if (user) {
		json_array_append_new(
			user, json_pack("{s:s, s:I, s:I}", "id", sandbox, "bytes",
				      (json_int_t)bytes, "modified_usec", (json_int_t)modified_us));
		return true;
	}
	format_size(bytes, size, sizeof(size));
	printf("%-30s  %9s  ", sandbox, size);
	show_time(modified_us);
	putchar('\n');
	return true;
}

static int do_list(const struct log_options *o, cloche_err *err)
{
	json_t *all = o->json ? json_array() : NULL;
	int r = cloche_oplog_list(list_one, all, err);

	if (r == 0 && o->json)
		return json_print(all) ? 0 : EXIT_CLOCHE;
	json_decref(all);
	return r;
}

static int run(const struct log_options *o, const struct operands *operands, cloche_err *err)
{
	static const struct {
		const char *name;
		int (*fn)(const struct log_options *o, char **v, cloche_err *err);
	} operations[] = {{"show", do_show}, {"export", do_export}, {"compact", do_compact},
		{"rm", do_remove}};
	const char *name = operands->n > 1 ? operands->v[1] : "show";

	if (operands->n == 0)
		return do_list(o, err);
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (strcmp(operations[i].name, name) == 0 &&
			operands->n <= (operations[i].fn == do_export ? 3 : 2))
			return operations[i].fn(o, operands->v, err);
	return wrong_usage(err, "\"cloche log --help\" lists the operations",
		"log: it is: cloche log ID [show|export DIR|compact|rm]");
}

static int main_log(int argc, char **argv)
{
	struct log_options o = {0};
	struct operands operands = {0};
	cloche_err err = CLOCHE_ERR_INIT;
	int r = options_read(&command_log, &o, argc, argv, &operands, &err);

	if (r == 0 && operands.help)
		return 0;
	if (r == 0)
		r = run(&o, &operands, &err);
	r = flush_output(r);
	return r < 0 ? complain(&err) : r;
}

/* --- replaying --- */

int replay_log(cloche_oplog *log, const cloche_instance *instance, cloche_err *err)
{
	cloche_replayed done;
	int r = cloche_oplog_replay(log, instance, &done, err);

	if (r == 0 && done.unknown)
		say("%llu operations of the log are not known to this version, and were passed "
		    "over",
			(unsigned long long)done.unknown);
	return r;
}

static int main_replay(int argc, char **argv)
{
	struct operands operands = {0};
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_instance *instance = NULL;
	cloche_oplog *log = NULL;
	int r = options_read(&command_replay, NULL, argc, argv, &operands, &err);

	if (r == 0 && operands.help)
		return 0;
	if (r == 0 && operands.n != 2)
		r = wrong_usage(&err, "a new sandbox from a log: cloche create --from LOG",
			"replay: it is: cloche replay LOG ID");
	if (r == 0)
		r = open_log(operands.v[0], &log, &err);
	if (r == 0)
		r = cloche_instance_open(operands.v[1], &instance, &err);
	if (r == 0)
		r = replay_log(log, instance, &err);
	cloche_instance_free(instance);
	cloche_oplog_free(log);
	return r < 0 ? complain(&err) : 0;
}

const struct command command_log = {
	.name = "log",
	.summary = "what was recorded of sandboxes: list, show, export, compact",
	.synopsis = "[ID|FILE [OPERATION]] [OPTIONS]",
	.text = "Without ID: lists the operation logs. A sandbox has one if it was created with\n"
		"--record ops, or with --runtime node or python; it stays when the sandbox is "
		"gone.\n"
		"\n"
		"Operations:\n"
		"  show                  the entries (default); also of a FILE, or of SandboX\n"
		"  export DIR            the log and the contents it names, to take elsewhere\n"
		"  compact               leaves out what later entries have made void\n"
		"  rm                    removes the log of a sandbox that does not run\n"
		"\n"
		"  cloche log dev show --from 10 --json\n"
		"  cloche log dev export saved\n"
		"  cloche create --from saved/state-logs/*.jsonl",
	.tables = {&option_table},
	.run = main_log,
};

const struct command command_replay = {
	.name = "replay",
	.summary = "do again in a sandbox what a log says",
	.synopsis = "LOG ID",
	.text = "LOG is a file, or the sandbox that was recorded. What it says about files,\n"
		"variables and storage is done again in the sandbox ID, in its order; nothing\n"
		"outside of that sandbox is touched.\n"
		"\n"
		"  cloche replay saved/state-logs/*.jsonl dev",
	.run = main_replay,
};
