/* SPDX-License-Identifier: Apache-2.0 */
/* A user who sets one of these variables relies on it, so a setting that cannot be honoured is
 * refused, and so is an unknown name. */
#include "config/agentgate.h"
#include "base/str.h"
#include "job/job.h"
#include "provider/names.h"
#include "sandbox/options.h"
#include "sandbox/sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "AGENTGATE_"
#define SANDBOX "SANDBOX_" /* all names that begin like this are ours */

enum { DEFAULT_CLEANUP_MS = 300000, DEFAULT_MAX_RUNS = 5, LONGEST_NUMBER = 16 };

struct reading {
	cloche_sandbox *sb;
	struct agentgate *settings;
	const char *const *given;
	cloche_warning_fn fn;
	void *user;
};

struct value {
	const char *name; /* without the prefix */
	const char *text;
	double number; /* in the setting's unit */
};

struct spelling {
	const char *name;          /* without the prefix */
	double unit, lowest, most; /* for a number: its unit in that of the setting, its range */
};

struct variable {
	struct spelling spellings[2]; /* the first one wins */
	const char *option;           /* the option that overrides it */
	int (*set)(const struct reading *r, const struct value *v, struct cloche_err *err);
};

static bool is_given(const struct reading *r, const char *option)
{
	for (size_t i = 0; option && r->given && r->given[i]; i++)
		if (strcmp(r->given[i], option) == 0)
			return true;
	return false;
}

static void agentgate_tell(const struct reading *r, const char *text)
{
	if (r->fn)
		job_tell_text(r->fn, text, r->user);
}

/* --- what they do --- */

static int set_provider(const struct reading *r, const struct value *v, struct cloche_err *err)
{
	struct cloche_err why = CLOCHE_ERR_INIT;
	const char *name;

	if (provider_name_choose(v->text, &name, &why) == 0)
		return sandbox_set_provider(r->sb, name, err);
	err_set(err, E_USAGE, PREFIX "%s=%s: %.400s", v->name, v->text, why.message);
	err_hint(err, "unset it, or use --provider native, which needs no engine");
	return -E_USAGE;
}

static int set_network(const struct reading *r, const struct value *v, struct cloche_err *err)
{
	if (strcmp(v->text, "none") != 0) {
		err_set(err, E_USAGE,
			PREFIX "%s=%s: a sandbox has no network but the hosts that are allowed",
			v->name, v->text);
		err_hint(err, "unset it, and name the hosts to reach with --allow HOST");
		return -E_USAGE;
	}
	if (is_given(r, "allow") || is_given(r, "allowlist") || is_given(r, "preset")) {
		char text[128];

		snprintf(text, sizeof(text),
			PREFIX "%s=none: --allow, --allowlist and --preset have no effect",
			v->name);
		agentgate_tell(r, text);
	}
	r->sb->net = SANDBOX_NET_NONE;
	return 0;
}

static int set_image(const struct reading *r, const struct value *v, struct cloche_err *err)
{
	char root[512];

	/* As AgentGate does. */
	if (!r->sb->pull && sandbox_set_pull(r->sb, "missing", err) < 0)
		return -err->code;
	snprintf(root, sizeof(root), "image:%s", v->text);
	return sandbox_set_root(r->sb, root, err);
}

static int set_user(const struct reading *r, const struct value *v, struct cloche_err *err)
{
	int e = option_user(r->sb, v->text, err);

	return e < 0 ? err_wrap(err, e, PREFIX "%s", v->name) : 0;
}

static int set_cpus(const struct reading *r, const struct value *v, struct cloche_err *err)
{
	sandbox_set_cpus(r->sb, (uint64_t)v->number);
	return 0;
}

static int set_memory(const struct reading *r, const struct value *v, struct cloche_err *err)
{
	sandbox_set_memory(r->sb, (uint64_t)v->number);
	return 0;
}

static int set_timeout(const struct reading *r, const struct value *v, struct cloche_err *err)
{
	r->sb->timeout_ms = (uint64_t)v->number;
	return 0;
}

static int set_cleanup(const struct reading *r, const struct value *v, struct cloche_err *err)
{
	if (r->settings)
		r->settings->cleanup_ms = (uint64_t)v->number;
	return 0;
}

static int set_max_runs(const struct reading *r, const struct value *v, struct cloche_err *err)
{
	r->settings->max_runs = (unsigned)v->number;
	return 0;
}

static int set_sandboxed(const struct reading *r, const struct value *v, struct cloche_err *err)
{
	bool yes = strcmp(v->text, "true") == 0 || strcmp(v->text, "1") == 0;

	if (!yes && strcmp(v->text, "false") != 0 && strcmp(v->text, "0") != 0)
		return err_set(err, E_USAGE, PREFIX "%s=%s: use true or false", v->name, v->text);
	r->settings->sandboxed = yes;
	return 0;
}

static const struct variable variables[] = {
	{{{SANDBOX "PROVIDER"}}, "provider", set_provider},
	{{{SANDBOX "NETWORK"}, {SANDBOX "NETWORK_MODE"}}, "net", set_network},
	{{{SANDBOX "CPU_LIMIT", 1000, 0.5, 16}, {SANDBOX "CPU_COUNT", 1000, 1, 16}}, "cpus",
		set_cpus},
	{{{SANDBOX "MEMORY_MB", 1 << 20, 256, 32768}}, "memory", set_memory},
	{{{SANDBOX "TIMEOUT", 1000, 60, 86400}, {SANDBOX "TIMEOUT_SECONDS", 1000, 60, 86400}},
		"timeout", set_timeout},
	{{{SANDBOX "IMAGE"}}, "root", set_image},
	{{{SANDBOX "USER"}}, "user", set_user},
	{{{SANDBOX "AUTO_CLEANUP_MINUTES", 60000, 1, 60},
		 {SANDBOX "CLEANUP_INTERVAL_MS", 1, 0, 3600000}},
		NULL, set_cleanup},
	{{{"MAX_CONCURRENT_RUNS", 1, 1, 100}}, NULL, set_max_runs},
	{{{"SDK_ENABLE_SANDBOX"}}, NULL, set_sandboxed},
};

