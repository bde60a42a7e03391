/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: questions wait in the order in which they came, and a person sees one at a
 * time. Whatever the room has written is shown without control characters. */
#include "net_watch.h"
#include "cli.h"
#include "json_out.h"
#include "refusals.h"

#include <cloche/instance.h>
#include <cloche/watch.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

enum {
	NET_WATCH_LINE = 256,
	NET_WATCH_SHOWN = 400,
	NET_WATCH_TURNS = 1000,
	NET_WATCH_TURN_MS = 20
};

struct net_question {
	struct net_question *next;
	uint32_t number;
	char *text, *always;
};

struct net_watch {
	cloche_watch *watch;
	bool json, over, ended; /* ended: the sandbox has */
	bool shown;             /* the first one is on the terminal */
	struct net_question *first, **last;
	char line[NET_WATCH_LINE];
	size_t line_n;
};

static void net_watch_forget(struct net_watch *w, uint32_t number)
{
	for (struct net_question **at = &w->first; *at; at = &(*at)->next) {
		struct net_question *q = *at;

		if (q->number != number)
			continue;
		w->shown = w->shown && q != w->first;
		*at = q->next;
		if (!*at)
			w->last = at;
		free(q->text);
		free(q->always);
		free(q);
		return;
	}
}

/* --- telling --- */

static bool net_watch_print(const cloche_question *q)
{
	if (q->withdrawn)
		return json_print_dense(
			json_pack("{s:I, s:b}", "number", (json_int_t)q->number, "withdrawn", 1));
	return json_print_dense(json_pack("{s:I, s:o, s:o, s:o, s:I, s:o}", "number",
		(json_int_t)q->number, "method", json_bytes(q->method, strlen(q->method)), "url",
		json_bytes(q->url, strlen(q->url)), "program",
		json_bytes(q->program, strlen(q->program)), "pid", (json_int_t)q->pid, "always",
		json_bytes(q->always, strlen(q->always))));
}

static void net_watch_show(struct net_watch *w)
{
	const struct net_question *q = w->first;

	if (!q || w->shown)
		return;
	w->shown = true;
	/* What was typed before the question is no answer. */
	(void)tcflush(STDIN_FILENO, TCIFLUSH);
	w->line_n = 0;
	put_shown(STDERR_FILENO, q->text);
	(void)put(STDERR_FILENO, "\n", 1);
	put_shown(STDERR_FILENO, "  allow it? y: once, a: always (");
	put_shown(STDERR_FILENO, q->always);
	put_shown(STDERR_FILENO, "), n: no ");
}

static bool net_watch_add(struct net_watch *w, const cloche_question *q)
{
	struct net_question *own = calloc(1, sizeof(*own));
	const char *slash = strrchr(q->program, '/');
	char program[64];

	if (!own)
		return false;
	snprintf(program, sizeof(program), "%s", slash ? slash + 1 : q->program);
	refusal_keep_name(program);
	own->number = q->number;
	own->always = strdup(q->always);
	if (asprintf(&own->text, "cloche: %s asks: %s %.*s%s", program[0] ? program : "something",
		    q->method, NET_WATCH_SHOWN, q->url,
		    strlen(q->url) > NET_WATCH_SHOWN ? "..." : "") < 0)
		own->text = NULL;
	*w->last = own;
	w->last = &own->next;
	return own->text && own->always;
}

/* Take what the sandbox asks. Return an exit status or a negated error code when it is over. */
static int net_watch_take(struct net_watch *w, cloche_err *err)
{
	const cloche_question *q;
	int r;

	while ((r = cloche_watch_next(w->watch, &q, err)) > 0) {
		bool was_shown = w->shown, ok = true;

		if (w->json)
			ok = net_watch_print(q);
		if (q->withdrawn && w->first && w->first->number == q->number && was_shown)
			say("(it needs no answer any more)");
		if (q->withdrawn)
			net_watch_forget(w, q->number);
		else if (!w->json)
			ok = net_watch_add(w, q);
		if (!ok)
			return w->json ? EXIT_CLOCHE : wrong_usage(err, NULL, "out of memory");
	}
	w->over = r < 0;
	w->ended = r == -CLOCHE_E_BROKEN;
	return w->ended ? 0 : r;
}

/* --- answers --- */

static bool net_watch_read_word(char c, cloche_answer *ret)
{
	*ret = c == 'a' ? CLOCHE_ANSWER_ALWAYS : c == 'y' ? CLOCHE_ANSWER_ONCE : CLOCHE_ANSWER_NO;
	return c == 'a' || c == 'y' || c == 'n';
}

static int net_watch_answer(
	struct net_watch *w, uint32_t number, cloche_answer answer, cloche_err *err)
{
	int r = cloche_watch_answer(w->watch, number, answer, err);

