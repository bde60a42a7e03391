/* SPDX-License-Identifier: Apache-2.0 */
/* `cloche net`: finds the subcommand, and implements check and log. */
#include "cmd_net.h"
#include "json_out.h"
#include "project.h"

#include <cloche/network_log.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int add_file(void *ctx, const char *value, cloche_err *err)
{
	((struct net_options *)ctx)->any_list = true;
	return cloche_allowlist_add_file(((struct net_options *)ctx)->list, value, err);
}

static int add_host(void *ctx, const char *value, cloche_err *err)
{
	struct net_options *o = ctx;

	o->any_list = true;
	return cloche_allowlist_add_host(o->list, value, err);
}

static const struct option options[] = {
	{"allowlist", 0, "FILE", "check, set: the rules of this file (repeatable)", add_file},
	{"allow", 0, "HOST", "check, set: as for cloche run (repeatable)", add_host},
	{"blocked", 0, NULL, "log: only what was refused",
		.at = offsetof(struct net_options, blocked)},
	{"blocked-only", 0, NULL, "suggest: only for what was refused",
		.at = offsetof(struct net_options, blocked)},
	{"json", 0, NULL, "print JSON (log: one line an entry, else one document)",
		.at = offsetof(struct net_options, json)},
};
static const struct option_table option_table = {
	.options = options, .n = sizeof(options) / sizeof(options[0]), .title = "Options"};

static int check(const struct net_options *o, const char *method, const char *url, cloche_err *err)
{
	cloche_verdict v;
	int r = cloche_allowlist_check(o->list, method, url, &v, err);

	if (r < 0)
		return complain(err);
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

static int show_log(const struct net_options *o, const char *path, cloche_err *err)
{
	cloche_network_log *log = NULL;
	cloche_network_entry e;
	cloche_network_summary s;
	int r = cloche_network_log_open(path, &log, err);

	if (r < 0)
		return complain(err);
	while ((r = cloche_network_log_next(log, &e, err)) > 0)
		if (e.blocked || !o->blocked)
			printf("%s\n", o->json ? e.json : e.line);
	s = cloche_network_log_summary(log);
	cloche_network_log_close(log);
	if (r < 0)
		return complain(err);
	if (!o->json)
		say("%llu allowed, %llu blocked, %llu errors, %llu names looked up; "
		    "%llu bytes in, %llu out",
			(unsigned long long)s.allowed, (unsigned long long)s.blocked,
			(unsigned long long)s.errors, (unsigned long long)s.dns,
			(unsigned long long)s.bytes_in, (unsigned long long)s.bytes_out);
	return 0;
}

/* If no allowlist was named, add the one of the project. */
static int add_default(struct net_options *o, cloche_err *err)
{
	bool obeyed;
	const char *path = o->any_list ? NULL : project_allowlist(".", &obeyed);

	if (o->any_list)
		return 0;
	if (!path)
		return wrong_usage(err, "use --allowlist FILE or --allow HOST",
			"net check: which allowlist? the project here has none, as in "
			".cloche/network-allowlist.yaml");
	if (!obeyed)
		say("%s is not obeyed by cloche run: " PROJECT_LONE, path);
	return cloche_allowlist_add_file(o->list, path, err);
}

static int do_check(struct net_options *o, char *const *operands, cloche_err *err)
{
	if (add_default(o, err) < 0)
		return complain(err);
	return check(o, operands[0], operands[1], err);
}

static int do_set(struct net_options *o, char *const *operands, cloche_err *err)
{
	return net_set(o, operands[0]);
}

static int do_log(struct net_options *o, char *const *operands, cloche_err *err)
{
	return show_log(o, operands[0], err);
}

static int do_suggest(struct net_options *o, char *const *operands, cloche_err *err)
{
	return net_suggest(o, operands[0]);
}

static const struct part {
	const char *name, *needs, *example;
	int operands;
	bool of_rules; /* uses an allowlist; the others read a log */
	int (*run)(struct net_options *o, char *const *operands, cloche_err *err);
} parts[] = {
	{"check", "METHOD and URL", "check GET https://api.github.com/user", 2, true, do_check},
	{"set", "the ID of a sandbox", "set --allow pypi.org ID", 1, true, do_set},
	{"log", "the FILE of a log", "log net.log", 1, false, do_log},
	{"suggest", "the FILE of a log", "suggest net.log", 1, false, do_suggest},
};

static const struct part *find_part(const struct operands *operands, cloche_err *err)
{
	for (size_t i = 0; operands->n > 0 && i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strcmp(operands->v[0], parts[i].name) == 0)
			return &parts[i];
	wrong_usage(err, "\"cloche net --help\" tells what each does",
		"net: use check, set, log or suggest%s%s%s", operands->n ? ", not \"" : "",
		operands->n ? operands->v[0] : "", operands->n ? "\"" : "");
	return NULL;
}

static int dispatch(struct net_options *o, const struct operands *operands, cloche_err *err)
{
	const struct part *p = find_part(operands, err);
	char example[80];

	if (!p)
		return complain(err);
	snprintf(example, sizeof(example), "for example: cloche net %s", p->example);
	if (operands->n - 1 != p->operands)
		wrong_usage(err, example, "net %s: needs %s", p->name, p->needs);
	else if (!p->of_rules && o->any_list)
		wrong_usage(err, example, "net %s: takes no allowlist", p->name);
	else if (p->of_rules && o->blocked)
		wrong_usage(err, example, "net %s: --blocked is for logs", p->name);
	if (err->code)
		return complain(err);
	return p->run(o, operands->v + 1, err);
}

static int main_net(int argc, char **argv)
{
	struct net_options o = {.list = cloche_allowlist_new()};
	struct operands operands = {0};
	cloche_err err = CLOCHE_ERR_INIT;
	int r;

	if (!o.list) {
		say("out of memory");
		return EXIT_CLOCHE;
	}
	r = options_read(&command_net, &o, argc, argv, &operands, &err);
	if (r < 0)
		r = complain(&err);
	else if (!operands.help)
		r = dispatch(&o, &operands, &err);
	cloche_allowlist_free(o.list);
	return r;
}

const struct command command_net = {
	.name = "net",
	.summary = "ask what an allowlist decides, change that of a sandbox, read a network log",
	.synopsis = "check [--allowlist FILE] METHOD URL\n"
		    "       cloche net set [--allowlist FILE] [--allow HOST] ID\n"
		    "       cloche net log [--blocked] FILE\n"
		    "       cloche net suggest [--blocked-only] FILE",
	.text = "check says what the gateway would decide about a request, which rule decides, "
		"and\n"
		"what would allow the request; the exit status is 0 if it is allowed, 1 if not.\n"
		"set replaces what a running sandbox may reach: as a whole, or not at all.\n"
		"Requests under way that the new rules forbid are broken off; secrets stay.\n"
		"log shows a network log of either form, safe for a terminal.\n"
		"suggest prints the smallest allowlist that the requests of a log need. Read it\n"
		"before you use it: the log says what the inside wanted.\n"
		"\n"
		"  cloche net check --allowlist allow.yaml GET https://api.github.com/repos/x/y\n"
		"  cloche net set --allowlist allow.yaml --allow pypi.org dev\n"
		"  cloche net log --blocked network-sandbox.log\n"
		"  cloche net suggest --blocked-only network-sandbox.jsonl",
	.tables = {&option_table},
	.run = main_net,
};
