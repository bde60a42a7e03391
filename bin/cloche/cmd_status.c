/* SPDX-License-Identifier: Apache-2.0 */
/* `cloche status`: the names in its JSON are those of AgentGate where it has them. */
#include "cli.h"
#include "json_out.h"

#include <cloche/status.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

struct settings {
	bool json;
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

static int main_status(void *ctx, const struct operands *operands, cloche_err *err)
{
	const struct settings *settings = ctx;
	cloche_status *s = NULL;
	bool ok = true;
	int r = cloche_status_read(&s, err);

	if (s && settings->json)
		ok = json_print_text(s->json);
	else if (s)
		status_print_text(s);
	cloche_status_free(s);
	return r < 0 ? r : ok ? 0 : EXIT_CLOCHE;
}

static const struct option options[] = {
	{"json", 0, NULL, "print one JSON document", .at = offsetof(struct settings, json)},
	{0},
};

const struct command command_status = {
	.name = "status",
	.summary = "how things stand: providers, sandboxes that run, the last cleanup",
	.synopsis = "[--json]",
	.text = "Says which providers work here and why others do not, what running sandboxes\n"
		"use, and when the remains of crashed sandboxes were last removed.",
	.tables = {&(const struct option_table){"Options", options}},
	.no_operands = true,
	.ctx = &(struct settings){0},
	.run = main_status,
};
