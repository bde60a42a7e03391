/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include "events.h"
#include "foreground.h"
#include "json_out.h"
#include "planted.h"
#include "refusals.h"

#include <cloche/instance.h>
#include <cloche/run.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int run_run_detached(struct sandbox_options *o, cloche_run *run, cloche_err *err)
{
	const struct foreground f = {
		.tty = o->tty, .interactive = o->interactive, .no_output = o->json};

	cloche_run_on_warning(run, warn, NULL);
	return foreground_detach(run, &f, err);
}

/* The sandbox of a command that has ended, and what remains to be said of it. */
static int run_end_left(const struct sandbox_options *o, cloche_instance *i, cloche_err *err)
{
	const char *id = cloche_instance_id(i);
	int r = cloche_instance_stop(i, 0, err); /* it is ending: files come back, a record ends */

	if (r < 0)
		return r;
	if (!o->quiet)
		refusals_say(refusals_open(id, false), id, false);
	json_decref(planted_say(id));
	return cloche_instance_remove(i, false, err);
}

/* Start the command in a sandbox that does not need us, and join it. */
static int run_run_leavable(struct sandbox_options *o, cloche_run *run, cloche_err *err)
{
	const struct foreground f = {.tty = foreground_has_tty(o->tty && isatty(STDIN_FILENO),
					     o->no_tty || o->interactive || o->json || o->events),
		.interactive = true,
		.joined = true,
		.again = "cloche attach"};
	const cloche_result *end = cloche_run_result(run);
	_cleanup_(instance_freep) cloche_instance *i = NULL;
	_cleanup_(run_freep) cloche_run *joined = NULL;
	cloche_run_options set = CLOCHE_RUN_OPTIONS_INIT;
	bool ran = false;
	int r, status = 0;

	if (!f.tty)
		return wrong_usage(err,
			"\"cloche run --detach\" starts a command without a terminal",
			"run: --detach-keys are typed on a terminal, and the command has none");
	cloche_run_on_warning(run, warn, NULL);
	r = foreground_start(run, &f, err);
	if (r)
		return r;
	r = cloche_instance_open(end->id, &i, err);
	if (r == 0)
		r = cloche_run_new_joining(i, end->number, &joined, err);
	set.detach_keys = o->detach_keys;
	if (r == 0)
		r = cloche_run_set_options(joined, &set, err);
	if (r == 0)
		status = foreground_run(joined, &f, &ran);
	if (ran)
		r = run_end_left(o, i, err);
	return r < 0 ? r : status;
}

int run_run_attached(struct sandbox_options *o, cloche_run *run)
{
	const bool asks = sandbox_options_given(o, "ask");
	const struct foreground f = {
		.tty = foreground_has_tty(o->tty && isatty(STDIN_FILENO),
			o->no_tty || o->interactive || o->json || o->events || asks),
		.interactive = o->interactive || o->tty,
		.events = o->events,
		.ask = asks,
		.no_output = o->json};
	const cloche_result *end = cloche_run_result(run);
	json_t *planted;
	bool ran;
	int r;

	debug_step(o, "the sandbox is started%s", f.tty ? ", with this terminal" : "");
	r = foreground_run(run, &f, &ran);
	if (!ran)
		return r;
	debug_step(o, "sandbox %s (%s) has ended: exit status %d, %llu ms", end->id, end->provider,
		r, (unsigned long long)end->duration_ms);
	if (!o->quiet)
		refusals_say(refusals_open(end->id, false), end->id, false);
	planted = planted_say(end->id);
	if (o->json)
		r = status_of_output(json_print_run(run, planted), r);
	if (o->events)
		r = status_of_output(events_result(json_run_result(run, planted)), r);
	json_decref(planted);
	if (end->is_recorded && !o->json && !o->events)
		say("recorded: cloche log %s", end->id);
	if (o->verbose)
		say("sandbox %s (%s) ended after %llu ms", end->id, end->provider,
			(unsigned long long)end->duration_ms);
	return r;
}

/* For "run RUNTIME FILE": if there is no program of that name, run sh or python3 instead. */
static void name_program(const struct operands *operands)
{
	static char shell[] = "sh", python[] = "python3";
	static const struct {
		const char *runtime;
		char *program;
	} runtimes[] = {{"shell", shell}, {"python", python}};

	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
		if (operands->n > 1 && strcmp(operands->v[0], runtimes[i].runtime) == 0 &&
			!program_is_here(runtimes[i].runtime))
			operands->v[0] = runtimes[i].program;
}

