/* SPDX-License-Identifier: Apache-2.0 */
/* `cloche trust`: consent to what a project's files ask for. */
#include "cli.h"
#include "json_out.h"
#include "project.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct trust_options {
	bool list, revoke, yes, json;
};

static const struct option options[] = {
	{"list", 0, NULL, "list what you have consented to",
		.at = offsetof(struct trust_options, list)},
	{"revoke", 0, NULL,
		"take back the consent for DIR, and forget what is always allowed there",
		.at = offsetof(struct trust_options, revoke)},
	{"yes", 0, NULL, "record the consent without asking",
		.at = offsetof(struct trust_options, yes)},
	{"json", 0, NULL, "print one JSON document, and ask nothing",
		.at = offsetof(struct trust_options, json)},
	{0},
};

/* Say whether the consent still applies to the current files. */
static const char *state_of(const cloche_consent *c)
{
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_project *p = NULL;
	const char *state = "holds";

	if (cloche_project_open(c->dir, &p, &err) < 0)
		state = err.sys_errno == ENOENT ? "gone" : "refused";
	else if (!p)
		state = "gone";
	else if (strcmp(p->hash, c->hash) != 0)
		state = "changed";
	cloche_project_free(p);
	return state;
}

static void add_to_list(const cloche_consent *c, void *user)
{
	json_array_append_new(user, json_pack("{s:s, s:s, s:s, s:s}", "directory", c->dir, "since",
					    c->since, "sha256", c->hash, "state", state_of(c)));
}

static void print_listed(const cloche_consent *c, void *user)
{
	bool *ok = user;

	*ok = *ok && put_shown(STDOUT_FILENO, c->since) && put(STDOUT_FILENO, "  ", 2) &&
	      put_shown(STDOUT_FILENO, state_of(c)) && put(STDOUT_FILENO, "  ", 2) &&
	      put_line(c->dir);
}

static int list_consents(const struct trust_options *o, cloche_err *err)
{
	json_t *all = json_array();
	bool ok = true;
	int r;

	if (o->json)
		r = cloche_project_list(add_to_list, all, err);
	else
		r = cloche_project_list(print_listed, &ok, err);
	if (r == 0 && o->json)
		ok = json_print(all);
	else
		json_decref(all);
	return r < 0 ? r : ok ? 0 : EXIT_CLOCHE;
}

static json_t *gather_lines(const char *const *lines)
{
	json_t *all = json_array();

	for (; all && *lines; lines++)
		json_array_append_new(all, json_string(*lines));
	return all;
}

static int print_project(const cloche_project *p)
{
	const char *dir = p->dir;
	json_t *document = json_pack("{s:o, s:s, s:o, s:b, s:s?, s:o, s:o}", "directory",
		json_bytes(dir, strlen(dir)), "sha256", p->hash, "files", gather_lines(p->files),
		"trusted", (int)p->is_trusted, "since", p->since, "asks", gather_lines(p->asks),
		"changes", gather_lines(p->changes));

	return document && json_print(document) ? 0 : EXIT_CLOCHE;
}

static int consent_to(cloche_project *p, const struct trust_options *o, cloche_err *err)
{
	bool asked = !o->yes && !o->json && !p->is_trusted;
	char text[128];

	if (!o->json)
		project_show(p);
	if (p->is_trusted && !o->json)
		say(p->asks[0] ? "you have consented to this" : "nothing to do");
	if (asked && !project_can_ask())
		return wrong_usage(err, "--yes records your consent without asking",
			"trust: there is no terminal to ask on");
	if (asked && !project_is_short(p)) {
		snprintf(text, sizeof(text),
			"trust: the files ask for %zu things, more than anybody reads in front of "
			"a question",
			project_count(p));
		return wrong_usage(err,
			"read them (cloche trust 2>&1 | less); then \"cloche trust --yes\" records "
			"your consent",
			"%s", text);
	}
	if (asked && !project_ask_person(p))
		return wrong_usage(err, "nothing of it is obeyed; --no-config goes on without it",
			"trust: you did not consent");
	if ((asked || o->yes) && p->asks[0]) {
		int r = cloche_project_trust(p, err);

		if (r < 0)
			return r;
		if (!o->json)
			say("recorded; \"cloche trust --revoke\" takes it back");
	}
	return 0;
}

static int trust_dir(const char *dir, const struct trust_options *o, cloche_err *err)
{
	cloche_project *p = NULL;
	int r = cloche_project_find(dir, &p, err);
	bool obeyed;
	const char *lone = r == 0 && !p ? project_allowlist(dir, &obeyed) : NULL;

	if (lone)
		r = wrong_usage(err, "make that file as well, or use --allowlist FILE",
			"trust: there is nothing to consent to: %s is not obeyed: " PROJECT_LONE,
			lone);
	else if (r == 0 && !p)
		r = wrong_usage(err, "name the directory that holds .cloche/sandbox.yaml",
			"trust: there is no configuration of a project in %s", dir);
	if (r == 0)
		r = consent_to(p, o, err);
	if (r == 0 && o->json)
		r = print_project(p);
	cloche_project_free(p);
	return r;
}

static int trust_revoke(const char *dir, cloche_err *err)
{
	int r = cloche_project_revoke(dir, err);

	if (r == 0)
		say("the consent for %s is gone", dir);
	return r;
}

static int trust_check(
	const struct trust_options *o, const struct operands *operands, cloche_err *err)
{
	if (o->list + o->revoke + o->yes > 1)
		return wrong_usage(err, "use one of them",
			"trust: --list, --revoke and --yes cannot be combined");
	if (operands->n > (o->list ? 0 : 1))
		return wrong_usage(err, "for example: cloche trust .",
			o->list ? "trust: --list takes no directory"
				: "trust: takes one directory at a time");
	if (o->revoke && o->json)
		return wrong_usage(err, "leave out --json", "trust: --revoke prints nothing");
	return 0;
}

static int main_trust(void *ctx, const struct operands *operands, cloche_err *err)
{
	const struct trust_options *o = ctx;
	const char *dir = operands->n ? operands->v[0] : ".";
	int r = trust_check(o, operands, err);

	if (r < 0)
		return r;
	if (o->list)
		return list_consents(o, err);
	return o->revoke ? trust_revoke(dir, err) : trust_dir(dir, o, err);
}

const struct command command_trust = {
	.name = "trust",
	.summary = "consent to what a project's files ask for",
	.synopsis = "[--yes] [DIR]\n"
		    "       cloche trust --revoke [DIR]\n"
		    "       cloche trust --list",
	.text = "The files in a project's .cloche (else .airut) are proposals: others have\n"
		"written them, or a sandbox has. Files that only narrow (limits) are obeyed.\n"
		"Files that name your variables, secrets or files, or open hosts, are obeyed if\n"
		"you have consented to exactly these files in this directory. After a change you\n"
		"are asked again.\n"
		"\n"
		"trust shows in words what DIR's files (default: those of this directory) ask\n"
		"for, and what has changed, then asks you. run, create and agent ask the same on\n"
		"a terminal, and refuse elsewhere. --config FILE obeys a file for once,\n"
		"--no-config goes on without the files.",
	.tables = {&(const struct option_table){"Options", options}},
	.ctx = &(struct trust_options){0},
	.run = main_trust,
};
