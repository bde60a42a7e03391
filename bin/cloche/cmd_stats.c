/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include "interrupt.h"
#include "json_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* CPU usage needs two measurements. */
enum { FIRST_MS = 300, INTERVAL_MS = 1000 };

struct watched {
	cloche_instance *i;
	cloche_stats before;
	bool gone;
};

struct stats_options {
	bool watch, json;
	struct watched *watched;
	size_t n, cap;
	int status;
};

static const struct option options[] = {
	{"watch", 0, NULL, "print again every second, until Ctrl-C",
		.at = offsetof(struct stats_options, watch)},
	{"json", 0, NULL, "print JSON; with --watch one object a line",
		.at = offsetof(struct stats_options, json)},
	{0},
};

static bool stats_add(struct stats_options *o, const char *id)
{
	cloche_instance *i = NULL;
	cloche_err err = CLOCHE_ERR_INIT;

	if (o->n == o->cap) {
		struct watched *more =
			reallocarray(o->watched, o->cap = o->cap * 2 + 16, sizeof(*more));

		if (!more)
			return false;
		o->watched = more;
	}
	if (cloche_instance_open(id, &i, &err) < 0 || cloche_instance_refresh(i, &err) < 0) {
		cloche_instance_free(i);
		o->status = complain(&err);
		return true;
	}
	o->watched[o->n++] = (struct watched){.i = i};
	return true;
}

static bool stats_on_instance(const cloche_instance *i, void *user)
{
	return stats_add(user, cloche_instance_id(i));
}

/* Return false if the sandbox does not answer. Report that once. */
static bool stats_look(struct stats_options *o, struct watched *w, cloche_stats *ret)
{
	cloche_err err = CLOCHE_ERR_INIT;

	ret->size = sizeof(*ret);
	if (w->gone)
		return false;
	if (cloche_instance_stats(w->i, ret, &err) == 0)
		return true;
	w->gone = true;
	o->status = complain(&err);
	return false;
}

static double cpu_percent(const cloche_stats *a, const cloche_stats *b)
{
	if (b->at_us <= a->at_us || b->cpu_us < a->cpu_us)
		return 0;
	return 100.0 * (double)(b->cpu_us - a->cpu_us) / (double)(b->at_us - a->at_us);
}

static json_t *stats_document(const struct watched *w, const cloche_stats *s)
{
	return json_pack("{s:s, s:s, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
			 "s:I, s:{s:I, s:I, s:I, s:I}}",
		"id", cloche_instance_id(w->i), "name", cloche_instance_info_of(w->i)->name,
		"cpu_percent", cpu_percent(&w->before, s), "cpu_ms", (json_int_t)(s->cpu_us / 1000),
		"uptime_ms", (json_int_t)s->uptime_ms, "memory_bytes", (json_int_t)s->memory_bytes,
		"memory_peak_bytes", (json_int_t)s->memory_peak_bytes, "memory_limit",
		(json_int_t)s->memory_limit, "pids", (json_int_t)s->pids, "pids_peak",
		(json_int_t)s->pids_peak, "pids_limit", (json_int_t)s->pids_limit, "io_read_bytes",
		(json_int_t)s->io_read_bytes, "io_write_bytes", (json_int_t)s->io_write_bytes,
		"commands_running", (json_int_t)s->commands_running, "commands_total",
		(json_int_t)s->commands_total, "network", "allowed", (json_int_t)s->network_allowed,
		"blocked", (json_int_t)s->network_blocked, "sent", (json_int_t)s->network_sent,
		"received", (json_int_t)s->network_received);
}

static void with_limit(uint64_t used, uint64_t limit, char *ret, size_t size)
{
	char a[32], b[32];

	format_size(used, a, sizeof(a));
	format_size(limit, b, sizeof(b));
	if (limit)
		snprintf(ret, size, "%s / %s", a, b);
	else
		snprintf(ret, size, "%s", a);
}

enum { STATS_WIDE = 150 };

/* Where not everything fits, what matters most: without disk and bytes of the network, and the name
 * in place of the id. */
static bool stats_is_narrow(void)
{
	unsigned columns = output_columns();

	return columns && columns < STATS_WIDE;
}

#define STATS_NARROW "%-20.20s  %6s  %-19s  %-11s  %s"

static bool stats_print_narrow(
	const struct watched *w, const cloche_stats *s, const char *memory, const char *pids)
{
	const char *name = cloche_instance_info_of(w->i)->name;
	char line[256], cpu[32], requests[48];

	snprintf(cpu, sizeof(cpu), "%.1f", cpu_percent(&w->before, s));
	snprintf(requests, sizeof(requests), "%llu / %llu", (unsigned long long)s->network_allowed,
		(unsigned long long)s->network_blocked);
	snprintf(line, sizeof(line), STATS_NARROW,
		*name ? name : shown_id(cloche_instance_id(w->i)), cpu, memory, pids, requests);
	return put_line(line);
}

