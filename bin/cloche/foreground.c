/* SPDX-License-Identifier: Apache-2.0 */
#include "foreground.h"
#include "cli.h"
#include "events.h"
#include "interrupt.h"
#include "json_out.h"
#include "net_watch.h"
#include "terminal_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct foreground *how;
static int output_errno; /* why output could not be written; 0: no failure */
static struct terminal_filter filters[2];
static pid_t asks; /* who asks on our terminal */

enum { KEYS_PATIENCE = 3 };

/* Whether the command keeps running without us. Without a command to come back with, it must
 * end. */
static bool foreground_leaves(void)
{
	return how->stays && how->again;
}

/* Called in signal context. The first Ctrl-C goes to the command; the next ones end it, or leave it
 * if it has survived even the kill. On TERM and HUP, which are meant for us, leave the command if
 * that is possible, or else end it. */
static void foreground_on_interrupt(void *user, int signal_number, unsigned count)
{
	cloche_run *run = user;
	bool key = signal_number == SIGINT || signal_number == SIGQUIT;

	if (foreground_leaves() && (!key || count > KEYS_PATIENCE))
		cloche_run_leave(run);
	else if ((key && how->joined) || (signal_number == SIGINT && count == 1))
		cloche_run_signal(run, signal_number);
	else
		cloche_run_stop(run);
}

static void foreground_on_output(bool is_stderr, const void *data, size_t length, void *user)
{
	if (output_errno)
		return;
	if (how->events ? events_output(is_stderr, data, length)
			: terminal_filter_write(&filters[is_stderr],
				  is_stderr ? STDERR_FILENO : STDOUT_FILENO, data, length))
		return;
	/* If the reader of a pipe is gone, the output is not needed any more, so end our command.
	 * If a terminal is gone, leave the command running if that is possible. */
	output_errno = errno;
	if (how->joined || (foreground_leaves() && errno != EPIPE))
		cloche_run_leave(user);
	else
		cloche_run_stop(user);
}

/* The default is a terminal, because users forget -t. A job in the background must not touch
 * ours. */
