/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the variables of AgentGate's sandboxes (AGENTGATE_SANDBOX_...) are defaults
 * of options, so they are read before the configuration file and the command line. Somebody who set
 * one counts on it: what this version cannot do is refused, and so is a name that is not known. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "AGENTGATE_SANDBOX_"

extern char **environ;

struct variable {
	const char *names[2];     /* behind the prefix; the first one wins */
	const char *limit, *unit; /* a number for this limit, in this unit; else: */
	/* does what the value says; NULL: nothing can */
	int (*set)(struct sandbox_options *o, const char *name, const char *value, cloche_err *err);
	const char *hint;
};

static bool environment_has_provider(const char *name)
{
	const char *one;

	for (size_t i = 0; (one = cloche_provider_name(i)); i++)
		if (strcmp(name, one) == 0)
			return true;
	return strcmp(name, "auto") == 0;
}

static int environment_set_provider(
	struct sandbox_options *o, const char *name, const char *value, cloche_err *err)
{
	const char *ours = getenv("CLOCHE_PROVIDER");

	if (sandbox_options_given(o, "provider") || (ours && ours[0]))
		return 0;
	if (environment_has_provider(value))
		return cloche_sandbox_set_provider(o->sb, value, err);
	return wrong_usage(err, "unset it, or use --provider native, which needs no engine",
		PREFIX "%s=%s: this version has no such provider", name, value);
}

static int environment_set_network(
	struct sandbox_options *o, const char *name, const char *value, cloche_err *err)
{
	if (strcmp(value, "none") != 0)
		return wrong_usage(err, "unset it, and name the hosts to reach with --allow HOST",
			PREFIX "%s=%s: a sandbox has no network but the hosts that are allowed",
			name, value);
	if (sandbox_options_allow(o) && !sandbox_options_given(o, "net"))
		say("warning: " PREFIX "%s=none leaves nothing of what --allow and --allowlist "
		    "list",
			name);
	return cloche_sandbox_set_net(o->sb, CLOCHE_NET_NONE, err);
}

static int environment_set_image(
	struct sandbox_options *o, const char *name, const char *value, cloche_err *err)
{
	char root[512];

	if (sandbox_options_given(o, "root"))
		return 0;
	snprintf(root, sizeof(root), "image:%s", value);
	return cloche_sandbox_set_root(o->sb, root, err);
}

static const struct variable variables[] = {
	{{"PROVIDER"}, .set = environment_set_provider},
	{{"NETWORK", "NETWORK_MODE"}, .set = environment_set_network},
	{{"CPU_LIMIT", "CPU_COUNT"}, .limit = "cpus", .unit = ""},
	{{"MEMORY_MB"}, .limit = "memory", .unit = "m"},
	{{"TIMEOUT", "TIMEOUT_SECONDS"}, .limit = "timeout", .unit = "s"},
	{{"IMAGE"}, .set = environment_set_image},
	{{"AUTO_CLEANUP_MINUTES", "CLEANUP_INTERVAL_MS"},
		.hint = "unset it; every command removes what a crash left, and --ttl ends a "
			"sandbox by itself"},
};

enum { VARIABLES = sizeof(variables) / sizeof(variables[0]) };

/* Of the variable with this spelling; NULL where it is not set, or empty. */
static const char *environment_get(const char *name)
{
	char full[64];
	const char *value;

	snprintf(full, sizeof(full), PREFIX "%s", name);
	value = getenv(full);
	return value && value[0] ? value : NULL;
}

/* A number and nothing else: the unit is the variable's. */
static int environment_set_limit(struct sandbox_options *o, const struct variable *v,
	const char *name, const char *value, cloche_err *err)
{
	char text[32];
	cloche_err why;

	if (strlen(value) < sizeof(text) - 2 && strspn(value, "0123456789.") == strlen(value)) {
		snprintf(text, sizeof(text), "%s%s", value, v->unit);
		if (cloche_sandbox_set_limit(o->sb, v->limit, text, &why) == 0)
			return 0;
	}
	return wrong_usage(err, "use a number, or unset it and use the option",
		PREFIX "%s=%s is no value for --%s", name, value, v->limit);
}

static int environment_apply(struct sandbox_options *o, const struct variable *v, cloche_err *err)
{
	const char *first = environment_get(v->names[0]);
	const char *second = v->names[1] ? environment_get(v->names[1]) : NULL;
	const char *name = first ? v->names[0] : v->names[1], *value = first ? first : second;

	if (!value)
		return 0;
	if (first && second && strcmp(first, second) != 0)
		say("warning: " PREFIX "%s=%s wins over " PREFIX "%s=%s", v->names[0], first,
			v->names[1], second);
	if (v->limit)
		return environment_set_limit(o, v, name, value, err);
	if (v->set)
		return v->set(o, name, value, err);
	return wrong_usage(err, v->hint, PREFIX "%s is set, which this version cannot do", name);
}

static bool environment_knows(const char *name, size_t n)
{
	for (size_t i = 0; i < VARIABLES; i++)
		for (size_t k = 0; k < 2; k++) {
			const char *one = variables[i].names[k];

			if (one && strlen(one) == n && memcmp(one, name, n) == 0)
				return true;
		}
	return false;
}

int environment_read(struct sandbox_options *o, cloche_err *err)
{
	int r = 0;

	for (char **v = environ; *v; v++) {
		size_t n = strcspn(*v, "=");

		if (strncmp(*v, PREFIX, strlen(PREFIX)) != 0 || (*v)[n] == '\0' ||
			(*v)[n + 1] == '\0')
			continue;
		if (!environment_knows(*v + strlen(PREFIX), n - strlen(PREFIX)))
			return wrong_usage(err, "unset it; cloche(1) lists those that are read",
				"%.*s is set, which nothing here reads", (int)n, *v);
	}
	for (size_t i = 0; r == 0 && i < VARIABLES; i++)
		r = environment_apply(o, &variables[i], err);
	return r;
}