	/* A rule that cannot be added leaves the question. */
	if (r < 0 && r != -CLOCHE_E_BROKEN) {
		complain(err);
		r = cloche_watch_answer(w->watch, number, CLOCHE_ANSWER_NO, err);
	}
	net_watch_forget(w, number);
	return r;
}

static int net_watch_line(struct net_watch *w, const char *line, cloche_err *err)
{
	cloche_answer answer;
	unsigned number = 0;
	char word = line[0];

	if (w->json && sscanf(line, "%u %c", &number, &word) != 2)
		word = '\0';
	if (!w->json && !w->shown)
		return 0;
	if (!net_watch_read_word(word, &answer)) {
		if (w->json)
			return wrong_usage(err, "an answer is NUMBER y, NUMBER a or NUMBER n",
				"net watch: \"%.40s\" is no answer", line);
		w->shown = false;
		return 0;
	}
	return net_watch_answer(w, w->json ? number : w->first->number, answer, err);
}

/* Take what was typed. A person who is gone watches no longer. */
static int net_watch_type(struct net_watch *w, cloche_err *err)
{
	ssize_t n = read(STDIN_FILENO, w->line + w->line_n, sizeof(w->line) - 1 - w->line_n);
	int r = 0;
	char *end;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	w->over = n <= 0;
	w->line_n += n > 0 ? (size_t)n : 0;
	w->line[w->line_n] = '\0';
	while (r == 0 && (end = strchr(w->line, '\n'))) {
		*end = '\0';
		r = net_watch_line(w, w->line, err);
		w->line_n = strlen(end + 1);
		memmove(w->line, end + 1, w->line_n + 1);
	}
	if (w->line_n == sizeof(w->line) - 1)
		w->line_n = 0;
	return r;
}

static int net_watch_loop(struct net_watch *w, cloche_err *err)
{
	int r = 0;

	while (r == 0 && !w->over) {
		struct pollfd p[2] = {{.fd = cloche_watch_fd(w->watch), .events = POLLIN},
			{.fd = STDIN_FILENO, .events = POLLIN}};

		if (!w->json)
			net_watch_show(w);
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return wrong_usage(err, NULL, "poll: %s", strerror(errno));
		if (p[0].revents)
			r = net_watch_take(w, err);
		if (r == 0 && !w->over && p[1].revents)
			r = net_watch_type(w, err);
	}
	return r;
}

int net_watch_start(const char *id, cloche_err *err)
{
	char self[] = "/proc/self/exe", net[] = "net", watch[] = "watch", quiet[] = "--quiet";
	char *own = strdup(id), *argv[] = {self, net, watch, quiet, own, NULL};
	posix_spawn_file_actions_t files;
	pid_t pid;
	int e = own ? posix_spawn_file_actions_init(&files) : ENOMEM;

	if (e == 0) {
		e = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/tty", O_RDWR, 0);
		if (e == 0)
			e = posix_spawn_file_actions_adddup2(&files, STDIN_FILENO, STDERR_FILENO);
		if (e == 0)
			e = posix_spawn(&pid, self, &files, NULL, argv, environ);
		posix_spawn_file_actions_destroy(&files);
	}
	free(own);
	return e == 0 ? pid : wrong_usage(err, NULL, "run: cannot ask: %s", strerror(e));
}

/* The sandbox of a run that has just begun comes on record beside its command. */
static int net_watch_open_new(const char *id, cloche_instance **ret, cloche_err *err)
{
	int r = -CLOCHE_E_NOT_FOUND;

	for (int turn = 0; r == -CLOCHE_E_NOT_FOUND && turn < NET_WATCH_TURNS; turn++) {
		if (turn > 0)
			(void)poll(NULL, 0, NET_WATCH_TURN_MS);
		*err = (cloche_err)CLOCHE_ERR_INIT;
		r = cloche_instance_open(id, ret, err);
	}
	return r;
}

int net_watch(const char *name, bool json, bool quiet, cloche_err *err)
{
	struct net_watch w = {.json = json, .last = &w.first};
	cloche_instance *i = NULL;
	int r;

	if (!json && (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)))
		return wrong_usage(err, "--json prints questions and reads answers",
			"net watch: there is no terminal to ask on");
	r = quiet ? net_watch_open_new(name, &i, err) : cloche_instance_open(name, &i, err);
	if (r == 0)
		r = cloche_watch_new(i, &w.watch, err);
	cloche_instance_free(i);
	if (r < 0)
		return r;
	if (!json && !quiet)
		say("watching %s until it ends; what it may not reach waits here for a minute",
			name);
	r = net_watch_loop(&w, err);
	if (w.ended && !json && !quiet)
		say("%s has ended", name);
	cloche_watch_free(w.watch);
	while (w.first)
		net_watch_forget(&w, w.first->number);
	return r == -CLOCHE_E_BROKEN ? 0 : r;
}
