/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include "json_out.h"
#include "names.h"

#include <cloche/srt.h>
#include <stdio.h>
#include <string.h>

enum { VALUE_WIDTH = 22 };

struct srt_settings {
	bool json;
	json_t *rules;
};

static const struct option options[] = {
	{"json", 0, NULL, "print one JSON document", .at = offsetof(struct srt_settings, json)},
	{0},
};

/* Collect the rules until the end, because for an invalid file only the error is printed. */
static void srt_take(const cloche_srt_rule *rule, void *user)
{
	struct srt_settings *s = user;

	json_array_append_new(s->rules, json_pack("{s:s, s:o, s:s, s:b}", "key", rule->key, "value",
						json_bytes(rule->value, strlen(rule->value)),
						"here", rule->here, "weaker", rule->weaker));
}

static void srt_settings_print_row(
	const char *key, const char *value, bool weaker, const char *here)
{
	int width = (int)strlen(value);

	printf("%-26s ", key);
	name_print(value, strlen(value));
	printf("%*s %s%s\n", width < VALUE_WIDTH ? VALUE_WIDTH - width : 0, "",
		weaker ? "WEAKER: " : "", here);
}

static void srt_print(const json_t *rules)
{
	const json_t *rule;
	size_t i;

	json_array_foreach (rules, i, rule)
		srt_settings_print_row(json_string_value(json_object_get(rule, "key")),
			json_string_value(json_object_get(rule, "value")),
			json_is_true(json_object_get(rule, "weaker")),
			json_string_value(json_object_get(rule, "here")));
	srt_settings_print_row("files", "", false,
		"the system's, and what is listed above; srt shows the whole disk");
	srt_settings_print_row("environment", "", false,
		"nothing of yours is inside but what --env and --pass-env name");
}

static int main_srt_settings(void *ctx, const struct operands *operands, cloche_err *err)
{
	struct srt_settings *s = ctx;
	int r;

	if (operands->n > 1)
		return wrong_usage(err, NULL,
			"srt-settings: takes one file, but was also given \"%s\"", operands->v[1]);
	s->rules = json_array();
	r = cloche_srt_explain(operands->n ? operands->v[0] : NULL, srt_take, s, err);
	if (r == 0 && s->json)
		json_print(json_pack("{s:O}", "rules", s->rules));
	else if (r == 0)
		srt_print(s->rules);
	json_decref(s->rules);
	return r;
}

const struct command command_srt_settings = {
	.name = "srt-settings",
	.summary = "say what a settings file of srt means with --srt-settings",
	.synopsis = "[--json] [FILE]",
	.text = "Anthropic's sandbox-runtime (srt) reads a JSON file of domains and paths.\n"
		"\"cloche run --srt-settings FILE\" obeys the same file; this command says what\n"
		"each of its entries means there, in the current directory. The default FILE is\n"
		"~/.srt-settings.json. Nothing is run or changed.",
	.tables = {&(const struct option_table){"Options", options}},
	.ctx = &(struct srt_settings){0},
	.run = main_srt_settings,
};
