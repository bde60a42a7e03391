/* SPDX-License-Identifier: Apache-2.0 */
/* `cloche log` and `cloche replay`: the records of sandboxes. */
#include "cli.h"
#include "json_out.h"
#include "log.h"
#include "log_live.h"
#include "names.h"

#include <cloche/host_file.h>
#include <cloche/state.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct log_options {
	bool json, force, live;
	const char *from, *to, *output, *port;
};

static const struct option options[] = {
	{"json", 0, NULL, "show, diff: a line each; else one JSON document (report: with --live)",
		.of = "list, show, diff, compact, report",
		.at = offsetof(struct log_options, json)},
	{"from", 0, "N|TIME", "begin with entry N, or at TIME (2026-01-31T12:00:00Z)", .of = "show",
		.at = offsetof(struct log_options, from)},
	{"to", 0, "N|TIME", "end with entry N, or at TIME", .of = "show",
		.at = offsetof(struct log_options, to)},
	{"output", 'o', "FILE.html", "the file to write; -: standard output", .of = "report",
		.at = offsetof(struct log_options, output)},
	{"live", 0, NULL, "serve the page of a run that goes on, to a browser here", .of = "report",
		.at = offsetof(struct log_options, live)},
	{"port", 0, "N", "with --live: the port of 127.0.0.1 (default: any free one)",
		.of = "report", .at = offsetof(struct log_options, port)},
	{"force", 0, NULL, "replace an existing file", .of = "report",
		.at = offsetof(struct log_options, force)},
	{0},
};

int open_log(const char *name, cloche_oplog **ret, cloche_err *err)
{
	size_t n = strlen(name);

	if (strchr(name, '/') || (n > 5 && strcmp(name + n - 5, ".json") == 0) ||
		(n > 6 && strcmp(name + n - 6, ".jsonl") == 0))
		return cloche_oplog_open_file(name, ret, err);
	return cloche_oplog_open(name, ret, err);
}

void close_log(cloche_oplog *log)
{
	uint64_t torn = log ? cloche_oplog_torn(log) : 0;
	char size[32];

	format_size(torn, size, sizeof(size));
	if (torn)
		say("warning: the log ends in a part of an entry (%s), which was ignored", size);
	cloche_oplog_free(log);
}

/* --- showing --- */

int log_read_bound(const char *text, struct bound *ret, cloche_err *err)
{
	struct tm tm = {0};
	const char *end;

	if (!text || read_number(text, INT64_MAX, &ret->number))
		return 0;
	end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	if (!end || (*end && strcmp(end, "Z") != 0))
		return wrong_usage(err, NULL,
			"log: use an entry's number or a time such as "
			"2026-01-31T12:00:00Z, not \"%s\"",
			text);
	ret->time_us = (uint64_t)timegm(&tm) * 1000000;
	return 0;
}

