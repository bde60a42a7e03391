/* SPDX-License-Identifier: Apache-2.0 */
/* `cloche status`: the names in its JSON are those of AgentGate, where that has one. */
#include "cli.h"
#include "config.h"
#include "json_out.h"

#include <cloche/status.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How much of a cpu was used needs two looks. */
enum { BETWEEN_MS = 200 };

struct looked {
	cloche_instance *i;
	cloche_stats before, now;
	bool answers;
};

struct status {
	bool json;
	const char *provider; /* what "auto" means; NULL: none works */
	bool docker;
	json_t *providers;
	struct looked *sandboxes;
	size_t n;
	bool failed;
};

static void on_provider(const cloche_provider_status *p, void *user)
{
	struct status *s = user;

	if (p->available && p->automatic && !s->provider)
		s->provider = p->name;
	s->docker |= p->available && strcmp(p->name, "docker") == 0;
	s->failed |=
		json_array_append_new(s->providers,
			json_pack("{s:s, s:b, s:b, s:s, s:s, s:s}", "name", p->name, "automatic",
				(int)p->automatic, "available", (int)p->available, "reason",
				p->reason, "advice", p->advice, "version", CLOCHE_VERSION)) < 0;
}

static bool on_sandbox(const cloche_instance *i, void *user)
{
	struct status *s = user;
	struct looked *more = reallocarray(s->sandboxes, s->n + 1, sizeof(*more)), *l;
	cloche_err err = CLOCHE_ERR_INIT;

	s->failed |= !more;
	if (!more)
		return false;
	s->sandboxes = more;
	l = &more[s->n];
	*l = (struct looked){0};
	/* One that has gone since is none. */
	if (cloche_instance_open(cloche_instance_id(i), &l->i, &err) < 0)
		return true;
	if (cloche_instance_refresh(l->i, &err) < 0) {
		cloche_instance_free(l->i);
		return true;
	}
	l->answers = cloche_instance_stats(l->i, &l->before, &err) == 0;
	s->n++;
	return true;
}

static void look_again(struct status *s)
{
	const struct timespec pause = {.tv_nsec = BETWEEN_MS * 1000000L};
	cloche_err err = CLOCHE_ERR_INIT;

	if (s->n > 0)
		nanosleep(&pause, NULL);
	for (size_t k = 0; k < s->n; k++) {
		struct looked *l = &s->sandboxes[k];

		l->answers = l->answers && cloche_instance_stats(l->i, &l->now, &err) == 0;
	}
}

static double cpu_percent(const struct looked *l)
{
	uint64_t passed = l->now.at_us - l->before.at_us;

	if (!l->answers || passed == 0 || l->now.cpu_us < l->before.cpu_us)
		return 0;
	return 100.0 * (double)(l->now.cpu_us - l->before.cpu_us) / (double)passed;
}

static double memory_mb(const struct looked *l)
{
	return l->answers ? (double)l->now.memory_bytes / (1 << 20) : 0;
}

/* RFC 3339; null where it is 0. */
static json_t *time_of(uint64_t us)
{
	char text[32];
	time_t t = (time_t)(us / 1000000);
	struct tm tm;

	if (us == 0 || !gmtime_r(&t, &tm))
		return json_null();
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return json_string(text);
}

static json_t *sandbox_document(const struct looked *l)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:{s:f, s:f}, s:I}", "id",
		cloche_instance_id(l->i), "name", cloche_instance_name(l->i), "provider",
		cloche_instance_provider(l->i), "status", cloche_instance_state_name(l->i),
		"createdAt", time_of(cloche_instance_created(l->i)), "resourceUsage", "cpuPercent",
		cpu_percent(l), "memoryMB", memory_mb(l), "commandsRunning",
		(json_int_t)(l->answers ? l->now.commands_running : 0));
}