static bool stats_print_row(const struct watched *w, const cloche_stats *s)
{
	char line[512], memory[80], pids[48], read[32], written[32], sent[32], received[32];
	const char *name = cloche_instance_info_of(w->i)->name;

	with_limit(s->memory_bytes, s->memory_limit, memory, sizeof(memory));
	snprintf(pids, sizeof(pids), s->pids_limit ? "%llu / %llu" : "%llu",
		(unsigned long long)s->pids, (unsigned long long)s->pids_limit);
	if (stats_is_narrow())
		return stats_print_narrow(w, s, memory, pids);
	format_size(s->io_read_bytes, read, sizeof(read));
	format_size(s->io_write_bytes, written, sizeof(written));
	format_size(s->network_sent, sent, sizeof(sent));
	format_size(s->network_received, received, sizeof(received));
	snprintf(line, sizeof(line),
		"%-29s  %-12s  %6.1f  %-19s  %-11s  %-8s  %-8s  %-8s  %-8s  %llu / %llu",
		cloche_instance_id(w->i), *name ? name : "-", cpu_percent(&w->before, s), memory,
		pids, read, written, sent, received, (unsigned long long)s->network_allowed,
		(unsigned long long)s->network_blocked);
	return put_line(line);
}

static bool print_head(const struct stats_options *o)
{
	char line[512];

	if (o->json)
		return true;
	if (o->watch && isatty(STDOUT_FILENO) && !put(STDOUT_FILENO, "\x1b[H\x1b[2J", 7))
		return false;
	if (stats_is_narrow()) {
		snprintf(line, sizeof(line), STATS_NARROW, "SANDBOX", "CPU %", "MEMORY", "PIDS",
			"OK / REFUSED");
		return put_line(line);
	}
	snprintf(line, sizeof(line), "%-29s  %-12s  %6s  %-19s  %-11s  %-8s  %-8s  %-8s  %-8s  %s",
		"ID", "NAME", "CPU %", "MEMORY", "PIDS", "READ", "WRITTEN", "SENT", "RECEIVED",
		"REQUESTS OK / REFUSED");
	return put_line(line);
}

/* Show all of them once. Return false if the output failed or no sandbox is left. */
static bool stats_show(struct stats_options *o)
{
	json_t *all = o->json && !o->watch && o->n != 1 ? json_array() : NULL;
	bool ok = o->n > 0 || print_head(o), any = false;

	for (size_t k = 0; ok && k < o->n; k++) {
		struct watched *w = &o->watched[k];
		cloche_stats s;

		if (!stats_look(o, w, &s))
			continue;
		if (!any)
			ok = print_head(o);
		any = true;
		if (all)
			ok = json_array_append_new(all, stats_document(w, &s)) == 0;
		else if (ok)
			ok = !o->json   ? stats_print_row(w, &s)
			     : o->watch ? json_print_dense(stats_document(w, &s))
					: json_print(stats_document(w, &s));
		w->before = s;
	}
	if (all)
		ok = json_print(all) && ok;
	if (!ok)
		o->status = EXIT_CLOCHE;
	return ok && any;
}

static void stats_on_interrupt(void *user, int signal_number, unsigned count)
{
}

static void sleep_ms(long ms)
{
	const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	(void)nanosleep(&t, NULL);
}

static void stats_watch(struct stats_options *o)
{
	for (size_t k = 0; k < o->n; k++)
		(void)stats_look(o, &o->watched[k], &o->watched[k].before);
	if (o->watch)
		interrupt_catch(stats_on_interrupt, NULL);
	if (o->n > 0)
		sleep_ms(FIRST_MS);
	while (stats_show(o) && o->watch && !interrupt_signal())
		sleep_ms(INTERVAL_MS);
}

static int main_stats(void *ctx, const struct operands *ids, cloche_err *err)
{
	struct stats_options *o = ctx;
	int r = 0;

	for (int k = 0; k < ids->n; k++)
		(void)stats_add(o, ids->v[k]);
	if (ids->n == 0)
		r = cloche_instance_list(false, stats_on_instance, o, err);
	if (r == 0 && (o->n > 0 || ids->n == 0))
		stats_watch(o);
	for (size_t k = 0; k < o->n; k++)
		cloche_instance_free(o->watched[k].i);
	free(o->watched);
	return r < 0 ? r : o->status;
}

const struct command command_stats = {
	.name = "stats",
	.summary = "what sandboxes use: cpu, memory, processes, disk, network",
	.synopsis = "[OPTIONS] [ID...]",
	.text = "Without an ID, shows all sandboxes that run. CPU is in percent of one processor;\n"
		"network is in bytes of the bodies of requests and responses, and in requests.",
	.tables = {&(const struct option_table){"Options", options}},
	.ctx = &(struct stats_options){0},
	.run = main_stats,
};
