/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the library lists the options that make a sandbox, and sets each by its
 * name. Options from the command line are applied after the environment and the configuration file,
 * so that they override both. */
#include "cli.h"
#include "cmd_image.h"
#include "project.h"

#include <cloche/srt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct option options[] = {
	{"no-workspace", 0, NULL, "mount no workspace",
		.at = offsetof(struct sandbox_options, no_workspace)},
	{"network-log-live", 0, NULL,
		"show the network log on standard error, each line after [net]",
		.at = offsetof(struct sandbox_options, network_log_live)},
	{"tty", 't', NULL,
		"give the command a terminal (default if standard input, output and error are\n"
		"all a terminal)",
		.at = offsetof(struct sandbox_options, tty),
		.off = offsetof(struct sandbox_options, no_tty)},
	{"no-tty", 'T', NULL, "give the command no terminal",
		.at = offsetof(struct sandbox_options, no_tty),
		.off = offsetof(struct sandbox_options, tty)},
	{"interactive", 'i', NULL,
		"pass standard input even if it is a terminal; without -t, the command has no\n"
		"terminal of its own",
		.at = offsetof(struct sandbox_options, interactive)},
	{"allow-unsandboxed", 0, NULL,
		"if --provider is auto and nothing else works, use subprocess, which isolates\n"
		"nothing",
		.at = offsetof(struct sandbox_options, allow_unsandboxed)},
	{"config", 0, "FILE",
		"obey FILE (default: .cloche/sandbox.yaml, else .airut/sandbox.yaml or\n"
		".airut/airut.yaml, of the project, if it only narrows or you consented to what\n"
		"it asks for: see \"cloche help trust\")",
		.at = offsetof(struct sandbox_options, config)},
	{"no-config", 0, NULL,
		"obey no configuration file that is found here, nor ~/.config/cloche/config.yaml",
		.at = offsetof(struct sandbox_options, no_config)},
	{"json", 0, NULL, "print the result as one JSON document",
		.at = offsetof(struct sandbox_options, json)},
	{"verbose", 0, NULL, "say more", .at = offsetof(struct sandbox_options, verbose)},
	{"quiet", 0, NULL, "do not say at the end what the network refused",
		.at = offsetof(struct sandbox_options, quiet)},
	{"debug", 0, NULL, "say what is done, and when",
		.at = offsetof(struct sandbox_options, debug)},
	{0},
};

const struct option_table sandbox_command_table = {"Options of the command line", options};

struct option_table sandbox_option_table = {"Options of the sandbox", NULL};
struct option_table lasting_option_table = {
	"Options of a sandbox that is kept, or put on record", NULL};

/* Return whether word is one of words, which are separated by blanks. */
static bool sandbox_options_has_word(const char *words, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = words; (at = strstr(at, word)); at += n)
		if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
			return true;
	return false;
}

void sandbox_options_prepare(const char *command)
{
	static struct option *rows;
	struct option *every, *some;
	const cloche_option *from;
	size_t n = 0;

	while (cloche_sandbox_option(n))
		n++;
	free(rows);
	rows = calloc(2 * (n + 1), sizeof(*rows));
	if (!rows) {
		say("out of memory");
		exit(EXIT_CLOCHE);
	}
	sandbox_option_table.options = every = rows;
	lasting_option_table.options = some = rows + n + 1;
	for (size_t i = 0; (from = cloche_sandbox_option(i)); i++) {
		struct option o = {
			from->name, from->letter, from->argument, from->help, .of_sandbox = true};

		if (!from->commands)
			*every++ = o;
		else if (sandbox_options_has_word(from->commands, command))
			*some++ = o;
	}
}

int sandbox_options_give(
	struct sandbox_options *o, const char *name, const char *value, cloche_err *err)
{
	struct given *grown = realloc(o->given, (o->given_n + 1) * sizeof(*grown));

	if (!grown)
		return wrong_usage(err, NULL, "out of memory");
	o->given = grown;
	o->given[o->given_n++] = (struct given){name, value};
	return 0;
}

const struct given *sandbox_options_given(const struct sandbox_options *o, const char *name)
{
	for (size_t i = o->given_n; i-- > 0;)
		if (strcmp(o->given[i].name, name) == 0)
			return &o->given[i];
	return NULL;
}

static bool allows_hosts(const struct sandbox_options *o)
{
	return sandbox_options_given(o, "allow") || sandbox_options_given(o, "allowlist") ||
	       sandbox_options_given(o, "preset");
}

void sandbox_options_done(void *ctx)
{
	struct sandbox_options *o = ctx;

	cloche_sandbox_free(o->sb);
	free(o->given);
}

/* Load the named file, and the allowlist next to it if there is one. */
static int load_named(struct sandbox_options *o, cloche_err *err)
{
	static char beside[PATH_MAX];
	const char *slash = strrchr(o->config, '/');
	int r = cloche_sandbox_load_config(o->sb, o->config, err);

	if (r < 0)
		return r;
	if (o->verbose)
		say("using %s", o->config);
	snprintf(beside, sizeof(beside), "%.*snetwork-allowlist.yaml",
		slash ? (int)(slash - o->config + 1) : 0, o->config);
	if (!sandbox_options_given(o, "allowlist") && access(beside, F_OK) == 0)
		return cloche_sandbox_set(o->sb, "allowlist", beside, err);
	return 0;
}

