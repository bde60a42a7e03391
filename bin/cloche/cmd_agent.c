/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include "interrupt.h"
#include "json_out.h"
#include "planted.h"
#include "refusals.h"

#include <cloche/task.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PROMPT_MAX = 64 << 20 };

struct agent_options {
	struct sandbox_options sandbox; /* must be first: the shared option table sets it */
	const char *driver, *model, *resume, *context, *context_id, *binary, *effort,
		*system_prompt;
	char max_turns[16];
	bool events;
};

static int set_max_turns(const struct option *option, void *at, const char *value, cloche_err *err)
{
	char *max_turns = at, *end;
	unsigned long n = strtoul(value, &end, 10);

	if (value[0] < '0' || value[0] > '9' || *end || n == 0 || n > 1000000)
		return wrong_usage(
			err, NULL, "--max-turns \"%s\": use a number from 1 to 1000000", value);
	snprintf(max_turns, sizeof(((struct agent_options *)NULL)->max_turns), "%lu", n);
	return 0;
}

#define HEADLESS "the agent has no terminal, and the prompt is its input"
static const struct option agent_options[] = {
	{"driver", 0, "NAME",
		"claude-code (default; API key), claude-subscription, or one of yours",
		.at = offsetof(struct agent_options, driver)},
	{"model", 0, "MODEL", "the agent's model", .at = offsetof(struct agent_options, model)},
	{"resume", 0, "ID|last", "continue a session; last: the latest one of the context",
		.at = offsetof(struct agent_options, resume)},
	{"context", 0, "DIR",
		"the execution context: sessions, events, network log\n"
		"(default: a new one under the state directory)",
		.at = offsetof(struct agent_options, context)},
	{"context-id", 0, "ID", "the name of a new context",
		.at = offsetof(struct agent_options, context_id)},
	{"agent-binary", 0, "PATH", "the agent's program (default: found on this machine)",
		.at = offsetof(struct agent_options, binary)},
	{"effort", 0, "LEVEL", "how hard the agent should think",
		.at = offsetof(struct agent_options, effort)},
	{"max-turns", 0, "N", "end after N turns", set_max_turns,
		.at = offsetof(struct agent_options, max_turns)},
	{"system-prompt", 0, "TEXT", "replace the agent's system prompt",
		.at = offsetof(struct agent_options, system_prompt)},
	{"events", 0, NULL, "stream the agent's events as JSON Lines on standard output",
		.at = offsetof(struct agent_options, events)},
	{"tty", 't', .instead = HEADLESS},
	{"no-tty", 'T', .instead = HEADLESS},
	{"interactive", 'i', .instead = HEADLESS},
	{0},
};

/* Use the operands, joined by spaces. */
static int prompt_join(const struct operands *operands, char **ret, size_t *ret_n)
{
	size_t n = 0;

	for (int i = 0; i < operands->n; i++)
		n += strlen(operands->v[i]) + 1;
	*ret = malloc(n);
	if (!*ret)
		return ENOMEM;
	*ret_n = n - 1;
	for (int i = 0, at = 0; i < operands->n; i++)
		at += snprintf(*ret + at, n - (size_t)at, "%s%s", i > 0 ? " " : "", operands->v[i]);
	return 0;
}

static bool is_blank(const char *text, size_t n)
{
	while (n > 0 && (text[n - 1] == ' ' || (text[n - 1] >= '\t' && text[n - 1] <= '\r')))
		n--;
	return n == 0;
}