static bool print_json(const struct status *s, const cloche_cleanup_status *c)
{
	json_t *all = json_array();
	double cpu = 0, memory = 0;
	json_int_t commands = 0;

	for (size_t k = 0; k < s->n; k++) {
		const struct looked *l = &s->sandboxes[k];

		cpu += cpu_percent(l);
		memory += memory_mb(l);
		commands += l->answers ? (json_int_t)l->now.commands_running : 0;
		json_array_append_new(all, sandbox_document(l));
	}
	return json_print(json_pack("{s:s?, s:O, s:b, s:i, s:o, s:{s:f, s:f, s:I}, s:o, s:o, s:o}",
		"provider", s->provider, "providers", s->providers, "dockerAvailable",
		(int)s->docker, "activeSandboxes", (int)s->n, "sandboxes", all, "totals",
		"cpuPercent", cpu, "memoryMB", memory, "commandsRunning", commands, "lastCleanup",
		time_of(c->at_us), "lastError", c->error_us ? json_string(c->error) : json_null(),
		"lastErrorAt", time_of(c->error_us)));
}

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

static void print_text(const struct status *s, const cloche_cleanup_status *c)
{
	double cpu = 0, memory = 0;
	const json_t *p;
	char size[32];
	size_t i;

	json_array_foreach (s->providers, i, p) {
		const char *name = json_string_value(json_object_get(p, "name"));
		const char *reason = json_string_value(json_object_get(p, "reason"));
		const char *advice = json_string_value(json_object_get(p, "advice"));

		printf("provider %s: %s\n", name,
			json_is_true(json_object_get(p, "available")) ? "works" : reason);
		if (advice && advice[0])
			printf("  %s\n", advice);
	}
	for (size_t k = 0; k < s->n; k++) {
		cpu += cpu_percent(&s->sandboxes[k]);
		memory += memory_mb(&s->sandboxes[k]);
	}
	format_size((uint64_t)(memory * (1 << 20)), size, sizeof(size));
	printf("sandboxes that run: %zu, with %.0f %% of a cpu and %s of memory\n", s->n, cpu,
		size);
	print_time("last cleanup", c->at_us);
	if (c->error_us) {
		print_time("last error", c->error_us);
		printf("  %s\n", c->error);
	}
}

static int main_status(int argc, char **argv)
{
	struct status s = {.providers = json_array()};
	struct operands operands = {0};
	cloche_cleanup_status cleanup = {0};
	cloche_err err = CLOCHE_ERR_INIT;
	int r = options_read(&command_status, &s, argc, argv, &operands, &err);

	if (r == 0 && !operands.help)
		r = options_no_operands(&command_status, &operands, &err);
	if (r == 0 && !operands.help) {
		cloche_provider_each(on_provider, &s);
		r = cloche_instance_list(false, on_sandbox, &s, &err);
	}
	if (r == 0 && !operands.help)
		r = cloche_cleanup_read(&cleanup, &err);
	if (r == 0 && !operands.help) {
		look_again(&s);
		if (s.json)
			s.failed |= !print_json(&s, &cleanup);
		else
			print_text(&s, &cleanup);
	}
	for (size_t k = 0; k < s.n; k++)
		cloche_instance_free(s.sandboxes[k].i);
	free(s.sandboxes);
	json_decref(s.providers);
	r = flush_output(r);
	if (r < 0)
		return complain(&err);
	return r ? r : s.failed ? EXIT_CLOCHE : 0;
}

static const struct option options[] = {
	{"json", 0, NULL, "print one JSON document", .at = offsetof(struct status, json)},
};
static const struct option_table option_table = {
	.options = options, .n = sizeof(options) / sizeof(options[0]), .title = "Options"};

const struct command command_status = {
	.name = "status",
	.summary = "how things stand: providers, sandboxes that run, the last cleanup",
	.synopsis = "[--json]",
	.text = "Says which providers work here and why others do not, what the sandboxes that run "
		"use,\nand when what crashed ones left was removed for the last time.",
	.tables = {&option_table},
	.run = main_status,
};
