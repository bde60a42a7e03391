/* SPDX-License-Identifier: Apache-2.0 */
/* `cloche net`: what an allowlist decides, the policy of a running sandbox, network logs. */
#include "cli.h"
#include "json_out.h"
#include "net_watch.h"
#include "project.h"

#include <cloche/allowlist.h>
#include <cloche/network_log.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct net_options {
	cloche_allowlist *list; /* NULL: none was named */
	bool blocked, follow, json, quiet;
};

/* Add to the list with add(), which takes what the option was given. */
static int net_list_add(struct net_options *o, const char *value,
	int (*add)(cloche_allowlist *list, const char *value, cloche_err *err), cloche_err *err)
{
	if (!o->list)
		o->list = cloche_allowlist_new();
	return o->list ? add(o->list, value, err) : wrong_usage(err, NULL, "out of memory");
}

static int add_file(const struct option *option, void *at, const char *value, cloche_err *err)
{
	return net_list_add(at, value, cloche_allowlist_add_file, err);
}

static int net_add_preset(const struct option *option, void *at, const char *value, cloche_err *err)
{
	return net_list_add(at, value, cloche_allowlist_add_preset, err);
}

static int add_host(const struct option *option, void *at, const char *value, cloche_err *err)
{
	return net_list_add(at, value, cloche_allowlist_add_host, err);
}

static void net_done(void *ctx)
{
	cloche_allowlist_free(((struct net_options *)ctx)->list);
}

static const struct option options[] = {
	{"allowlist", 0, "FILE", "the rules of this file (repeatable)", .of = "check, set",
		.set = add_file},
	{"allow", 0, "HOST", "as for cloche run (repeatable)", .of = "check, set", .set = add_host},
	{"preset", 0, "NAME", "as for cloche run (repeatable)", .of = "check, set",
		.set = net_add_preset},
	{"blocked", 0, NULL, "only what was refused", .of = "log",
		.at = offsetof(struct net_options, blocked)},
	{"blocked-only", 0, NULL, "only for what was refused", .of = "suggest",
		.at = offsetof(struct net_options, blocked)},
	{"follow", 'f', NULL, "go on until the sandbox ends (suggest: first wait for that)",
		.of = "log, suggest", .at = offsetof(struct net_options, follow)},
	{"quiet", 'q', NULL, "only questions, also for a sandbox that is just beginning",
		.of = "watch", .at = offsetof(struct net_options, quiet)},
	{"json", 0, NULL, "print JSON (log, watch: lines; else one document)",
		.at = offsetof(struct net_options, json)},
	{0},
};

/* Use what the project's files allow if nothing was named. */
static int net_list_default(struct net_options *o, cloche_err *err)
{
	cloche_project *p = NULL;
	const char *path;
	bool obeyed;
	int r = o->list ? 0 : cloche_project_find(".", &p, err);

	if (o->list || r < 0)
		return r;
	path = p ? NULL : project_allowlist(".", &obeyed);
	if (path) {
		say("%s is not obeyed by cloche run: " PROJECT_LONE, path);
		return net_list_add(o, path, cloche_allowlist_add_file, err);
	}
	o->list = cloche_allowlist_new();
	if (!o->list)
		r = wrong_usage(err, NULL, "out of memory");
	else if (p)
		r = cloche_project_rules(p, o->list, err);
	cloche_project_free(p);
	if (r == 0 && cloche_allowlist_count(o->list) == 0)
		return wrong_usage(err, "use --allowlist FILE or --allow HOST",
			"net check: which allowlist? the project here has none, as in "
			".cloche/network-allowlist.yaml");
	return r;
}

static int net_check(struct net_options *o, char *const *operands, cloche_err *err)
{
	cloche_verdict v;
	int r = net_list_default(o, err);

	if (r == 0)
		r = cloche_allowlist_check(o->list, operands[0], operands[1], &v, err);
	if (r < 0)
		return r;
	if (o->json) {
		json_print(json_pack("{s:b, s:s, s:s, s:s, s:s}", "allowed", (int)v.allowed,
			"reason", v.reason, "rule", v.rule, "explanation", v.explanation,
			"suggestion", v.suggestion));
		return v.allowed ? 0 : 1;
	}
	printf("%s: %s\n", v.allowed ? "ALLOWED" : "BLOCKED", v.explanation);
	if (v.rule[0] && !strstr(v.explanation, v.rule))
		printf("%s: %s\n", v.allowed ? "rule" : "nearest rule", v.rule);
	if (v.suggestion[0])
		printf("to allow it (as another --allowlist, or below the url_prefixes that are "
		       "there):\n%s",
			v.suggestion);
	return v.allowed ? 0 : 1;
}

static int net_say_change(
	const struct net_options *o, const cloche_instance *i, const cloche_policy_change *change)
{
	if (o->json)
		return json_print(json_pack("{s:s, s:I, s:I}", "id", cloche_instance_id(i), "rules",
			       (json_int_t)change->rules, "closed", (json_int_t)change->closed))
			       ? 0
			       : EXIT_CLOCHE;
	say("%u rule%s, %u request%s broken off", change->rules, change->rules == 1 ? "" : "s",
		change->closed, change->closed == 1 ? "" : "s");
	return 0;
}

