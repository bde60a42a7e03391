/* SPDX-License-Identifier: Apache-2.0 */
/* `cloche config`: what holds in this directory, and where each value is from. The options are read
 * as for a run, and what the library says that it sets is kept. */
#include "cli.h"
#include "json_out.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct config_line {
	char *key, *value, *from, *file;
	size_t line; /* of the file; 0: all of it, or there is no file */
	size_t order;
};

struct config_options {
	struct sandbox_options sandbox; /* must be first: the shared option table sets it */
	struct config_line *lines;
	size_t n;
	bool failed; /* out of memory */
	char here[PATH_MAX];
};

static void config_line_done(struct config_line *l)
{
	free(l->key);
	free(l->value);
	free(l->from);
	free(l->file);
}

static void config_done(void *ctx)
{
	struct config_options *o = ctx;

	for (size_t i = 0; i < o->n; i++)
		config_line_done(&o->lines[i]);
	free(o->lines);
	sandbox_options_done(ctx);
}

/* Return a new line, in place of an earlier one of the key unless it adds; NULL: no memory. */
static struct config_line *config_place(struct config_options *o, const char *key, bool adds)
{
	struct config_line *grown;

	for (size_t i = 0; !adds && i < o->n; i++)
		if (strcmp(o->lines[i].key, key) == 0) {
			config_line_done(&o->lines[i]);
			return &o->lines[i];
		}
	grown = realloc(o->lines, (o->n + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	o->lines = grown;
	return &grown[o->n++];
}

/* An absolute path, as a person would write it. */
static const char *config_short_path(const struct config_options *o, const char *path)
{
	size_t n = strlen(o->here);

	return n > 1 && strncmp(path, o->here, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}

static void config_add(struct config_options *o, const cloche_setting *s, const char *from)
{
	struct config_line *l = config_place(o, s->key, s->adds);
	char place[PATH_MAX + 32];

	if (!l) {
		o->failed = true;
		return;
	}
	if (s->file && s->line)
		snprintf(place, sizeof(place), "%s:%zu", config_short_path(o, s->file), s->line);
	else if (s->file)
		snprintf(place, sizeof(place), "%s", config_short_path(o, s->file));
	*l = (struct config_line){.key = strdup(s->key),
		.value = strdup(config_short_path(o, s->value)),
		.from = strdup(s->file ? place : from),
		.file = s->file ? strdup(s->file) : NULL,
		.line = s->line,
		.order = o->n};
	o->failed |= !l->key || !l->value || !l->from || (s->file && !l->file);
}

/* A variable of the command line replaces one of a file. */
static void config_on_setting(const cloche_setting *s, void *user)
{
	struct config_options *o = user;
	const char *equals = strcmp(s->key, "env") == 0 ? strchr(s->value, '=') : NULL;
	char key[256];

	if (!equals || equals - s->value > 200) {
		config_add(o, s, o->sandbox.setting_from);
		return;
	}
	snprintf(key, sizeof(key), "env.%.*s", (int)(equals - s->value), s->value);
	config_add(o, &(cloche_setting){.key = key, .value = equals + 1}, o->sandbox.setting_from);
}

static bool config_has(const struct config_options *o, const char *key)
{
	for (size_t i = 0; i < o->n; i++)
		if (strcmp(o->lines[i].key, key) == 0)
			return true;
	return false;
}

/* What a run does where nothing is said. */
static void config_add_defaults(struct config_options *o)
{
	bool rules = config_has(o, "allow") || config_has(o, "presets") ||
		     config_has(o, "allowlist") || config_has(o, "offline");
	const cloche_setting defaults[] = {{.key = "provider", .value = "auto"},
		{.key = "root", .value = "host"}, {.key = "user", .value = "you"},
		{.key = "workspace", .value = "none"},
		{.key = "net", .value = rules ? "gateway" : "none"}};

	for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++)
		if (!config_has(o, defaults[i].key) &&
			(strcmp(defaults[i].key, "net") != 0 || !config_has(o, "network_sandbox")))
			config_add(o, &defaults[i], "default");
}

static int config_compare(const void *a, const void *b)
{
	const struct config_line *x = a, *y = b;
	int r = strcmp(x->key, y->key);

	return r ? r : x->order < y->order ? -1 : 1;
}

static bool config_print_json(const struct config_options *o)
{
	json_t *all = json_array();

	for (size_t i = 0; i < o->n; i++) {
		const struct config_line *l = &o->lines[i];
		json_t *one = json_pack("{s:o, s:o, s:o, s:o, s:o}", "key",
			json_bytes(l->key, strlen(l->key)), "value",
			json_bytes(l->value, strlen(l->value)), "from",
			json_bytes(l->from, strlen(l->from)), "file",
			l->file ? json_bytes(l->file, strlen(l->file)) : json_null(), "line",
			l->line ? json_integer((json_int_t)l->line) : json_null());

		if (json_array_append_new(all, one) < 0) {
			json_decref(all);
			return false;
		}
	}
	return json_print(json_pack(
		"{s:o, s:o}", "directory", json_bytes(o->here, strlen(o->here)), "settings", all));
}

static int config_width(int width, const char *text, int most)
{
	int n = (int)strlen(text);

	return n > most || n < width ? width : n;
}

static bool config_print(const struct config_options *o)
{
	int key = 4, value = 5;
	bool ok = true;

	for (size_t i = 0; i < o->n; i++) {
		key = config_width(key, o->lines[i].key, 32);
		value = config_width(value, o->lines[i].value, 48);
	}
	for (size_t i = 0; ok && i < o->n; i++) {
		char *row;

		if (asprintf(&row, "%-*s  %-*s  %s", key, o->lines[i].key, value, o->lines[i].value,
			    o->lines[i].from) < 0)
			return false;
		ok = put_line(row);
		free(row);
	}
	return ok;
}

static int main_config(void *ctx, const struct operands *operands, cloche_err *err)
{
	struct config_options *o = ctx;
	int r;

	if (!getcwd(o->here, sizeof(o->here)))
		o->here[0] = '\0';
	o->sandbox.on_setting = config_on_setting;
	o->sandbox.shows_only = true;
	r = sandbox_options_finish(&o->sandbox, NULL, err);
	if (r < 0)
		return r;
	config_add_defaults(o);
	if (o->failed)
		return wrong_usage(err, NULL, "out of memory");
	qsort(o->lines, o->n, sizeof(*o->lines), config_compare);
	return (o->sandbox.json ? config_print_json(o) : config_print(o)) ? 0 : EXIT_CLOCHE;
}

const struct command command_config = {
	.name = "config",
	.summary = "what holds in this directory, and where each value is from",
	.synopsis = "[--json] [OPTIONS of run]",
	.text = "Shows what a sandbox would get that \"cloche run\", with the same options, made "
		"in\n"
		"this directory, and which file and line, variable, option or default says so.\n"
		"A file that needs your consent does not count before you gave it; this asks\n"
		"nothing, pulls nothing and starts nothing.\n"
		"\n"
		"  cloche config\n"
		"  cloche config --memory 1g",
	.tables = {&sandbox_option_table, &sandbox_command_table},
	.no_operands = true,
	.ctx = &(struct config_options){{0}},
	.run = main_config,
	.done = config_done,
};
