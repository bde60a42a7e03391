/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include "json_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- ps --- */

enum { MAX_FILTERS = 16, COMMAND_LEAST = 8 };

struct ps_options {
	bool all, json, quiet;
	const char *labels[MAX_FILTERS]; /* KEY or KEY=VALUE */
	size_t labels_n;
	json_t *documents;
	bool failed; /* standard output */
};

static int add_label(const struct option *option, void *at, const char *value, cloche_err *err)
{
	struct ps_options *o = at;

	if (*value == '\0' || *value == '=')
		return wrong_usage(err, NULL, "--label is KEY or KEY=VALUE, not \"%s\"", value);
	if (o->labels_n == MAX_FILTERS)
		return wrong_usage(err, NULL, "more than %d labels", MAX_FILTERS);
	o->labels[o->labels_n++] = value;
	return 0;
}

static const struct option ps_options[] = {
	{"all", 'a', NULL, "also list sandboxes that have ended",
		.at = offsetof(struct ps_options, all)},
	{"label", 0, "KEY[=VALUE]", "list only sandboxes with this label; may be repeated",
		add_label},
	{"quiet", 'q', NULL, "print ids alone", .at = offsetof(struct ps_options, quiet)},
	{"json", 0, NULL, "print everything that is known as one JSON array",
		.at = offsetof(struct ps_options, json)},
	{0},
};

static bool has_labels(const cloche_instance *i, const struct ps_options *o)
{
	for (size_t k = 0; k < o->labels_n; k++) {
		const char *equals = strchr(o->labels[k], '=');
		char *key = equals ? strndup(o->labels[k], (size_t)(equals - o->labels[k]))
				   : strdup(o->labels[k]);
		const char *value = key ? cloche_instance_label(i, key) : NULL;

		free(key);
		if (!value || (equals && strcmp(value, equals + 1) != 0))
			return false;
	}
	return true;
}

/* Describe the sandbox on one line: its first command, or its runtime. width: 0, or columns. */
static void ps_describe(const cloche_instance *i, size_t width, char *ret, size_t size)
{
	const char *command = cloche_instance_info_of(i)->command;
	size_t n;

	snprintf(ret, size, "%s", *command ? command : cloche_instance_info_of(i)->runtime);
	for (n = 0; ret[n]; n++)
		if ((unsigned char)ret[n] < ' ' || ret[n] == 0x7f)
			ret[n] = ' ';
	if (width && n > width) {
		n = width - 3;
		/* Do not cut within a character. */
		while (n > 0 && ((unsigned char)ret[n] & 0xc0) == 0x80)
			n--;
		snprintf(ret + n, size - n, "...");
	}
}

/* All but the command, which is last. On a terminal it leaves as much room for that as it can. */
static int ps_write_row(char *line, size_t size, const char *id, const char *name,
	const char *state, const char *age, const char *provider)
{
	return output_columns() ? snprintf(line, size, "%-16s  %-10s  %-7s  %-7s  %-8s  ",
					  shown_id(id), name, state, age, provider)
				: snprintf(line, size, "%-29s  %-16s  %-8s  %-8s  %-10s  ", id,
					  name, state, age, provider);
}

static bool ps_on_instance(const cloche_instance *i, void *user)
{
	struct ps_options *o = user;
	const char *name = cloche_instance_info_of(i)->name,
		   *provider = cloche_instance_info_of(i)->provider;
	unsigned columns = output_columns();
	char age[32], line[4096];
	int n;

	if (!has_labels(i, o))
		return true;
	if (o->json) {
		(void)json_array_append_new(
			o->documents, json_loads(cloche_instance_info_of(i)->json, 0, NULL));
		return true;
	}
	if (o->quiet) {
		o->failed |= !put_line(cloche_instance_id(i));
		return !o->failed;
	}
	format_age(cloche_instance_info_of(i)->created_us, age, sizeof(age));
	n = ps_write_row(line, sizeof(line), cloche_instance_id(i), *name ? name : "-",
		cloche_instance_info_of(i)->state_name, age, *provider ? provider : "-");
	if (columns)
		columns = columns > (unsigned)n + COMMAND_LEAST ? columns - (unsigned)n
								: COMMAND_LEAST;
	ps_describe(i, columns, line + n, sizeof(line) - (size_t)n);
	if (!line[n])
		snprintf(line + n, sizeof(line) - (size_t)n, "-");
	o->failed |= !put_row(line);
	return !o->failed;
}

static int main_ps(void *ctx, const struct operands *operands, cloche_err *err)
{
	struct ps_options *o = ctx;
	char line[256];
	int r, n;

	if (operands->n > 0)
		return wrong_usage(err, "for one sandbox: cloche inspect ID",
			"ps: takes no operand (\"%s\")", operands->v[0]);
	o->documents = json_array();
	if (!o->json && !o->quiet) {
		n = ps_write_row(line, sizeof(line), "ID", "NAME", "STATE", "CREATED", "PROVIDER");
		snprintf(line + n, sizeof(line) - (size_t)n, "COMMAND");
		o->failed |= !put_row(line);
	}
	r = cloche_instance_list(o->all, ps_on_instance, o, err);
	if (r == 0 && o->json)
		o->failed = !json_print(json_incref(o->documents));
	json_decref(o->documents);
	return r < 0 ? r : o->failed ? EXIT_CLOCHE : 0;
}

const struct command command_ps = {
	.name = "ps",
	.summary = "list the sandboxes that run",
	.synopsis = "[OPTIONS]",
	.text = "Lists your sandboxes, the newest first. What a crash left is removed on the way.",
	.tables = {&(const struct option_table){"Options", ps_options}},
	.ctx = &(struct ps_options){0},
	.run = main_ps,
};

/* --- inspect --- */

static int inspect_one(cloche_instance *i, void *user)
{
	cloche_err err = CLOCHE_ERR_INIT;

	if (cloche_instance_refresh(i, &err) < 0)
		return complain(&err);
	return json_print_text(cloche_instance_info_of(i)->json) ? 0 : EXIT_CLOCHE;
}

struct inspect_options {
	bool json; /* ignored */
};

static const struct option inspect_options[] = {
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
	.tables = {&(const struct option_table){"Options", inspect_options}},
	.ctx = &(struct inspect_options){0},
	.run = main_inspect,
};