/* --- reading them --- */

static bool is_of_sandboxes(const char *name)
{
	return strncmp(name, SANDBOX, strlen(SANDBOX)) == 0;
}

/* NULL if it is not set, or empty. */
static const char *agentgate_get(const char *name)
{
	char full[64];
	const char *value;

	snprintf(full, sizeof(full), PREFIX "%s", name);
	value = secure_getenv(full);
	return value && value[0] ? value : NULL;
}

/* Whether text is digits, perhaps with a fraction. It has no unit, since the variable's name gives
 * it. */
static bool is_number(const char *text)
{
	static const char digits[] = "0123456789";
	const char *end = text + strspn(text, digits);

	if (end > text && *end == '.' && strspn(end + 1, digits) > 0)
		end += 1 + strspn(end + 1, digits);
	return end > text && *end == '\0' && end - text <= LONGEST_NUMBER;
}

static int read_number(const struct spelling *s, struct value *v, struct cloche_err *err)
{
	double number = is_number(v->text) ? strtod(v->text, NULL) : -1;

	if (number >= s->lowest && number <= s->most) {
		v->number = number * s->unit;
		return 0;
	}
	err_set(err, E_USAGE, PREFIX "%s=%.40s is not a number from %g to %.7g", s->name, v->text,
		s->lowest, s->most);
	err_hint(err, "use such a number, or unset it and use the option");
	return -E_USAGE;
}

static bool agentgate_differ(const struct variable *v, const struct value *a, const struct value *b)
{
	return v->spellings[0].most > 0 ? a->number < b->number || a->number > b->number
					: strcmp(a->text, b->text) != 0;
}

/* A value is told with the variable's name, which has its unit. */
static int agentgate_set(const struct reading *r, const struct variable *v,
	const struct value *value, struct cloche_err *err)
{
	const struct sandbox_option *o = v->option ? option_find(v->option) : NULL;
	char text[256], key[64];
	int e = v->set(r, value, err);

	if (e < 0 || !o || !r->sb)
		return e;
	snprintf(text, sizeof(text), PREFIX "%s=%.128s", value->name, value->text);
	sandbox_tell_setting(r->sb, &(cloche_setting){.key = option_key(o, key), .value = text});
	return e;
}

static int agentgate_apply(
	const struct reading *r, const struct variable *v, struct cloche_err *err)
{
	struct value values[2] = {0};
	unsigned n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(v->spellings) && v->spellings[i].name; i++) {
		const struct spelling *s = &v->spellings[i];
		struct value *value = &values[n];
		int e;

		*value = (struct value){.name = s->name, .text = agentgate_get(s->name)};
		if (!value->text)
			continue;
		e = s->most > 0 ? read_number(s, value, err) : 0;
		if (e < 0)
			return e;
		n++;
	}
	if (n == 2 && agentgate_differ(v, &values[0], &values[1])) {
		char text[256];

		snprintf(text, sizeof(text), PREFIX "%s=%.40s wins over " PREFIX "%s=%.40s",
			values[0].name, values[0].text, values[1].name, values[1].text);
		agentgate_tell(r, text);
	}
	return n > 0 ? agentgate_set(r, v, &values[0], err) : 0;
}

static bool is_known(struct str name)
{
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
		for (size_t k = 0; k < 2; k++) {
			const char *one = variables[i].spellings[k].name;

			if (one && str_eq(name, str_from(one)))
				return true;
		}
	return false;
}

static int check_names(struct cloche_err *err)
{
	for (char **v = environ; *v; v++) {
		size_t n = strcspn(*v, "="), prefix = strlen(PREFIX);

		if (strncmp(*v, PREFIX SANDBOX, strlen(PREFIX SANDBOX)) != 0 || (*v)[n] == '\0' ||
			(*v)[n + 1] == '\0' || is_known(str_make(*v + prefix, n - prefix)))
			continue;
		err_set(err, E_USAGE, "%.*s is set, but cloche does not read it", (int)n, *v);
		err_hint(err, "unset it; cloche(1) lists the variables that are read");
		return -E_USAGE;
	}
	return 0;
}

int agentgate_read(cloche_sandbox *sb, struct agentgate *ret, const char *const *given,
	cloche_warning_fn fn, void *user, struct cloche_err *err)
{
	const struct reading reading = {sb, ret, given, fn, user};
	int r = check_names(err);

	if (ret)
		*ret = (struct agentgate){DEFAULT_CLEANUP_MS, DEFAULT_MAX_RUNS, true};
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(variables); i++) {
		const struct variable *v = &variables[i];
		bool of_sandboxes = is_of_sandboxes(v->spellings[0].name);

		if (is_given(&reading, v->option) || (!ret && !of_sandboxes) || (!sb && v->option))
			continue;
		r = agentgate_apply(&reading, v, err);
	}
	return r;
}

int cloche_sandbox_load_environment(cloche_sandbox *sb, const char *const *given,
	cloche_warning_fn fn, void *user, cloche_err *err)
{
	return agentgate_read(sb, NULL, given, fn, user, err);
}