/* Load the files found in the project; they may need consent. */
static int load_found(struct sandbox_options *o, cloche_err *err)
{
	cloche_allowlist *allow = cloche_allowlist_new();
	int r;

	if (!allow)
		return wrong_usage(err, NULL, "out of memory");
	r = project_load(
		o->sb, sandbox_options_given(o, "allowlist") ? NULL : allow, !o->shows_only, err);
	/* What does not hold is not shown. */
	if (o->shows_only && r == -CLOCHE_E_DENIED) {
		complain(err);
		r = 0;
	}
	if (r == 0 && cloche_allowlist_count(allow) > 0)
		r = cloche_sandbox_add_allowlist(o->sb, allow, err);
	cloche_allowlist_free(allow);
	return r;
}

/* What the command line says is not even looked at in a file. */
static int load_config(struct sandbox_options *o, cloche_err *err)
{
	int r = 0;

	if (o->config && o->no_config)
		return wrong_usage(err, "leave out one of them",
			"--config names a configuration file, --no-config wants none");
	if (o->no_config)
		return 0;
	for (size_t i = 0; r == 0 && i < o->given_n; i++)
		r = cloche_sandbox_settle(o->sb, o->given[i].name, err);
	if (r == 0)
		r = cloche_sandbox_load_config(o->sb, NULL, err);
	if (r == 0)
		r = o->config ? load_named(o, err) : load_found(o, err);
	return r;
}

/* Tell the user of options for a record that is not kept. */
static void check_record(const struct sandbox_options *o)
{
	const struct given *runtime = sandbox_options_given(o, "runtime");
	const char *record = runtime && strcmp(runtime->value, "shell") != 0 ? "ops" : "none";

	if (o->record[0])
		record = o->record;
	if (sandbox_options_given(o, "record-limit") && strcmp(record, "full") != 0)
		say("warning: without --record full, --record-limit has no effect");
	if (sandbox_options_given(o, "record-sync") && strcmp(record, "none") == 0)
		say("warning: without --record ops or full, --record-sync has no effect");
}

/* Files set options as well; the last one counts. */
static void see_setting(const cloche_setting *s, void *user)
{
	struct sandbox_options *o = user;

	if (strcmp(s->key, "record") == 0)
		snprintf(o->record, sizeof(o->record), "%s", s->value);
	else if (strcmp(s->key, "no-record") == 0)
		snprintf(o->record, sizeof(o->record), "none");
	else if (strcmp(s->key, "root") == 0)
		o->has_image = strncmp(s->value, "image:", 6) == 0;
	else if (strcmp(s->key, "network_sandbox") == 0)
		o->network_off = strcmp(s->value, "false") == 0;
	if (o->on_setting)
		o->on_setting(s, o);
}

/* Tools come last, because what they need depends on the mounts. */
static int apply_given(struct sandbox_options *o, cloche_err *err)
{
	const struct given *net = sandbox_options_given(o, "net"), *g = o->given;
	int r = 0;

	for (size_t i = 0; r == 0 && i < o->given_n; i++)
		if (strcmp(g[i].name, "tool") != 0)
			r = cloche_sandbox_set(o->sb, g[i].name, g[i].value, err);
	for (size_t i = 0; r == 0 && i < o->given_n; i++)
		if (strcmp(g[i].name, "tool") == 0)
			r = cloche_sandbox_set(o->sb, g[i].name, g[i].value, err);
	if (r == 0)
		check_record(o);
	if (r == 0 && net && strcmp(net->value, "none") == 0 && allows_hosts(o))
		say("warning: with --net none, --allow, --allowlist and --preset have no effect");
	if (r == 0 && !net && o->network_off && allows_hosts(o))
		say("warning: a configuration says network_sandbox: false, so --allow, "
		    "--allowlist and --preset have no effect; --net gateway gives a network all "
		    "the same");
	return r;
}

static int load_provider(struct sandbox_options *o, const char *name, cloche_err *err)
{
	int r = cloche_sandbox_set(o->sb, "provider", name, err);
	cloche_err plain = *err;

	if (r < 0)
		snprintf(err->message, sizeof(err->message), "CLOCHE_PROVIDER: %.1000s",
			plain.message);
	return r;
}

static struct image_progress pulling;

static bool on_pull(const char *step, uint64_t bytes, void *user)
{
	struct image_progress *p = user;

	if (p->began == 0) {
		p->began = now_usec();
		p->on_terminal = isatty(STDERR_FILENO);
		image_progress_catch();
		say("pulling the image");
	}
	return image_progress_step(p, step, bytes);
}

/* This comes first, as images may be pulled by all that follows. */
static int prepare_pull(struct sandbox_options *o, cloche_err *err)
{
	const struct given *pull = sandbox_options_given(o, "pull");

	cloche_sandbox_on_pull(o->sb, on_pull, &pulling);
	if (o->shows_only)
		return cloche_sandbox_settle(o->sb, "pull", err);
	return cloche_sandbox_set(o->sb, "pull", pull ? pull->value : "missing", err);
}