bool foreground_has_tty(bool asked, bool refused)
{
	if (asked || refused)
		return asked;
	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && isatty(STDERR_FILENO) &&
	       tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* A terminal that has gone is no input that is lost. */
static bool foreground_lost_input(const cloche_result *end)
{
	struct stat st;

	return end->input_errno && !(fstat(STDIN_FILENO, &st) == 0 && S_ISCHR(st.st_mode));
}

/* Explain endings that the exit code alone does not. */
static void foreground_explain(const cloche_result *end)
{
	if (end->start_failure[0])
		say("%s", end->start_failure);
	if (end->timed_out && !how->no_timeout)
		say("timed out: %s was ended", how->stays ? "the command" : "everything inside");
	if (end->oom_killed)
		say("out of memory: the limit (--memory) was reached and the kernel killed a "
		    "process inside");
	if (end->pids_refused)
		say("out of processes: the limit (--pids) was reached and a fork inside failed");
	if (foreground_lost_input(end))
		say("standard input could not be read to its end: %s", strerror(end->input_errno));
	if (end->stdout_truncated || end->stderr_truncated)
		say(how->stays ? "output was cut at 16 MiB; without --json all of it is printed"
			       : "output was cut at the limit (--output-limit)");
}

/* A descriptor of /dev/null takes the place of one that was closed: see main.c. */
static bool foreground_was_closed(int fd)
{
	return (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY;
}

static int foreground_set_input(cloche_run_options *set, cloche_err *err)
{
	struct stat st;

	if (how->no_input || foreground_was_closed(STDIN_FILENO))
		return 0;
	if (!how->interactive && !how->tty && isatty(STDIN_FILENO))
		return 0;
	if (fstat(STDIN_FILENO, &st) == 0 && S_ISDIR(st.st_mode))
		return wrong_usage(err, NULL, "standard input is a directory: it cannot be read");
	set->stdin_fd = STDIN_FILENO;
	return 0;
}

static int foreground_configure(cloche_run *run, cloche_err *err)
{
	cloche_run_options set = CLOCHE_RUN_OPTIONS_INIT;
	int r;

	terminal_filter_open(&filters[0], STDOUT_FILENO, how->tty);
	terminal_filter_open(&filters[1], STDERR_FILENO, how->tty);
	if (how->tty)
		set.tty_fd = STDIN_FILENO;
	if (!how->no_output)
		cloche_run_on_output(run, foreground_on_output, run);
	cloche_run_on_warning(run, warn, NULL);
	interrupt_catch(foreground_on_interrupt, run);
	signal(SIGPIPE, SIG_IGN);
	r = foreground_set_input(&set, err);
	return r < 0 ? r : cloche_run_set_options(run, &set, err);
}

static int foreground_left(const cloche_result *end)
{
	int signal_number = interrupt_signal();

	if (how->again && end->number == 0)
		say("left before the command had begun; it may still begin; to look: cloche "
		    "inspect %s",
			end->id);
	else if (how->again)
		say("left command %u running; to come back: %s %s --exec %u", end->number,
			how->again, end->id, end->number);
	if (output_errno)
		return EXIT_CLOCHE;
	return signal_number == SIGTERM || signal_number == SIGHUP ? 128 + signal_number : 0;
}

/* Have somebody ask on our terminal. */
static void foreground_on_start(const char *id, void *user)
{
	cloche_err err = CLOCHE_ERR_INIT;

	asks = net_watch_start(id, &err);
	if (asks < 0) {
		complain(&err);
		cloche_run_stop(user);
	}
}

static void foreground_ask_no_more(void)
{
	if (asks <= 0)
		return;
	kill(asks, SIGTERM);
	while (waitpid(asks, NULL, 0) < 0 && errno == EINTR)
		;
}

int foreground_run(cloche_run *run, const struct foreground *f, bool *ret_ran)
{
	const cloche_result *end = cloche_run_result(run);
	cloche_err err = CLOCHE_ERR_INIT;
	int r;

	how = f;
	if (ret_ran)
		*ret_ran = false;
	r = foreground_configure(run, &err);
	if (f->events)
		cloche_run_on_network(run, events_network, run);
	if (f->ask)
		cloche_run_on_start(run, foreground_on_start, run);
	if (r == 0)
		r = cloche_run_execute(run, &err);
	foreground_ask_no_more();
	(void)terminal_filter_close(&filters[0], STDOUT_FILENO);
	(void)terminal_filter_close(&filters[1], STDERR_FILENO);
	if (r < 0)
		return complain(&err);
	if (end->left)
		return foreground_left(end);
	foreground_explain(end);
	if (ret_ran)
		*ret_ran = true;
	if (foreground_lost_input(end) && end->exit_code == 0)
		return EXIT_CLOCHE;
	/* As in a shell pipeline, it is not a failure if the reader stops reading. */
	return output_errno && output_errno != EPIPE ? EXIT_CLOCHE : end->exit_code;
}

int foreground_set_env(cloche_run *run, const char *text, cloche_err *err)
{
	char *name = strdup(text), *equals = name ? strchr(name, '=') : NULL;
	const char *value = equals ? equals + 1 : getenv(text);
	int r;

	if (!name)
		return wrong_usage(err, NULL, "out of memory");
	if (equals)
		*equals = '\0';
	r = value ? cloche_run_set_env(run, name, value, err) : 0;
	free(name);
	return r;
}

int foreground_start(cloche_run *run, const struct foreground *f, cloche_err *err)
{
	const cloche_result *end = cloche_run_result(run);
	cloche_run_options set = CLOCHE_RUN_OPTIONS_INIT;
	int r;

	set.detached = true;
	set.keep_input = f->interactive;
	if (f->tty)
		set.tty_fd = STDIN_FILENO;
	r = cloche_run_set_options(run, &set, err);
	if (r == 0)
		r = cloche_run_execute(run, err);
	if (r < 0 || !end->start_failure[0])
		return r;
	say("%s", end->start_failure);
	return end->exit_code;
}

int foreground_detach(cloche_run *run, const struct foreground *f, cloche_err *err)
{
	char number[16];
	const char *id;
	const cloche_result *end = cloche_run_result(run);
	bool ok;
	int r = foreground_start(run, f, err);

	if (r)
		return r;
	id = end->id;
	snprintf(number, sizeof(number), "%u", end->number);
	if (f->no_output)
		ok = json_print(
			json_pack("{s:s, s:I}", "id", id, "number", (json_int_t)end->number));
	else
		ok = put_line(f->stays ? number : id);
	if (!ok && f->stays)
		say("started command %s in %s", number, id);
	else if (!ok)
		say("made sandbox %s", id);
	return ok ? 0 : EXIT_CLOCHE;
}

/* Parse "ctrl-x" or a single character. Return 0 if it is neither. */
static char read_key(const char *text, size_t n)
{
	if (n == 1 && *text > ' ' && *text <= '~')
		return *text;
	if (n == 6 && strncmp(text, "ctrl-", 5) == 0 && strchr("@[]\\^_", text[5]))
		return (char)(text[5] & 0x1f);
	if (n == 6 && strncmp(text, "ctrl-", 5) == 0 && text[5] >= 'a' && text[5] <= 'z')
		return (char)(text[5] & 0x1f);
	return 0;
}

int set_detach_keys(const struct option *o, void *at, const char *text, cloche_err *err)
{
	char *ret = at;
	const char *comma = strchr(text, ',');

	memset(ret, 0, 3);
	if (strcmp(text, "none") == 0)
		return 0;
	if (comma) {
		ret[0] = read_key(text, (size_t)(comma - text));
		ret[1] = read_key(comma + 1, strlen(comma + 1));
	}
	if (ret[0] && ret[1])
		return 0;
	return wrong_usage(err, "for example: --detach-keys ctrl-a,d",
		"--detach-keys: \"%s\" does not name two keys", text);
}
