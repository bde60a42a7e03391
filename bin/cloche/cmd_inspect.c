/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"

#include <string.h>
#include <unistd.h>

/* Standard JSON escapes all control characters, so it is safe to show on a terminal. */
static int inspect_one(cloche_instance *i, void *user)
{
	cloche_err err = CLOCHE_ERR_INIT;
	const char *text;

	if (cloche_instance_refresh(i, &err) < 0)
		return complain(&err);
	text = cloche_instance_json(i);
	return put(STDOUT_FILENO, text, strlen(text)) && put(STDOUT_FILENO, "\n", 1) ? 0
										     : EXIT_CLOCHE;
}

struct inspect_options {
	bool json; /* ignored */
};

static const struct option options[] = {
	{"json", 0, NULL, "accepted; the output is always JSON",
		.at = offsetof(struct inspect_options, json)},
	{0},
};

static int main_inspect(void *ctx, const struct operands *operands, cloche_err *err)
{
	return each_instance(&command_inspect, operands, inspect_one, NULL, err);
}

const struct command command_inspect = {
	.name = "inspect",
	.summary = "print everything that is known about a sandbox",
	.synopsis = "ID...",
	.text = "Prints a JSON document for each sandbox: its state, configuration (secrets and\n"
		"variables by name alone), limits, commands and how they ended.",
	.tables = {&(const struct option_table){"Options", options}},
	.ctx = &(struct inspect_options){0},
	.run = main_inspect,
};
