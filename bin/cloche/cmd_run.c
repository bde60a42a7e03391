/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include "interrupt.h"
#include "json_out.h"
#include "terminal_filter.h"

#include <cloche/run.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void on_interrupt(void *user, int signal_number, unsigned count)
{
	cloche_run *run = user;

	if (signal_number == SIGINT && count == 1)
		cloche_run_signal(run, SIGINT);
	else
		cloche_run_stop(run);
}

static int output_errno; /* why output could not be written; 0 */
static struct terminal_filter filters[2];

static void on_output(bool is_stderr, const void *data, size_t length, void *user)
{
	/* Where the reader has gone away there is nobody left to work for. */
	if (terminal_filter_write(
		    &filters[is_stderr], is_stderr ? STDERR_FILENO : STDOUT_FILENO, data, length))
		return;
	output_errno = errno;
	cloche_run_stop(user);
}

static void on_warning(const char *text, void *user)
{
	say("warning: %s", text);
}

/* Endings that the exit code alone does not explain. */
static void explain(const cloche_run *run)
{
	if (cloche_run_start_failure(run)[0])
		say("%s", cloche_run_start_failure(run));
	if (cloche_run_timed_out(run))
		say("timed out: everything inside was ended");
	if (cloche_run_oom_killed(run))
		say("out of memory: the limit (--memory) was reached and the kernel killed a "
		    "process inside");
	if (cloche_run_pids_refused(run))
		say("out of processes: the limit (--pids) was reached and a fork inside failed");
	if (cloche_run_stdout_truncated(run) || cloche_run_stderr_truncated(run))
		say("output was cut at the limit (--output-limit)");
}

static void configure(cloche_run *run, const struct sandbox_options *o)
{
	bool tty = o->tty && isatty(STDIN_FILENO);

	terminal_filter_open(&filters[0], STDOUT_FILENO, tty);
	terminal_filter_open(&filters[1], STDERR_FILENO, tty);
	if (tty)
		cloche_run_set_tty(run, STDIN_FILENO);
	if (o->interactive || o->tty || !isatty(STDIN_FILENO))
		cloche_run_set_stdin_fd(run, STDIN_FILENO);
	if (!o->json)
		cloche_run_on_output(run, on_output, run);
	cloche_run_on_warning(run, on_warning, NULL);
	interrupt_catch(on_interrupt, run);
	signal(SIGPIPE, SIG_IGN);
}

static int run_command(struct sandbox_options *o, char **argv)
{
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_run *run = NULL;
	int r = cloche_run_new(o->sb, (const char *const *)argv, &run, &err);

	if (r < 0)
		return complain(&err);
	configure(run, o);
	r = cloche_run_execute(run, &err);
	(void)terminal_filter_close(&filters[0], STDOUT_FILENO);
	(void)terminal_filter_close(&filters[1], STDERR_FILENO);
	if (r < 0) {
		cloche_run_free(run);
		return complain(&err);
	}
	explain(run);
	sandbox_options_check_workspace(o);
	r = cloche_run_exit_code(run);
	if (o->json && print_run_json(run) < 0)
		r = EXIT_CLOCHE;
	/* A reader who has heard enough is no failure, as in a pipeline of a shell. */
	if (output_errno && output_errno != EPIPE) {
		say("cannot write the output: %s", strerror(output_errno));
		r = EXIT_CLOCHE;
	}
	if (o->verbose)
		say("sandbox %s (%s) ended after %llu ms", cloche_run_id(run),
			cloche_run_provider(run), (unsigned long long)cloche_run_duration_ms(run));
	cloche_run_free(run);
	return r;
}

static int main_run(int argc, char **argv)
{
	struct sandbox_options o;
	struct operands operands = {0};
	cloche_err err = CLOCHE_ERR_INIT;
	int r = sandbox_options_init(&o, &err);

	if (r == 0)
		r = options_read(&command_run, &o, argc, argv, &operands, &err);
	if (r == 0 && !operands.help && operands.n == 0) {
		snprintf(err.message, sizeof(err.message), "run: no command was given");
		snprintf(err.hint, sizeof(err.hint), "for example: cloche run -- ls -l");
		err.code = CLOCHE_E_USAGE;
		r = -err.code;
	}
	if (r == 0 && !operands.help)
		r = sandbox_options_finish(&o, &err);
	if (r < 0)
		r = complain(&err);
	else if (!operands.help)
		r = run_command(&o, operands.v);
	sandbox_options_done(&o);
	return r;
}

const struct command command_run = {
	.name = "run",
	.summary = "run a command in a sandbox of its own",
	.synopsis = "[OPTIONS] [--] COMMAND [ARG...]",
	.text = "Runs COMMAND so that it sees the host's programs, the current directory at\n"
		"/workspace, and nothing else: no home, no credentials, no network unless "
		"allowed.\n"
		"\n"
		"  cloche run -- make test\n"
		"  cloche run --allow registry.npmjs.org -- npm ci\n"
		"  cloche run --secret GITHUB_TOKEN@api.github.com --allow api.github.com -- \\\n"
		"      sh -c 'curl -H \"Authorization: Bearer $GITHUB_TOKEN\" "
		"https://api.github.com/user'\n"
		"\n"
		"The exit status is the command's own; 124 after a timeout, 125 when cloche "
		"itself\n"
		"failed, 126 or 127 when COMMAND could not be run or found, 128+N after signal N.",
	.tables = {&sandbox_option_table},
	.command_line = true,
	.run = main_run,
};
