/* SPDX-License-Identifier: Apache-2.0 */
/* `cloche AGENT [ARGS...]`: an agent at this terminal. All words behind its name are the agent's;
 * options of cloche stand in front of it. */
#include "cli.h"

#include <cloche/agent.h>
#include <stdio.h>
#include <string.h>

struct word_options {
	struct sandbox_options sandbox; /* must be first: the shared option table sets it */
	bool fresh;
};

static void word_run_freep(cloche_run **run)
{
	cloche_run_free(*run);
}

static void word_tell(const char *text, void *user)
{
	say("%s", text);
}

static int main_word(void *ctx, const struct operands *operands, cloche_err *err)
{
	struct word_options *o = ctx;
	_cleanup_(word_run_freep) cloche_run *run = NULL;
	char **arguments = operands->v + 1;
	int r;

	if (operands->n == 0 || !cloche_agent_exists(operands->v[0]))
		return wrong_usage(err, "for example: cloche --fresh claude",
			"which agent? Its name comes behind the options");
	/* No agent has this option. */
	if (arguments[0] && strcmp(arguments[0], "--fresh") == 0) {
		o->fresh = true;
		arguments++;
	}
	r = sandbox_options_finish(&o->sandbox, NULL, err);
	if (r == 0)
		r = cloche_agent_run_new(o->sandbox.sb, operands->v[0],
			(const char *const *)arguments, o->fresh, word_tell, NULL, &run, err);
	return r < 0 ? r : run_run_attached(&o->sandbox, run);
}

static const struct option options[] = {
	{"fresh", 0, NULL, "forget its home: a login, its history, its settings",
		.at = offsetof(struct word_options, fresh)},
	{0},
};

const struct command command_word = {
	.name = "AGENT",
	.summary = "start an agent: claude, codex, gemini, opencode, qwen, aider",
	.synopsis = "[ARGS...]\n       cloche [OPTIONS] AGENT [ARGS...]",
	.text = "Starts an agent in the project in which you are, in a room of its own: with its\n"
		"hosts, with your key (of the usual variable, such as ANTHROPIC_API_KEY), which\n"
		"stays outside, and with a home of its own for this project, which is kept. It\n"
		"asks nobody for permission, and its own sandbox is off: the room is its sandbox.\n"
		"All words behind its name are the agent's.\n"
		"\n"
		"  cloche claude\n"
		"  cloche claude -p 'make the failing test pass'\n"
		"  cloche --allow registry.npmjs.org codex\n"
		"  cloche --fresh gemini           as if it were the first time\n"
		"\n"
		"AGENT is the name of a driver, yours among them: man cloche-driver.",
	.tables = {&(const struct option_table){"Options of the agent", options},
		&sandbox_option_table, &sandbox_command_table, &lasting_option_table},
	.command_line = true,
	.ctx = &(struct word_options){{0}},
	.run = main_word,
	.done = sandbox_options_done,
};