/* The answers are typed on this terminal, so the command cannot have it. */
static int run_check_ask(const struct sandbox_options *o, cloche_err *err)
{
	int tty;

	if (o->tty || (o->interactive && isatty(STDIN_FILENO)))
		return wrong_usage(err, "\"cloche net watch\" asks in another terminal",
			"run: --ask needs the keys that %s passes on",
			o->tty ? "--tty" : "--interactive");
	tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	if (tty < 0)
		return wrong_usage(err,
			"cloche create --ask waits for \"cloche net watch\", wherever that is",
			"run: there is no terminal to ask on");
	close(tty);
	return 0;
}

/* The command goes on without us, and so do its log and what it may not reach. */
static int run_check_keys(const struct sandbox_options *o, cloche_err *err)
{
	const char *with = o->detach                         ? "--detach"
			   : o->json                         ? "--json"
			   : o->network_log_live             ? "--network-log-live"
			   : sandbox_options_given(o, "ask") ? "--ask"
							     : NULL;

	if (!o->detach_keys[0] || !with)
		return 0;
	return wrong_usage(err, "\"cloche attach\" has such keys, too: start with --detach",
		"run: --detach-keys cannot be combined with %s", with);
}

static int run_check(const struct sandbox_options *o, cloche_err *err)
{
	int r = run_check_keys(o, err);

	if (r < 0)
		return r;
	if (!o->detach && sandbox_options_given(o, "ttl"))
		return wrong_usage(err, "use --timeout, or --detach",
			"run: --ttl is for a sandbox that stays");
	if (o->events && (o->json || o->detach || o->tty))
		return wrong_usage(err, "its last line is the result",
			"run: --events cannot be combined with %s",
			o->json     ? "--json"
			: o->detach ? "--detach"
				    : "--tty");
	if (!o->detach && sandbox_options_given(o, "ask"))
		return run_check_ask(o, err);
	if (o->detach && o->network_log_live)
		return wrong_usage(err, "with --detach use --network-log FILE",
			"run: --network-log-live needs somebody to watch it");
	return 0;
}

static int main_run(void *ctx, const struct operands *operands, cloche_err *err)
{
	struct sandbox_options *o = ctx;
	_cleanup_(run_freep) cloche_run *run = NULL;
	int r = run_check(o, err);

	if (!sandbox_options_given(o, "root"))
		name_program(operands);
	if (r == 0)
		r = sandbox_options_finish(o, operands->n ? operands->v : NULL, err);
	/* An image may have a command of its own. */
	if (r == 0 && operands->n == 0 && !o->has_image)
		r = wrong_usage(
			err, "for example: cloche run -- ls -l", "run: no command was given");
	if (r == 0)
		r = cloche_run_new(o->sb, (const char *const *)operands->v, &run, err);
	if (r < 0)
		return r;
	if (o->detach_keys[0])
		return run_run_leavable(o, run, err);
	return o->detach ? run_run_detached(o, run, err) : run_run_attached(o, run);
}

static const struct option options[] = {
	{"detach", 0, NULL,
		"return at once and print the id; the output goes to a log, which stays until\n"
		"\"cloche rm\"",
		.at = offsetof(struct sandbox_options, detach)},
	{"detach-keys", 0, "KEYS",
		"two keys that leave the command running, for example ctrl-p,ctrl-q;\n"
		"\"cloche attach\" comes back",
		set_detach_keys, .at = offsetof(struct sandbox_options, detach_keys)},
	{"events", 0, NULL, "print output, refusals and the result as JSON Lines, as they come",
		.at = offsetof(struct sandbox_options, events)},
	{0},
};

const struct command command_run = {
	.name = "run",
	.summary = "run a command in a sandbox of its own",
	.synopsis = "[OPTIONS] [--] COMMAND [ARG...]",
	.text = "Runs COMMAND so that it sees the host's programs, the project in which you\n"
		"are (its git repository, or this directory), and nothing else: no home, no\n"
		"credentials, no network unless allowed.\n"
		"\n"
		"  cloche run -- make test\n"
		"  cloche run --allow registry.npmjs.org -- npm ci\n"
		"  cloche run --secret GITHUB_TOKEN@api.github.com --allow api.github.com -- \\\n"
		"      sh -c 'curl -H \"Authorization: Bearer $GITHUB_TOKEN\" \\\n"
		"      https://api.github.com/user'\n"
		"\n"
		"The exit status is the command's own; 124 after a timeout, 125 if cloche itself\n"
		"failed, 126 or 127 if COMMAND could not be run or found, 128+N after signal N.",
	.tables = {&sandbox_option_table, &sandbox_command_table,
		&(const struct option_table){"Of a run", options}, &lasting_option_table},
	.command_line = true,
	.ctx = &(struct sandbox_options){0},
	.run = main_run,
	.done = sandbox_options_done,
};
