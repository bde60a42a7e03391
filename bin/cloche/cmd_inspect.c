/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"

#include <string.h>
#include <unistd.h>

/* Standard JSON escapes all control characters, so it is safe to show on a terminal. */
static int inspect(const cloche_instance *instance, void *user)
{
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_instance *i = NULL;
	const char *text;
	bool ok;

	if (cloche_instance_open(cloche_instance_id(instance), &i, &err) < 0)
		return complain(&err);
	if (cloche_instance_refresh(i, &err) < 0) {
		cloche_instance_free(i);
		return complain(&err);
	}
	text = cloche_instance_json(i);
	ok = put(STDOUT_FILENO, text, strlen(text)) && put(STDOUT_FILENO, "\n", 1);
	cloche_instance_free(i);
	return ok ? 0 : EXIT_CLOCHE;
}

static int set_json(void *ctx, const char *value, cloche_err *err)
{
	return 0;
}

static const struct option options[] = {
	{"json", 0, NULL, "accepted; the output is always JSON", set_json},
};
static const struct option_table table = {
	.options = options, .n = sizeof(options) / sizeof(options[0]), .title = "Options"};

static int main_inspect(int argc, char **argv)
{
	return main_of_instances(&command_inspect, NULL, argc, argv, inspect);
}

const struct command command_inspect = {
	.name = "inspect",
	.summary = "print everything that is known about a sandbox",
	.synopsis = "ID...",
	.text = "Prints a JSON document for each sandbox: its state, configuration (secrets and\n"
		"variables by name alone), limits, commands and how they ended.",
	.tables = {&table},
	.run = main_inspect,
};
