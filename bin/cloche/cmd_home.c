/* SPDX-License-Identifier: Apache-2.0 */
/* `cloche home`: the homes that agents have. */
#include "cli.h"
#include "json_out.h"

#include <cloche/agent.h>
#include <cloche/project.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct home_options {
	bool json, any, failed;
	json_t *documents;
};

static void home_put_row(const char *name, const char *size, const char *caches, const char *used,
	const char *project, struct home_options *o)
{
	char row[4096 + 512];

	snprintf(row, sizeof(row), "%-48s %-11s %-11s %-9s %s", name, size, caches, used, project);
	o->failed |= !put_row(row);
}

static void home_add_document(const cloche_home *home, struct home_options *o)
{
	json_t *one = json_pack("{s:o, s:o, s:o, s:o, s:I, s:b, s:I, s:b, s:I}", "name",
		json_bytes(home->name, strlen(home->name)), "agent",
		json_bytes(home->agent, strlen(home->agent)), "project",
		json_bytes(home->project, strlen(home->project)), "dir",
		json_bytes(home->dir, strlen(home->dir)), "bytes", (json_int_t)home->bytes,
		"partly", home->partly, "used_usec", (json_int_t)home->used_usec, "in_use",
		home->in_use, "cache_bytes", (json_int_t)home->cache_bytes);

	o->failed |= json_array_append_new(o->documents, one) < 0;
}

static void home_on_one(const cloche_home *home, void *user)
{
	struct home_options *o = user;
	char bytes[32], size[40], caches[32], used[32];

	if (o->json) {
		home_add_document(home, o);
		return;
	}
	if (!o->any)
		home_put_row("NAME", "SIZE", "CACHES", "USED", "PROJECT", o);
	o->any = true;
	format_size(home->bytes, bytes, sizeof(bytes));
	snprintf(size, sizeof(size), "%s%s", home->partly ? ">" : "", bytes);
	format_size(home->cache_bytes, caches, sizeof(caches));
	format_age(home->used_usec, used, sizeof(used));
	home_put_row(home->name, size, caches, home->in_use ? "now" : used,
		*home->project ? home->project : "-", o);
}

static int home_list(struct home_options *o, cloche_err *err)
{
	int r;

	if (o->json)
		o->documents = json_array();
	r = cloche_home_list(home_on_one, o, err);
	if (r < 0) {
		json_decref(o->documents);
		return r;
	}
	if (o->json)
		o->failed |= !json_print(o->documents);
	else if (!o->any)
		say("no agent has a home yet: each gets one when it starts (cloche claude, ...)");
	return o->failed ? EXIT_CLOCHE : 0;
}

/* The name of an agent stands for its home in the project in which the user is. */
static int home_remove(const char *name, cloche_err *err)
{
	cloche_sandbox *sb = NULL;
	char *own = NULL;
	int r = 0;

	if (cloche_agent_exists(name)) {
		sb = cloche_sandbox_new();
		r = sb ? cloche_sandbox_use_project(sb, false, NULL, NULL, err)
		       : wrong_usage(err, NULL, "out of memory");
		if (r == 0)
			r = cloche_home_name(sb, name, &own, err);
	}
	if (r == 0)
		r = cloche_home_remove(own ? own : name, err);
	if (r == 0)
		r = put_line(own ? own : name) ? 0 : EXIT_CLOCHE;
	cloche_sandbox_free(sb);
	free(own);
	return r;
}

static int main_home(void *ctx, const struct operands *operands, cloche_err *err)
{
	int worst = 0;

	if (operands->n == 0)
		return home_list(ctx, err);
	if (strcmp(operands->v[0], "rm") != 0 || operands->n < 2)
		return wrong_usage(err,
			"\"cloche home\" lists them; to remove one: cloche home rm claude",
			"home: \"%s\" is not how homes are listed or removed", operands->v[0]);
	for (int i = 1; i < operands->n; i++) {
		int r = home_remove(operands->v[i], err);

		if (r != 0)
			worst = r < 0 ? complain(err) : r;
	}
	return worst;
}

static const struct option home_options[] = {
	{"json", 0, NULL, "print the list as one JSON array",
		.at = offsetof(struct home_options, json)},
	{0},
};

const struct command command_home = {
	.name = "home",
	.summary = "list and remove the homes that agents have",
	.synopsis = "[--json]\n       cloche home rm NAME|AGENT...",
	.text = "Lists the homes of agents (\"cloche claude\" and its kin): one for each project\n"
		"and agent, with what the agent keeps there. \"rm\" removes homes by the names in\n"
		"the list; the name of an agent is its home in the project in which you are.",
	.tables = {&(const struct option_table){"Options", home_options}},
	.ctx = &(struct home_options){0},
	.run = main_home,
};
