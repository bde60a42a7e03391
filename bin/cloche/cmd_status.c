/* SPDX-License-Identifier: Apache-2.0 */
/* `cloche status`: the names in its JSON are those of AgentGate where it has them. */
#include "cli.h"
#include "json_out.h"

#include <cloche/project.h>
#include <cloche/status.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOURCES_MAX = 2 };

struct settings {
	bool json;
	const char *config;
	cloche_sandbox *named[SOURCES_MAX]; /* each has a place, or none */
	size_t named_n;
};

static void print_time(const char *what, uint64_t us)
{
	char age[32];

	if (us == 0) {
		printf("%s: never\n", what);
		return;
	}
	format_age(us, age, sizeof(age));
	printf("%s: %s ago\n", what, age);
}

/* Name the sandboxes that are none, or less than one. */
static void print_unisolated(const cloche_status *s)
{
	json_t *document = json_loads(s->json, 0, NULL), *one;
	size_t i;

	json_array_foreach (json_object_get(document, "sandboxes"), i, one) {
		const char *isolation = "", *id = "", *provider = "";

		if (json_unpack(one, "{s:s, s:s, s:s}", "isolation", &isolation, "id", &id,
			    "provider", &provider) < 0)
			continue;
		if (strcmp(isolation, "none") == 0)
			printf("  %s is not isolated (provider %s)\n", id, provider);
		else if (strcmp(isolation, "landlock") == 0)
			printf("  %s is isolated by Landlock and filters alone\n", id);
	}
	json_decref(document);
}

static void print_places(const cloche_status *s)
{
	for (size_t i = 0; s->places[i]; i++) {
		const cloche_place_status *p = s->places[i];

		printf("place %s", p->place);
		if (p->provider[0])
			printf(" (provider %s)", p->provider);
		printf(": %s\n", p->answers ? "answers" : p->reason);
		if (p->advice[0])
			printf("  %s\n", p->advice);
	}
}

static void status_print_text(const cloche_status *s)
{
	char size[32];

	for (size_t i = 0; s->providers[i]; i++) {
		const cloche_provider_status *p = s->providers[i];

		printf("provider %s: %s\n", p->name,
			!p->available  ? p->reason
			: p->advice[0] ? "may work"
				       : "works");
		if (p->advice[0])
			printf("  %s\n", p->advice);
	}
	print_places(s);
	format_size(s->memory_bytes, size, sizeof(size));
	printf("sandboxes that run: %zu, with %.0f %% of a cpu and %s of memory\n", s->sandboxes,
		s->cpu_percent, size);
	print_unisolated(s);
	print_time("last cleanup", s->cleanup_us);
	if (s->cleanup_error_us) {
		print_time("last error", s->cleanup_error_us);
		printf("  %s\n", s->cleanup_error);
	}
}

/* --- what names a place --- */

static int status_load_place(cloche_sandbox *sb, cloche_err *err)
{
	const char *place = getenv("CLOCHE_PLACE");

	return place && place[0] ? cloche_sandbox_set(sb, "place", place, err) : 0;
}

/* Nobody is asked for consent here. */
static int status_load_config(cloche_sandbox *sb, const char *config, cloche_err *err)
{
	cloche_project *project = NULL;
	int r;

	r = cloche_sandbox_load_config(sb, NULL, err);
	if (r == 0 && config)
		return cloche_sandbox_load_config(sb, config, err);
	if (r == 0)
		r = cloche_project_find(".", &project, err);
	if (r == 0 && project)
		r = cloche_project_apply(project, sb, NULL, err);
	cloche_project_free(project);
	return r;
}

/* The rest of the status is worth knowing nevertheless. */
static void tell_unasked(const cloche_err *err)
{
	say("%s%s%s; if that names a place, it was not asked", err->message,
		err->hint[0] ? "; " : "", err->hint);
}

static void name_places(struct settings *settings)
{
	const char *provider = getenv("CLOCHE_PROVIDER");

	for (size_t i = 0; i < SOURCES_MAX; i++) {
		cloche_err err = CLOCHE_ERR_INIT;
		cloche_sandbox *sb = cloche_sandbox_new();

		if (!sb)
			return;
		settings->named[settings->named_n++] = sb;
		if (provider && provider[0] &&
			cloche_sandbox_set(sb, "provider", provider, &err) < 0) {
			tell_unasked(&err);
			return;
		}
		if ((i == 0 ? status_load_place(sb, &err)
			    : status_load_config(sb, settings->config, &err)) < 0)
			tell_unasked(&err);
	}
}

static int main_status(void *ctx, const struct operands *operands, cloche_err *err)
{
	struct settings *settings = ctx;
	cloche_status *s = NULL;
	bool ok = true;
	int r;

	name_places(settings);
	r = cloche_status_read(
		NULL, (const cloche_sandbox *const *)settings->named, settings->named_n, &s, err);
	if (r == 0 && settings->json)
		ok = json_print_text(s->json);
	else if (r == 0)
		status_print_text(s);
	cloche_status_free(s);
	for (size_t i = 0; i < settings->named_n; i++)
		cloche_sandbox_free(settings->named[i]);
	return r < 0 ? r : ok ? 0 : EXIT_CLOCHE;
}

static const struct option options[] = {
	{"config", 0, "FILE",
		"ask the place that FILE names (default: .cloche/sandbox.yaml, else\n"
		".airut/sandbox.yaml or .airut/airut.yaml, if you consented to it)",
		.at = offsetof(struct settings, config)},
	{"json", 0, NULL, "print one JSON document", .at = offsetof(struct settings, json)},
	{0},
};

const struct command command_status = {
	.name = "status",
	.summary = "how things stand: providers, places, sandboxes, the last cleanup",
	.synopsis = "[--config FILE] [--json]",
	.text = "Says which providers work here and why others do not, whether the places answer\n"
		"that CLOCHE_PLACE and the configuration name, what running sandboxes use, and\n"
		"when the remains of crashed sandboxes were last removed.",
	.tables = {&(const struct option_table){"Options", options}},
	.no_operands = true,
	.ctx = &(struct settings){0},
	.run = main_status,
};