struct showing {
	const struct log_options *o;
	struct bound from, to;
	bool ok;
	/* Requests are shown between the entries, sorted by time. */
	cloche_oplog *log;
	cloche_err *err;
	int result;
	uint64_t shown;  /* number of the last one shown or skipped */
	uint64_t next;   /* time of the next one; 0: not looked up yet; UINT64_MAX: none left */
	uint64_t before; /* requests before this time are due */
	bool hidden, begun;
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

static bool show_request(const cloche_request *q, void *user)
{
	struct showing *s = user;

	s->next = q->time_us;
	if (q->time_us >= s->before)
		return false;
	s->shown = q->number;
	s->next = UINT64_MAX;
	if (s->hidden || q->time_us < s->from.time_us ||
		(s->to.time_us && q->time_us >= s->to.time_us + 1000000))
		return true;
	if (s->o->json) {
		s->ok = json_print_text(q->json);
		return s->ok;
	}
	printf("%6s  ", "-");
	show_time(q->time_us);
	printf("%-14s %s %s", "net.request", q->method, q->url);
	if (q->status)
		printf("  %u", q->status);
	if (q->refused) {
		printf(q->refused[0] ? "  refused: " : "  refused");
		name_print(q->refused, strlen(q->refused));
	}
	putchar('\n');
	return !ferror(stdout);
}

/* Show the requests before that time, or skip them if hidden. */
static bool show_requests(struct showing *s, uint64_t before, bool hidden)
{
	if (s->next >= before)
		return true;
	s->before = before;
	s->hidden = hidden;
	s->next = UINT64_MAX;
	s->result = cloche_oplog_requests(s->log, s->shown, show_request, s, s->err);
	return s->result == 0 && s->ok;
}

static bool show_one(const cloche_operation *op, void *user)
{
	struct showing *s = user;
	bool before = is_before(op, &s->from), after = is_after(op, &s->to);

	if (!show_requests(s, op->time_us, before || after || (s->from.number && !s->begun)))
		return false;
	s->begun = s->begun || !before;
	if (before || after)
		return true;
	if (s->o->json) {
		s->ok = json_print_text(op->json);
		return s->ok;
	}
	printf("%6llu  ", (unsigned long long)op->number);
	show_time(op->time_us);
	printf("%-14s", op->name);
	if (op->subject) {
		putchar(' ');
		name_print(op->subject, op->subject_length);
		show_object(op);
		if (op->exec)
			printf("  #%u", op->exec);
	} else {
		event_print(op);
	}
	putchar('\n');
	return !ferror(stdout);
}

static int do_show(const struct log_options *o, char **v, cloche_err *err)
{
	struct showing s = {.o = o, .ok = true};
	_cleanup_(close_logp) cloche_oplog *log = NULL;
	int r = log_read_bound(o->from, &s.from, err);

	if (r == 0)
		r = log_read_bound(o->to, &s.to, err);
	if (r == 0 && ((s.to.number && s.from.number > s.to.number) ||
			      (s.to.time_us && s.from.time_us > s.to.time_us)))
		r = wrong_usage(err, NULL, "log: --from %s comes after --to %s", o->from, o->to);
	if (r == 0)
		r = open_log(v[0], &log, err);
	s.log = log;
	s.err = err;
	if (r == 0)
		r = cloche_oplog_read(log, show_one, &s, err);
	if (r == 0 && s.ok && s.result == 0)
		(void)show_requests(&s, UINT64_MAX, s.to.number > 0);
	if (r == 0)
		r = s.result;
	return r < 0 ? r : s.ok ? 0 : EXIT_CLOCHE;
}

/* --- other operations --- */

static int do_export(const struct log_options *o, char **v, cloche_err *err)
{
	_cleanup_(close_logp) cloche_oplog *log = NULL;
	int r;

	if (!v[2])
		return wrong_usage(err, NULL, "log: usage: cloche log ID export DIR");
	r = open_log(v[0], &log, err);
	return r < 0 ? r : cloche_oplog_export(log, v[2], err);
}

static int report_exists(cloche_err *err, const char *path)
{
	return wrong_usage(
		err, "--force replaces the file", "log: cannot write %s: it exists already", path);
}

/* Write the log as an HTML page to a file, completely or not at all, or "-" for standard output. */
static int write_report(cloche_oplog *log, const char *path, bool force, cloche_err *err)
{
	cloche_host_file *file;
	int fd, r;

	if (strcmp(path, "-") == 0)
		return cloche_oplog_report(log, STDOUT_FILENO, err);
	/* Check this before the work. */
	if (!force && faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return report_exists(err, path);
	r = cloche_host_file_begin(path, 0600, &file, &fd, err);
	if (r < 0)
		return r;
	r = cloche_oplog_report(log, fd, err);
	if (r < 0) {
		cloche_host_file_abort(file);
		return r;
	}
	r = cloche_host_file_commit(file, force, err);
	return r == -CLOCHE_E_EXISTS ? report_exists(err, path) : r;
}

static int do_report(const struct log_options *o, char **v, cloche_err *err)
{
	_cleanup_(close_logp) cloche_oplog *log = NULL;
	uint64_t port = 0;
	int r;

	if (o->port && (!o->live || !read_number(o->port, UINT16_MAX, &port)))
		return wrong_usage(err, NULL, "log: --port is a number, for report --live");
	if (o->live && !o->output && !o->force)
		return log_live(v[0], (uint16_t)port, o->json, err);
	if (!o->output || o->live || o->json)
		return wrong_usage(
			err, NULL, "log: usage: cloche log ID report -o FILE.html, or --live");
	r = open_log(v[0], &log, err);
	return r < 0 ? r : write_report(log, o->output, o->force, err);
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

static int do_diff(const struct log_options *o, char **v, cloche_err *err)
{
	if (!v[2] || !v[3])
		return wrong_usage(err, NULL, "log: usage: cloche log ID diff A B");
	return log_diff(v[0], v[2], v[3], o->json, err);
}

static int log_do_remove(const struct log_options *o, char **v, cloche_err *err)
{
	return cloche_oplog_remove(v[0], err);
}

static bool log_list_one(const char *sandbox, uint64_t bytes, uint64_t modified_us, void *user)
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

static int log_do_list(const struct log_options *o, cloche_err *err)
{
	json_t *all = o->json ? json_array() : NULL;
	int r = cloche_oplog_list(log_list_one, all, err);

	if (r == 0 && o->json)
		return json_print(all) ? 0 : EXIT_CLOCHE;
	json_decref(all);
	return r;
}

static int main_log(void *ctx, const struct operands *operands, cloche_err *err)
{
	static const struct {
		const char *name;
		int (*fn)(const struct log_options *o, char **v, cloche_err *err);
		int most; /* operands */
	} operations[] = {{"show", do_show, 2}, {"diff", do_diff, 4}, {"report", do_report, 2},
		{"export", do_export, 3}, {"compact", do_compact, 2}, {"rm", log_do_remove, 2}};
	const char *name = operands->n > 1 ? operands->v[1] : "show";
	const struct log_options *o = ctx;

	if (operands->n == 0) {
		int r = options_check_operation(&command_log, operands, "list", err);

		return r < 0 ? r : log_do_list(o, err);
	}
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (strcmp(operations[i].name, name) == 0 && operands->n <= operations[i].most) {
			int r = options_check_operation(&command_log, operands, name, err);

			return r < 0 ? r : operations[i].fn(o, operands->v, err);
		}
	return wrong_usage(err, "\"cloche log --help\" lists the operations",
		"log: usage: cloche log ID [show|diff A B|report|export DIR|compact|rm]");
}

/* --- replaying --- */

void tell_unknown(const cloche_replayed *done)
{
	if (done->unknown)
		say("%llu operation%s of the log %s not known to this version and %s skipped",
			(unsigned long long)done->unknown, done->unknown == 1 ? "" : "s",
			done->unknown == 1 ? "is" : "are", done->unknown == 1 ? "was" : "were");
}

struct replay_options {
	const char *to;
};

static const struct option replay_options[] = {
	{"to", 0, "N|start", "end with entry N; start: just before the first command",
		.at = offsetof(struct replay_options, to)},
	{0},
};

/* Find the last entry before the first command. */
static bool find_first(const cloche_operation *op, void *user)
{
	uint64_t *last = user;

	if (strcmp(op->name, "exec.start") == 0)
		return false;
	*last = op->number;
	return true;
}

static bool find_end(const cloche_operation *op, void *user)
{
	uint64_t *last = user;

	*last = op->number;
	return true;
}

int log_check_entry(cloche_oplog *log, uint64_t number, cloche_err *err)
{
	uint64_t last = 0;
	int r = cloche_oplog_read(log, find_end, &last, err);

	if (r == 0 && number > last)
		return wrong_usage(err, NULL, "the log has no entry %llu: the last one is %llu",
			(unsigned long long)number, (unsigned long long)last);
	return r;
}

int read_last(cloche_oplog *log, const char *text, uint64_t *ret, cloche_err *err)
{
	*ret = 0;
	if (!text)
		return 0;
	if (read_number(text, INT64_MAX, ret) && *ret > 0)
		return log_check_entry(log, *ret, err);
	if (strcmp(text, "start") == 0)
		return cloche_oplog_read(log, find_first, ret, err);
	return wrong_usage(err, NULL, "--to is an entry's number or \"start\", not \"%s\"", text);
}

/* Do what `cloche create --from` does. */
static int replay_in_new(char *log, const struct replay_options *o)
{
	static char create[] = "create", from[] = "--from", to[] = "--to";
	char *argv[] = {create, from, log, to, (char *)(uintptr_t)o->to, NULL};
	int argc = o->to ? 5 : 3;

	argv[argc] = NULL;
	sandbox_options_prepare(create);
	return command_execute(&command_create, argc, argv);
}

static int main_replay(void *ctx, const struct operands *operands, cloche_err *err)
{
	const struct replay_options *o = ctx;
	uint64_t last = 0;
	_cleanup_(instance_freep) cloche_instance *instance = NULL;
	_cleanup_(close_logp) cloche_oplog *log = NULL;
	cloche_replayed done;
	int r;

	if (operands->n == 1)
		return replay_in_new(operands->v[0], o);
	if (operands->n != 2)
		return wrong_usage(err, NULL, "replay: usage: cloche replay LOG [ID]");
	r = open_log(operands->v[0], &log, err);
	if (r == 0)
		r = read_last(log, o->to, &last, err);
	if (r == 0)
		r = cloche_instance_open(operands->v[1], &instance, err);
	if (r == 0)
		r = cloche_oplog_replay(log, instance, last, &done, err);
	if (r == 0)
		tell_unknown(&done);
	return r;
}

const struct command command_log = {
	.name = "log",
	.summary = "what was recorded of sandboxes: show, report, export, compact",
	.synopsis = "[ID|FILE [OPERATION]] [OPTIONS]",
	.text = "Without ID, lists the operation logs. A sandbox has one if it was made with\n"
		"--record ops or full, or with --runtime node or python; the log stays when the\n"
		"sandbox is gone.\n"
		"\n"
		"Operations:\n"
		"  show                  the entries (default); FILE may also be a log of SandboX\n"
		"  diff A B              what differs between entries (or times); 0: at first\n"
		"  report -o FILE.html   a page to look at: turns, commands, diffs, requests\n"
		"  report --live         the same at an address, for a run that goes on\n"
		"  export DIR            the log and the contents it names, to take elsewhere\n"
		"  compact               leaves out what later entries have made void\n"
		"  rm                    removes the log of a sandbox that does not run\n"
		"\n"
		"  cloche log dev show --from 10 --json\n"
		"  cloche log dev export saved\n"
		"  cloche create --from saved/state-logs/*.jsonl",
	.tables = {&(const struct option_table){"Options", options}},
	.ctx = &(struct log_options){0},
	.run = main_log,
};

const struct command command_replay = {
	.name = "replay",
	.summary = "repeat in a sandbox what a log says",
	.synopsis = "LOG [ID] [--to N|start]",
	.text = "LOG is a file, or the sandbox that was recorded. What the log says about files,\n"
		"variables and storage is done again in the sandbox ID, in the order of the log.\n"
		"Nothing outside of that sandbox is touched. Without ID, a sandbox is made as by\n"
		"\"cloche create --from LOG\", and its id is printed.\n"
		"\n"
		"  cloche replay saved/state-logs/*.jsonl dev",
	.tables = {&(const struct option_table){"Options", replay_options}},
	.ctx = &(struct replay_options){0},
	.run = main_replay,
};
