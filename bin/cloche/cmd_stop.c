/* SPDX-License-Identifier: Apache-2.0 */
/* stop, rm and prune: end and remove sandboxes. */
#include "cli.h"
#include "planted.h"

#include <stdio.h>
#include <string.h>

enum { DEFAULT_GRACE_MS = 5000 };

/* --- stop --- */

struct stop_options {
	uint64_t grace_ms;
};

static int set_grace(const struct option *option, void *at, const char *value, cloche_err *err)
{
	/* A plain 0 is allowed. */
	return read_number(value, 0, at) ? 0 : set_duration(option, at, value, err);
}

static int stop_one(cloche_instance *i, void *user)
{
	const struct stop_options *o = user;
	cloche_err err = CLOCHE_ERR_INIT;

	if (cloche_instance_stop(i, o->grace_ms, &err) < 0)
		return complain(&err);
	json_decref(planted_say(cloche_instance_id(i)));
	return put_line(cloche_instance_id(i)) ? 0 : EXIT_CLOCHE;
}

static int main_stop(void *ctx, const struct operands *operands, cloche_err *err)
{
	return each_instance(&command_stop, operands, stop_one, ctx, err);
}

static const struct option stop_options[] = {
	{"grace", 't', "TIME", "the time between TERM and KILL (default 5s; 0: KILL at once)",
		set_grace, .at = offsetof(struct stop_options, grace_ms)},
	{0},
};

const struct command command_stop = {
	.name = "stop",
	.summary = "end sandboxes; their logs stay",
	.synopsis = "[OPTIONS] ID...",
	.text = "Sends TERM to everything inside, KILL after a while (--grace), and returns when\n"
		"nothing in the sandbox runs any more. Record and logs stay until \"cloche rm\".",
	.tables = {&(const struct option_table){"Options", stop_options}},
	.ctx = &(struct stop_options){.grace_ms = DEFAULT_GRACE_MS},
	.run = main_stop,
};

/* --- rm --- */

struct rm_options {
	bool force;
};

static int rm_one(cloche_instance *i, void *user)
{
	const struct rm_options *o = user;
	cloche_err err = CLOCHE_ERR_INIT;

	if (cloche_instance_remove(i, o->force, &err) < 0)
		return complain(&err);
	json_decref(planted_say(cloche_instance_id(i)));
	return put_line(cloche_instance_id(i)) ? 0 : EXIT_CLOCHE;
}

static int main_rm(void *ctx, const struct operands *operands, cloche_err *err)
{
	struct rm_options *o = ctx;

	/* As "destroy", the name in SandboX (main.c), it also removes running sandboxes. */
	o->force |= strcmp(operands->called, "destroy") == 0;
	return each_instance(&command_rm, operands, rm_one, o, err);
}

static const struct option rm_options[] = {
	{"force", 'f', NULL, "also remove a sandbox that runs: it is killed",
		.at = offsetof(struct rm_options, force)},
	{0},
};

const struct command command_rm = {
	.name = "rm",
	.summary = "remove sandboxes that have ended, with their logs",
	.synopsis = "[OPTIONS] ID...",
	.text = "Removes record and logs of sandboxes that have ended.",
	.tables = {&(const struct option_table){"Options", rm_options}},
	.ctx = &(struct rm_options){0},
	.run = main_rm,
};

/* --- prune --- */

struct prune_options {
	bool json, failed;
};

static void on_removed(const char *id, bool crashed, void *user)
{
	struct prune_options *o = user;
	char line[128];

	if (o->json)
		snprintf(line, sizeof(line), "{\"id\": \"%s\", \"state\": \"%s\"}", id,
			crashed ? "crashed" : "stopped");
	else
		snprintf(line, sizeof(line), "%s  %s", id, crashed ? "crashed" : "stopped");
	o->failed |= !put_line(line);
}

static int main_prune(void *ctx, const struct operands *operands, cloche_err *err)
{
	struct prune_options *o = ctx;
	int r;

	if (operands->n > 0)
		return wrong_usage(err, "for one sandbox: cloche rm ID",
			"prune: takes no operand (\"%s\")", operands->v[0]);
	r = cloche_instance_prune(on_removed, o, err);
	return r < 0 ? r : o->failed ? EXIT_CLOCHE : 0;
}

static const struct option prune_options[] = {
	{"json", 0, NULL, "print one JSON object a line",
		.at = offsetof(struct prune_options, json)},
	{0},
};

const struct command command_prune = {
	.name = "prune",
	.summary = "remove all sandboxes that have ended or crashed",
	.synopsis = "[OPTIONS]",
	.text = "Removes record and logs of all sandboxes that have ended, and everything that\n"
		"crashed sandboxes left. Prints the id of each, and whether it was stopped or had\n"
		"crashed. Sandboxes that run are never touched.",
	.tables = {&(const struct option_table){"Options", prune_options}},
	.ctx = &(struct prune_options){0},
	.run = main_prune,
};