/* Before the root, which is an image of the place's own. */
static int prepare_place(struct sandbox_options *o, cloche_err *err)
{
	const struct given *place = sandbox_options_given(o, "place");

	return place ? cloche_sandbox_set(o->sb, "place", place->value, err) : 0;
}

/* CLOCHE_PLACE is for the provider that CLOCHE_PROVIDER names. */
static int load_place(struct sandbox_options *o, cloche_err *err)
{
	const char *place = sandbox_options_given(o, "place") ? NULL : getenv("CLOCHE_PLACE");

	return place && place[0] ? cloche_sandbox_set(o->sb, "place", place, err) : 0;
}

/* Apply the defaults from CLOCHE_PROVIDER and AgentGate's variables, except for options that were
 * given. */
static int load_environment(struct sandbox_options *o, cloche_err *err)
{
	const char *provider =
		sandbox_options_given(o, "provider") ? NULL : getenv("CLOCHE_PROVIDER");
	const char **given = calloc(o->given_n + 2, sizeof(*given));
	size_t n = 0;
	int r = 0;

	if (!given)
		return wrong_usage(err, NULL, "out of memory");
	for (; n < o->given_n; n++)
		given[n] = o->given[n].name;
	if (provider && provider[0]) {
		given[n] = "provider";
		r = load_provider(o, provider, err);
		r = r == 0 ? load_place(o, err) : r;
	}
	if (r == 0)
		r = cloche_sandbox_load_environment(o->sb, given, warn, NULL, err);
	free(given);
	return r;
}

static void warn_if_weaker(const cloche_srt_rule *rule, void *user)
{
	if (rule->weaker)
		say("warning: %s%s%s: %s", rule->key, rule->value[0] ? " " : "", rule->value,
			rule->here);
}

static int tell_weaker(const struct sandbox_options *o, cloche_err *err)
{
	const struct given *srt = sandbox_options_given(o, "srt-settings");

	return srt ? cloche_srt_explain(srt->value, warn_if_weaker, NULL, err) : 0;
}

static void workspace_tell(const char *text, void *user)
{
	say("%s", text);
}

/* Use the workspace that was named, or else the project in which the user is. */
static int workspace_choose(struct sandbox_options *o, cloche_err *err)
{
	const struct given *given = sandbox_options_given(o, "workspace");

	if (o->no_workspace && given)
		return wrong_usage(err, NULL,
			"--no-workspace and --workspace \"%s\": use one of them, not both",
			given->value);
	/* With these options the working directory is not mounted at /workspace. */
	if (o->no_workspace || sandbox_options_given(o, "srt-settings"))
		return 0;
	return cloche_sandbox_use_project(o->sb, !o->keeps_workdir, workspace_tell, NULL, err);
}

/* --- all of them --- */

static int sandbox_options_apply(struct sandbox_options *o, cloche_err *err)
{
	const struct given *offline = sandbox_options_given(o, "offline");
	int r = 0;

	debug_step(o, "the options were read");
	/* This comes first, because it decides whether secrets need values. */
	if (offline)
		r = cloche_sandbox_set(o->sb, "offline", offline->value, err);
	if (r == 0)
		r = prepare_pull(o, err);
	if (r == 0)
		r = prepare_place(o, err);
	cloche_sandbox_on_setting(o->sb, see_setting, o);
	o->setting_from = "environment";
	if (r == 0)
		r = load_environment(o, err);
	if (r == 0)
		r = load_config(o, err);
	o->setting_from = "command line";
	if (r == 0)
		r = apply_given(o, err);
	image_progress_clear(&pulling);
	if (pulling.began)
		image_progress_forget();
	if (r == 0)
		r = tell_weaker(o, err);
	o->setting_from = sandbox_options_given(o, "workspace") ? o->setting_from : "default";
	if (r == 0)
		r = workspace_choose(o, err);
	if (r == 0 && o->allow_unsandboxed)
		r = cloche_sandbox_allow_unsandboxed(o->sb, err);
	if (o->network_log_live)
		cloche_sandbox_set_network_log_fd(o->sb, STDERR_FILENO);
	if (r == 0)
		debug_step(o, "the workspace was chosen");
	return r;
}

static void say_tools(const struct sandbox_options *o)
{
	const char *note;

	for (size_t i = 0; (o->verbose || o->debug) && (note = cloche_sandbox_tool_note(o->sb, i));
		i++)
		say("%s", note);
}

int sandbox_options_finish(struct sandbox_options *o, char **argv, cloche_err *err)
{
	const char *program = NULL;
	int r;

	o->sb = cloche_sandbox_new();
	r = o->sb ? sandbox_options_apply(o, err) : wrong_usage(err, NULL, "out of memory");
	if (r == 0 && argv)
		r = cloche_sandbox_add_command(o->sb, argv[0], &program, err);
	if (r == 0 && program)
		argv[0] = (char *)(uintptr_t)program;
	if (r == 0)
		say_tools(o);
	if (r == 0 && argv)
		debug_step(o, "the command is %s", argv[0]);
	return r;
}
