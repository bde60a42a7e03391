/* SPDX-License-Identifier: Apache-2.0 */
/* `cloche preset`: allowlists by name. */
#include "cli.h"
#include "json_out.h"

#include <cloche/allowlist.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct preset_options {
	bool json, failed;
	json_t *documents;
	const char *wanted;
};

/* Store what its first comment says, after the one with the licence. */
static void preset_about(const char *yaml, char *ret, size_t size)
{
	*ret = '\0';
	for (const char *line = yaml; *line == '#'; line += strcspn(line, "\n") + 1) {
		size_t n = strcspn(line, "\n");

		if (strncmp(line, "# SPDX", 6) != 0 && n > 2) {
			snprintf(ret, size, "%.*s", (int)(n - 2), line + 2);
			return;
		}
		if (line[n] == '\0')
			return;
	}
}

static void preset_on_one(const char *name, const char *yaml, void *user)
{
	struct preset_options *o = user;
	char about[256], row[512];

	preset_about(yaml, about, sizeof(about));
	if (o->json) {
		json_t *one = json_pack("{s:s, s:o, s:o}", "name", name, "about",
			json_bytes(about, strlen(about)), "yaml", json_bytes(yaml, strlen(yaml)));

		o->failed |= json_array_append_new(o->documents, one) < 0;
		return;
	}
	snprintf(row, sizeof(row), "%-12s %s", name, about);
	o->failed |= !put_row(row);
}

static void preset_show(const char *name, const char *yaml, void *user)
{
	struct preset_options *o = user;

	if (strcmp(name, o->wanted) == 0)
		o->failed |= !put(STDOUT_FILENO, yaml, strlen(yaml));
}

static int preset_list(struct preset_options *o, cloche_err *err)
{
	int r;

	if (o->json)
		o->documents = json_array();
	r = cloche_preset_list(preset_on_one, o, err);
	if (r < 0)
		json_decref(o->documents);
	else if (o->json)
		o->failed |= !json_print(o->documents);
	return r < 0 ? r : o->failed ? EXIT_CLOCHE : 0;
}

static int main_preset(void *ctx, const struct operands *operands, cloche_err *err)
{
	struct preset_options *o = ctx;
	cloche_allowlist *list;
	int r;

	if (operands->n == 0)
		return preset_list(o, err);
	if (operands->n > 1 || o->json)
		return wrong_usage(err,
			"\"cloche preset\" lists them, \"cloche preset NAME\" shows one",
			"preset: %s",
			o->json ? "--json is for the list" : "one at a time is shown");
	o->wanted = operands->v[0];
	list = cloche_allowlist_new();
	r = list ? cloche_allowlist_add_preset(list, o->wanted, err)
		 : wrong_usage(err, NULL, "out of memory");
	cloche_allowlist_free(list);
	if (r == 0)
		r = cloche_preset_list(preset_show, o, err);
	return r < 0 ? r : o->failed ? EXIT_CLOCHE : 0;
}

static const struct option preset_options[] = {
	{"json", 0, NULL, "print all of them as one JSON array",
		.at = offsetof(struct preset_options, json)},
	{0},
};

const struct command command_preset = {
	.name = "preset",
	.summary = "allowlists for what most projects need: npm, pip, github, ...",
	.synopsis = "[--json]\n       cloche preset NAME",
	.text = "Lists the presets, or shows the rules of one. \"--preset NAME\" of run, create,\n"
		"agent, \"net check\" and \"net set\" allows them. A file of yours with an "
		"allowlist,\n"
		"~/.config/cloche/presets/NAME.yaml, is a preset, too, and comes before one of\n"
		"the same name.",
	.tables = {&(const struct option_table){"Options", preset_options}},
	.ctx = &(struct preset_options){0},
	.run = main_preset,
};
