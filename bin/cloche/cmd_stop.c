/* SPDX-License-Identifier: Apache-2.0 */
/* stop, rm and prune: end and remove sandboxes. */
#include "cli.h"
#include "json_out.h"
#include "planted.h"

#include <stdio.h>
#include <string.h>

enum { DEFAULT_GRACE_MS = 5000 };

/* --- stop --- */

struct stop_options {
	uint64_t grace_ms;
};

static int set_grace(void *ctx, const char *value, cloche_err *err)
{
	struct stop_options *o = ctx;
	uint64_t zero;

	/* A plain 0 is allowed. */
	if (read_number(value, 0, &zero)) {
		o->grace_ms = 0;
		return 0;
	}
	return read_duration("grace", value, &o->grace_ms, err);
}

static int stop(const cloche_instance *i, void *user)
{
	const struct stop_options *o = user;
	cloche_err err = CLOCHE_ERR_INIT;

	if (cloche_instance_stop(i, o->grace_ms, &err) < 0)
		return complain(&err);
	json_decref(planted_say(cloche_instance_id(i)));
	return put_line(cloche_instance_id(i)) ? 0 : EXIT_CLOCHE;
}

static int main_stop(int argc, char **argv)
{
	struct stop_options o = {.grace_ms = DEFAULT_GRACE_MS};

	return main_of_instances(&command_stop, &o, argc, argv, stop);
}

static const struct option stop_options[] = {
	{"grace", 't', "TIME", "the time between TERM and KILL (default 5s; 0: KILL at once)",
		set_grace},
};
static const struct option_table stop_table = {.options = stop_options,
	.n = sizeof(stop_options) / sizeof(stop_options[0]),
	.title = "Options"};

const struct command command_stop = {
	.name = "stop",
	.summary = "end sandboxes; their logs stay",
	.synopsis = "[OPTIONS] ID...",
	.text = "Sends TERM to everything inside, KILL after a while (--grace), and returns when\n"
		"nothing in the sandbox runs any more. Record and logs stay until \"cloche rm\".",
	.tables = {&stop_table},
	.run = main_stop,
};

/* --- rm --- */

static int set_force(void *ctx, const char *value, cloche_err *err)
{
	*(bool *)ctx = true;
	return 0;
}

static int rm(const cloche_instance *i, void *user)
{
	const bool *force = user;
	cloche_err err = CLOCHE_ERR_INIT;

	if (cloche_instance_remove(i, *force, &err) < 0)
		return complain(&err);
	json_decref(planted_say(cloche_instance_id(i)));
	return put_line(cloche_instance_id(i)) ? 0 : EXIT_CLOCHE;
}

static int main_rm(int argc, char **argv)
{
	/* As "destroy", the name in SandboX (main.c), it also removes running sandboxes. */
	bool force = strcmp(argv[0], "destroy") == 0;

	return main_of_instances(&command_rm, &force, argc, argv, rm);
}

static const struct option rm_options[] = {
	{"force", 'f', NULL, "also remove a sandbox that runs: it is killed", set_force},
};
static const struct option_table rm_table = {
	.options = rm_options, .n = sizeof(rm_options) / sizeof(rm_options[0]), .title = "Options"};

const struct command command_rm = {
	.name = "rm",
	.summary = "remove sandboxes that have ended, with their logs",
	.synopsis = "[OPTIONS] ID...",
	.text = "Removes record and logs of sandboxes that have ended.",
	.tables = {&rm_table},
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

static int main_prune(int argc, char **argv)
{
	struct prune_options o = {0};
	struct operands operands = {0};
	cloche_err err = CLOCHE_ERR_INIT;
	int r = options_read(&command_prune, &o, argc, argv, &operands, &err);

	if (r == 0 && operands.help)
		return 0;
	if (r == 0 && operands.n > 0)
		r = wrong_usage(&err, "for one sandbox: cloche rm ID",
			"prune: takes no operand (\"%s\")", operands.v[0]);
	if (r == 0)
		r = cloche_instance_prune(on_removed, &o, &err);
	if (r < 0)
		return complain(&err);
	return o.failed ? EXIT_CLOCHE : 0;
}

static const struct option prune_options[] = {
	{"json", 0, NULL, "print one JSON object a line",
		.at = offsetof(struct prune_options, json)},
};
static const struct option_table prune_table = {.options = prune_options,
	.n = sizeof(prune_options) / sizeof(prune_options[0]),
	.title = "Options"};

const struct command command_prune = {
	.name = "prune",
	.summary = "remove all sandboxes that have ended or crashed",
	.synopsis = "[OPTIONS]",
	.text = "Removes record and logs of all sandboxes that have ended, and everything that\n"
		"crashed sandboxes left. Prints the id of each, and whether it was stopped or had\n"
		"crashed. Sandboxes that run are never touched.",
	.tables = {&prune_table},
	.run = main_prune,
};