static int net_set(struct net_options *o, char *const *operands, cloche_err *err)
{
	cloche_policy_change change;
	_cleanup_(instance_freep) cloche_instance *i = NULL;
	int r;

	if (!o->list)
		return wrong_usage(err, "a file without any rule blocks everything",
			"net set: which allowlist? use --allowlist FILE or --allow HOST");
	r = cloche_instance_open(operands[0], &i, err);
	if (r == 0)
		r = cloche_instance_set_allowlist(i, o->list, &change, err);
	if (r < 0)
		return r;
	return net_say_change(o, i, &change);
}

/* Add a shorthand, or HOST/PATH for both schemes. */
static int net_add_place(cloche_allowlist *list, const char *place,
	int (*add)(cloche_allowlist *list, const char *shorthand, cloche_err *err), cloche_err *err)
{
	static const char *const schemes[] = {"https", "http"};
	char text[2100];
	int r = 0;

	if (strstr(place, "://") || !strchr(place, '/'))
		return add(list, place, err);
	for (size_t i = 0; r == 0 && i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		if ((size_t)snprintf(text, sizeof(text), "%s://%s", schemes[i], place) >=
			sizeof(text))
			return wrong_usage(err, NULL, "net: the path is too long");
		r = add(list, text, err);
	}
	return r;
}

static int net_add(struct net_options *o, char *const *operands,
	int (*add)(cloche_allowlist *list, const char *shorthand, cloche_err *err), cloche_err *err)
{
	cloche_policy_change change;
	_cleanup_(instance_freep) cloche_instance *i = NULL;
	int r;

	o->list = cloche_allowlist_new();
	if (!o->list)
		return wrong_usage(err, NULL, "out of memory");
	r = net_add_place(o->list, operands[1], add, err);
	if (r == 0)
		r = cloche_instance_open(operands[0], &i, err);
	if (r == 0)
		r = cloche_instance_add_allowlist(i, o->list, &change, err);
	return r < 0 ? r : net_say_change(o, i, &change);
}

static int net_allow(struct net_options *o, char *const *operands, cloche_err *err)
{
	return net_add(o, operands, cloche_allowlist_add_host, err);
}

static int net_deny(struct net_options *o, char *const *operands, cloche_err *err)
{
	return net_add(o, operands, cloche_allowlist_deny_host, err);
}

/* A sandbox is looked for first: what lies in the current directory may be of a room's making. The
 * caller frees *ret. */
static int net_find_log(
	const struct net_options *o, const char *operand, char **ret, cloche_err *err)
{
	bool is_path = strchr(operand, '/');
	int r = is_path ? -CLOCHE_E_NOT_FOUND : cloche_network_log_find(operand, ret, err);

	if (r != -CLOCHE_E_NOT_FOUND || (!is_path && access(operand, F_OK) < 0))
		return r;
	if (o->follow)
		return wrong_usage(err, "for example: cloche net log --follow dev",
			"net: --follow is for a sandbox, and %s is a file", operand);
	*ret = strdup(operand);
	return *ret ? 0 : wrong_usage(err, NULL, "out of memory");
}

/* Return 0 at the end of the log, 1 if an entry could not be printed, or a negative code. */
static int net_print_log(const struct net_options *o, cloche_network_log *log, cloche_err *err)
{
	cloche_network_entry e;
	bool ok = true;
	int r;

	do {
		r = o->follow ? cloche_network_log_wait(log, err) : 1;
		if (r <= 0)
			return r;
		while (ok && (r = cloche_network_log_next(log, &e, err)) > 0)
			if (e.blocked || !o->blocked)
				ok = o->json ? json_print_text(e.json)
					     : printf("%s\n", e.line) >= 0;
		if (!ok || (o->follow && !flush_output()))
			return 1;
	} while (r == 0 && o->follow);
	return r;
}

static int net_log(struct net_options *o, char *const *operands, cloche_err *err)
{
	cloche_network_log *log = NULL;
	cloche_network_summary s;
	char *path = NULL;
	int r = net_find_log(o, operands[0], &path, err);

	if (r == 0)
		r = cloche_network_log_open(path, &log, err);
	free(path);
	if (r < 0)
		return r;
	r = net_print_log(o, log, err);
	s = cloche_network_log_summary(log);
	cloche_network_log_close(log);
	if (r > 0)
		return EXIT_CLOCHE;
	if (r == 0 && !o->json)
		say("%llu allowed, %llu blocked, %llu errors, %llu names looked up; "
		    "%llu bytes in, %llu out",
			(unsigned long long)s.allowed, (unsigned long long)s.blocked,
			(unsigned long long)s.errors, (unsigned long long)s.dns,
			(unsigned long long)s.bytes_in, (unsigned long long)s.bytes_out);
	return r;
}