/* Get the prompt from the operands or standard input. The caller frees *ret, also on failure. */
static int read_prompt(const struct operands *operands, char **ret, size_t *ret_n, cloche_err *err)
{
	bool from_stdin = operands->n == 0 ? !isatty(STDIN_FILENO)
					   : operands->n == 1 && strcmp(operands->v[0], "-") == 0;
	int failure;

	if (operands->n == 0 && !from_stdin)
		return wrong_usage(err, NULL,
			"agent: no prompt: give it as an argument or on standard input (-)");
	failure = from_stdin ? read_whole(STDIN_FILENO, PROMPT_MAX, ret, ret_n)
			     : prompt_join(operands, ret, ret_n);
	if (failure)
		return wrong_usage(
			err, NULL, "agent: the prompt cannot be read: %s", strerror(failure));
	if (*ret_n > PROMPT_MAX)
		return wrong_usage(err, NULL, "agent: the prompt is too large");
	return is_blank(*ret, *ret_n) ? wrong_usage(err, NULL, "agent: the prompt is empty") : 0;
}

/* Choose a new context below the state directory. */
static int default_context(char *ret, size_t size, cloche_err *err)
{
	const char *state = getenv("CLOCHE_STATE_DIR"), *xdg = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME"), *base = home, *below = "/.local/state/cloche";
	char stamp[32];
	time_t now = time(NULL);
	struct tm tm;
	int n;

	if (state && *state && *state != '/')
		return wrong_usage(
			err, NULL, "CLOCHE_STATE_DIR is \"%s\": use an absolute path", state);
	if (state && *state) {
		base = state;
		below = "";
	} else if (xdg && *xdg == '/') {
		base = xdg;
		below = "/cloche";
	} else if (!home || !*home) {
		return wrong_usage(
			err, NULL, "agent: HOME is not set: name a directory with --context");
	}
	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", gmtime_r(&now, &tm));
	n = snprintf(ret, size, "%s%s/contexts/%s-%d", base, below, stamp, (int)getpid());
	return n > 0 && (size_t)n < size
		       ? 0
		       : wrong_usage(err, NULL, "agent: the state directory's path is too long");
}

static void agent_on_interrupt(void *user, int signal_number, unsigned count)
{
	cloche_task_stop(user);
}

static void agent_on_event(cloche_event *event, void *user)
{
	const char *json = cloche_event_json(event);

	if (!json || !json_print_text(json))
		cloche_task_stop(user);
}

static void on_progress(const char *text, void *user)
{
	(void)put(STDERR_FILENO, text, strlen(text));
	(void)put(STDERR_FILENO, "\n", 1);
}

static int agent_configure(const struct agent_options *o, cloche_task *task, cloche_err *err)
{
	const struct {
		const char *name, *value;
	} set[] = {{"model", o->model}, {"effort", o->effort}, {"system-prompt", o->system_prompt},
		{"agent-binary", o->binary}, {"resume", o->resume},
		{"max-turns", o->max_turns[0] ? o->max_turns : NULL}};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(set) / sizeof(set[0]); i++)
		r = cloche_task_set(task, set[i].name, set[i].value, err);
	if (o->events)
		cloche_task_on_event(task, agent_on_event, task);
	if (!o->sandbox.json || o->sandbox.verbose)
		cloche_task_on_progress(task, on_progress, NULL);
	cloche_task_on_warning(task, warn, NULL);
	interrupt_catch(agent_on_interrupt, task);
	signal(SIGPIPE, SIG_IGN);
	return r;
}

static void say_lines(const char *text)
{
	for (size_t n; text && *text; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		say("%.*s", (int)n, text);
	}
}

static void agent_summarise(const cloche_task *task)
{
	const cloche_task_result *end = cloche_task_result_of(task);
	const cloche_result *run = end->run;

	say("outcome %s%s%s, %llu turns, $%.4f, %.1f s; network: %llu allowed, %llu blocked",
		end->outcome_name, end->detail ? ": " : "", end->detail ? end->detail : "",
		(unsigned long long)end->turns, end->cost_usd, (double)end->duration_ms / 1000,
		(unsigned long long)run->network_allowed, (unsigned long long)run->network_blocked);
	say("context %s%s%s", cloche_task_paths_of(task)->context_dir,
		end->session_id ? ", session " : "", end->session_id ? end->session_id : "");
	if (run->is_recorded)
		say("recorded: cloche log %s", run->id);
	if (run->start_failure[0])
		say("%s", run->start_failure);
	say_lines(end->error_summary);
}

