/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include "interrupt.h"
#include "json_out.h"
#include "terminal_filter.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { CHUNK = 64 * 1024 };

struct logs_options {
	bool follow, json, failed;
	uint64_t offset;
	uint64_t next, gone; /* where the next piece begins if nothing is gone; what was gone */
	uint32_t exec;
	struct terminal_filter filters[2];
};

static int set_offset(const struct option *option, void *at, const char *value, cloche_err *err)
{
	if (read_number(value, INT64_MAX, at))
		return 0;
	return wrong_usage(err, NULL, "--offset is a number of bytes, not \"%s\"", value);
}

static const struct option options[] = {
	{"follow", 'f', NULL, "go on until nothing more can be added to the log",
		.at = offsetof(struct logs_options, follow)},
	{"exec", 0, "N", "print the log of command N (default: the latest)", set_exec,
		.at = offsetof(struct logs_options, exec)},
	{"offset", 0, "BYTES", "begin at this offset in the log", set_offset,
		.at = offsetof(struct logs_options, offset)},
	{"json", 0, NULL, "print one object a line: {offset, stream, data}; the last has the end",
		.at = offsetof(struct logs_options, json)},
	{0},
};

static bool print_piece(bool is_stderr, uint64_t offset, const void *data, size_t length)
{
	return json_print_dense(json_pack("{s:I, s:s, s:o}", "offset", (json_int_t)offset, "stream",
		is_stderr ? "stderr" : "stdout", "data", json_bytes(data, length)));
}

static bool logs_on_output(
	bool is_stderr, uint64_t offset, const void *data, size_t length, void *user)
{
	struct logs_options *o = user;
	bool ok;

	o->gone += offset - o->next;
	o->next = offset + length;
	if (o->json)
		ok = print_piece(is_stderr, offset, data, length);
	else
		ok = terminal_filter_write(&o->filters[is_stderr],
			is_stderr ? STDERR_FILENO : STDOUT_FILENO, data, length);
	/* It is not a failure if the reader stops reading. */
	o->failed |= !ok && errno != EPIPE;
	return ok;
}

static int read_all(cloche_log *log, uint64_t *at, struct logs_options *o, cloche_err *err)
{
	static char chunk[CHUNK];

	for (;;) {
		cloche_log_piece piece;
		int r = cloche_log_read(log, *at, chunk, sizeof(chunk), &piece, err);

		if (r < 0 || piece.length == 0)
			return r;
		if (!logs_on_output(piece.is_stderr, piece.offset, chunk, piece.length, o))
			return 0;
		*at = piece.offset + piece.length;
	}
}

static void logs_on_interrupt(void *user, int signal_number, unsigned count)
{
	cloche_log_stop(user);
}

static bool logs_print_end(cloche_log *log, uint64_t at)
{
	cloche_log_state s = {.size = sizeof(s)};

	if (cloche_log_look(log, &s, NULL) < 0)
		return false;
	return json_print_dense(json_pack("{s:I, s:I, s:b, s:I, s:s?}", "offset", (json_int_t)at,
		"start", (json_int_t)s.start, "ended", (int)(s.ended && at >= s.end), "lost_bytes",
		(json_int_t)s.missing, "log_error", s.missing_why));
}

/* Say what is missing. Return whether it is missing because of a failure. */
static bool tell_missing(cloche_log *log, const struct logs_options *o)
{
	cloche_log_state s = {.size = sizeof(s)};
	char size[32];

	if (o->gone && !o->json) {
		format_size(o->gone, size, sizeof(size));
		say("%s of the output are no longer kept", size);
	}
	if (cloche_log_look(log, &s, NULL) < 0 || !s.missing_why)
		return false;
	format_size(s.missing, size, sizeof(size));
	say("the log is not complete: %s of the output could not be logged: %s", size,
		s.missing_why);
	return true;
}

static int logs_show(cloche_log *log, struct logs_options *o, cloche_err *err)
{
	uint64_t at = o->offset;
	int r, signal_number;

	signal(SIGPIPE, SIG_IGN);
	o->next = at;
	terminal_filter_open(&o->filters[0], STDOUT_FILENO, false);
	terminal_filter_open(&o->filters[1], STDERR_FILENO, false);
	if (o->follow) {
		interrupt_catch(logs_on_interrupt, log);
		r = cloche_log_follow(log, at, logs_on_output, o, &at, err);
		interrupt_forget();
	} else {
		r = read_all(log, &at, o, err);
	}
	(void)terminal_filter_close(&o->filters[0], STDOUT_FILENO);
	(void)terminal_filter_close(&o->filters[1], STDERR_FILENO);
	signal_number = interrupt_signal();
	if (r < 0)
		return r;
	if (o->json && !o->failed)
		o->failed = !logs_print_end(log, at) && errno != EPIPE;
	if (tell_missing(log, o) || o->failed)
		return EXIT_CLOCHE;
	return signal_number ? 128 + signal_number : 0;
}

static int main_logs(void *ctx, const struct operands *operands, cloche_err *err)
{
	struct logs_options *o = ctx;
	_cleanup_(instance_freep) cloche_instance *i = NULL;
	cloche_log *log = NULL;
	int r;

	if (operands->n != 1)
		return wrong_usage(err, "\"cloche ps -a\" lists the sandboxes",
			operands->n ? "logs: one sandbox at a time"
				    : "logs: which sandbox? Give its id or name");
	r = cloche_instance_open(operands->v[0], &i, err);
	if (r == 0)
		r = cloche_log_open(i, o->exec, &log, err);
	if (r == 0)
		r = logs_show(log, o, err);
	cloche_log_free(log);
	return r;
}

const struct command command_logs = {
	.name = "logs",
	.summary = "what a command in a sandbox has printed",
	.synopsis = "ID [OPTIONS]",
	.text = "Prints the log of the latest command, or of command N: its standard output to\n"
		"standard output, its standard error to standard error. The command, or the\n"
		"sandbox, may have ended.\n"
		"\n"
		"  cloche logs dev --follow\n"
		"  cloche logs dev --exec 3 --offset 4096",
	.tables = {&(const struct option_table){"Options", options}},
	.ctx = &(struct logs_options){0},
	.run = main_logs,
};