/* Wait until the sandbox has ended. */
static int net_await_end(const char *path, cloche_err *err)
{
	cloche_network_log *log = NULL;
	int r = cloche_network_log_open(path, &log, err);

	if (r < 0)
		return r;
	while ((r = cloche_network_log_wait(log, err)) > 0)
		if (cloche_network_log_skip(log, err) < 0)
			break;
	cloche_network_log_close(log);
	return r;
}

static int net_suggest(struct net_options *o, char *const *operands, cloche_err *err)
{
	cloche_network_suggestion *s = NULL;
	const char *yaml;
	char *path = NULL;
	bool ok;
	int r = net_find_log(o, operands[0], &path, err);

	if (r == 0 && o->follow)
		r = net_await_end(path, err);
	if (r == 0)
		r = cloche_network_log_suggest(path, o->blocked, &s, err);
	free(path);
	if (r < 0)
		return r;
	yaml = s->yaml;
	ok = o->json ? json_print_text(s->json) : put(STDOUT_FILENO, yaml, strlen(yaml));
	cloche_network_suggestion_free(s);
	return ok ? 0 : EXIT_CLOCHE;
}

static int net_ask(struct net_options *o, char *const *operands, cloche_err *err)
{
	return net_watch(operands[0], o->json, o->quiet, err);
}

static const struct part {
	const char *name, *needs, *example;
	int operands;
	int (*run)(struct net_options *o, char *const *operands, cloche_err *err);
} parts[] = {
	{"check", "METHOD and URL", "check GET https://api.github.com/user", 2, net_check},
	{"set", "the ID of a sandbox", "set --allow pypi.org ID", 1, net_set},
	{"allow", "a sandbox and HOST[/PATH]", "allow dev pypi.org", 2, net_allow},
	{"deny", "a sandbox and HOST[/PATH]", "deny dev pypi.org", 2, net_deny},
	{"log", "a sandbox, or the FILE of a log", "log dev", 1, net_log},
	{"suggest", "a sandbox, or the FILE of a log", "suggest dev", 1, net_suggest},
	{"watch", "a sandbox", "watch dev", 1, net_ask},
};

static const struct part *net_find_part(const struct operands *operands, cloche_err *err)
{
	for (size_t i = 0; operands->n > 0 && i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strcmp(operands->v[0], parts[i].name) == 0)
			return &parts[i];
	wrong_usage(err, "\"cloche net --help\" tells what each does",
		"net: use check, set, allow, deny, log, suggest or watch%s%s%s",
		operands->n ? ", not \"" : "", operands->n ? operands->v[0] : "",
		operands->n ? "\"" : "");
	return NULL;
}

static int main_net(void *ctx, const struct operands *operands, cloche_err *err)
{
	struct net_options *o = ctx;
	const struct part *p = net_find_part(operands, err);
	char example[80];

	if (!p || options_check_operation(&command_net, operands, p->name, err) < 0)
		return -err->code;
	snprintf(example, sizeof(example), "for example: cloche net %s", p->example);
	if (operands->n - 1 != p->operands)
		return wrong_usage(err, example, "net %s: needs %s", p->name, p->needs);
	return p->run(o, operands->v + 1, err);
}

const struct command command_net = {
	.name = "net",
	.summary = "ask what an allowlist decides, change one, read a network log",
	.synopsis = "check [--allowlist FILE] METHOD URL\n"
		    "       cloche net set [--allowlist FILE] [--allow HOST] ID\n"
		    "       cloche net allow|deny ID HOST[/PATH]\n"
		    "       cloche net watch ID\n"
		    "       cloche net log [--blocked] [--follow] ID|FILE\n"
		    "       cloche net suggest [--blocked-only] [--follow] ID|FILE",
	.text = "check says what the gateway would decide about a request, which rule decides,\n"
		"and what would allow it; the exit status is 0 if it is allowed, 1 if not.\n"
		"set replaces what a running sandbox may reach: as a whole, or not at all.\n"
		"Requests under way that the new rules forbid are broken off; secrets stay.\n"
		"allow and deny add to what holds. The last word about a host counts.\n"
		"watch asks you about each request that would be refused, until the sandbox ends.\n"
		"log shows a network log, safe for a terminal: of a sandbox that runs or was one\n"
		"of the last 64 that have ended, or a file of either form.\n"
		"suggest prints the smallest allowlist that the requests of a log need. Read it\n"
		"before you use it: the log says what the inside wanted.\n"
		"\n"
		"  cloche net check --allowlist allow.yaml GET https://api.github.com/repos/x/y\n"
		"  cloche net set --allowlist allow.yaml --allow pypi.org dev\n"
		"  cloche net allow dev pypi.org\n"
		"  cloche net log --blocked dev\n"
		"  cloche net suggest --blocked-only network-sandbox.jsonl",
	.tables = {&(const struct option_table){"Options", options}},
	.ctx = &(struct net_options){0},
	.run = main_net,
	.done = net_done,
};