static void agent_say_refusals(const struct agent_options *o, const cloche_task *task)
{
	const char *id = cloche_task_result_of(task)->run->id;

	if (!o->sandbox.quiet)
		refusals_say(refusals_open(id, false), id, false);
}

/* End the lines of events with one that has the result. Return false if it could not be written. */
static bool print_last_line(const char *json)
{
	json_t *document = json_loads(json, JSON_ALLOW_NUL, NULL);

	return json_print_line(document);
}

/* Return false if it could not be written. */
static bool print_result(const struct agent_options *o, const cloche_task *task)
{
	const cloche_task_result *end = cloche_task_result_of(task);
	const char *json = end->json, *text = end->response;

	if (o->sandbox.json && json && o->events)
		return print_last_line(json);
	if (o->sandbox.json && json)
		return json_print_text(json);
	if (o->events)
		return true;
	if (!text)
		return true;
	return put_shown(STDOUT_FILENO, text) &&
	       ((*text && text[strlen(text) - 1] == '\n') || put(STDOUT_FILENO, "\n", 1));
}

static int run_agent(struct agent_options *o, const char *prompt, size_t prompt_n, cloche_err *err)
{
	char dir[PATH_MAX];
	cloche_task *task = NULL;
	int r = 0;

	if (!o->context)
		r = default_context(dir, sizeof(dir), err);
	if (r == 0)
		r = cloche_task_new(o->sandbox.sb, o->driver, o->context ? o->context : dir,
			o->context_id, &task, err);
	if (r == 0)
		r = agent_configure(o, task, err);
	if (r == 0)
		r = cloche_task_execute(task, prompt, prompt_n, err);
	if (r == 0) {
		r = status_of_output(print_result(o, task), 0);
		agent_summarise(task);
		agent_say_refusals(o, task);
		json_decref(planted_say(cloche_task_result_of(task)->run->id));
		r = r ? r : cloche_task_result_of(task)->exit_status;
	}
	interrupt_forget();
	cloche_task_free(task);
	return r;
}

static int main_agent(void *ctx, const struct operands *operands, cloche_err *err)
{
	struct agent_options *o = ctx;
	char *prompt = NULL;
	size_t prompt_n = 0;
	int r;

	if (o->resume && !o->context)
		return wrong_usage(err, NULL,
			"agent: --resume needs the context of the session: --context DIR");
	/* The state of an agent has the directory's name in it, and may go on elsewhere. */
	o->sandbox.keeps_workdir = true;
	r = sandbox_options_finish(&o->sandbox, NULL, err);
	if (r == 0)
		r = read_prompt(operands, &prompt, &prompt_n, err);
	if (r == 0)
		r = run_agent(o, prompt, prompt_n, err);
	free(prompt);
	return r;
}

const struct command command_agent = {
	.name = "agent",
	.summary = "run a coding agent with a prompt, headless, in a sandbox",
	.synopsis = "[OPTIONS] [PROMPT | -]",
	.text = "Runs an agent (Claude Code) on PROMPT, or on standard input, with the project\n"
		"in which you are as its workspace, at /workspace. It reaches its own API and\n"
		"what you allow; its key stays outside. Progress goes to standard error, the\n"
		"answer to standard output.\n"
		"\n"
		"  export ANTHROPIC_API_KEY=...\n"
		"  cloche agent 'make the failing test pass'\n"
		"  cloche agent --context ./ctx --resume last 'now document it'\n"
		"\n"
		"The exit status is 0 only for success; 124 after a timeout (default 5m), 3 if\n"
		"the prompt was too long, 4 if the session is corrupted, 1 for other failures of\n"
		"the agent, 125 if cloche itself failed.",
	.tables = {&(const struct option_table){"Options of the agent", agent_options},
		&sandbox_option_table, &lasting_option_table, &sandbox_command_table},
	.ctx = &(struct agent_options){{0}},
	.run = main_agent,
	.done = sandbox_options_done,
};
