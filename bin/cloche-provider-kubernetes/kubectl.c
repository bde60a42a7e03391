/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: each question to the cluster is one run of kubectl. What it writes comes
 * from the cluster, so it is bounded, and nothing of it is an argument of another run. Several may
 * run at once, as a pod that is waited for and its policy do. */
#include "kubectl.h"
#include "asked/asked.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/program.h"
#include "base/strv.h"
#include "podstate.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOCAL_SEC = 10, READ_BYTES = 64 * 1024, RUNS_MAX = 4, FDS = 4 /* of a run */ };

void kubectl_done(struct kubectl *k)
{
	free(k->path);
	free(k->context);
	free(k->space);
	*k = (struct kubectl){0};
}

/* --- running it --- */

/* Return path and words with the place, or NULL. */
static char **kubectl_argv(const struct kubectl *k, const char *const *words)
{
	_cleanup_(strv_freep) char **argv = NULL;
	char *option = NULL;

	if (strv_add(&argv, str_from("kubectl")) < 0)
		return NULL;
	if (k->context &&
		(asprintf(&option, "--context=%s", k->context) < 0 || strv_take(&argv, option) < 0))
		return NULL;
	if (k->space &&
		(asprintf(&option, "--namespace=%s", k->space) < 0 || strv_take(&argv, option) < 0))
		return NULL;
	for (size_t i = 0; words[i]; i++)
		if (strv_add(&argv, str_from(words[i])) < 0)
			return NULL;
	return TAKE_PTR(argv);
}

static int kubectl_make_pipe(int *ret, int *ret_theirs)
{
	int pair[2], r = fd_pipe(pair);

	if (r < 0)
		return r;
	*ret = pair[0];
	*ret_theirs = pair[1];
	return fd_set_nonblock(pair[0], true);
}

int kubectl_begin(const struct kubectl *k, const char *const *words, struct str input,
	struct kubectl_run *ret, struct cloche_err *err)
{
	_cleanup_(strv_freep) char **argv = kubectl_argv(k, words);
	_cleanup_fd_ int in = -1, out = -1, said = -1;
	struct program_spawn spawn = {
		.path = k->path, .argv = (const char *const *)argv, .env = environ};
	int pair[2], r;

	*ret = KUBECTL_RUN_NONE;
	if (!argv)
		return err_nomem(err);
	ret->verb = words[0];
	ret->input = input;
	ret->out = BUF_INIT(KUBECTL_OUT_MAX);
	ret->said = BUF_INIT(KUBECTL_SAID_MAX);
	/* A socket: if it stops reading, no signal may end us. */
	r = fd_socketpair(SOCK_STREAM, pair);
	if (r == 0) {
		in = pair[0];
		ret->to = pair[1];
		r = fd_set_nonblock(ret->to, true);
	}
	if (r == 0)
		r = kubectl_make_pipe(&ret->from, &out);
	if (r == 0)
		r = kubectl_make_pipe(&ret->errors, &said);
	if (r < 0) {
		kubectl_end(ret);
		return err_sys(err, -r, "make a pipe");
	}
	spawn.stdio[0] = in;
	spawn.stdio[1] = out;
	spawn.stdio[2] = said;
	r = program_start(&spawn, &ret->pid, &ret->pidfd, err);
	if (r < 0)
		kubectl_end(ret);
	else
		ret->ended = false;
	return r;
}

static void kubectl_write(struct kubectl_run *run)
{
	ssize_t n = run->input.n ? send(run->to, run->input.p, run->input.n, MSG_NOSIGNAL) : 0;

	if (n > 0)
		run->input = str_from_index(run->input, (size_t)n);
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		run->input = STR_NULL;
	if (run->input.n == 0)
		run->to = fd_close(run->to);
}

/* Read what is there into b. keep_last: what does not fit pushes out what came first. Return false
 * at the end, or if it is too much. */
static bool kubectl_read(int fd, struct buf *b, bool keep_last)
{
	char text[READ_BYTES];
	ssize_t n = read(fd, text, keep_last ? (size_t)KUBECTL_SAID_MAX / 4 : sizeof(text));

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (keep_last && (size_t)n > buf_room(b))
		buf_consume(b, (size_t)n - buf_room(b));
	return n > 0 && buf_add(b, text, (size_t)n) == 0;
}

static void kubectl_reap(struct kubectl_run *run)
{
	int status = 0;

	while (waitpid(run->pid, &status, 0) < 0)
		if (errno != EINTR)
			break;
	run->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	run->ended = true;
}

/* p: what poll() has said of this run. Its output is read to the end: a child of its own that stays
 * and holds it keeps nobody. */
static void kubectl_serve(struct kubectl_run *run, const struct pollfd p[FDS])
{
	if (p[0].revents)
		kubectl_write(run);
	if (p[1].revents && !kubectl_read(run->from, &run->out, false))
		run->from = fd_close(run->from);
	if (p[2].revents && !kubectl_read(run->errors, &run->said, true))
		run->errors = fd_close(run->errors);
	if (p[3].revents && !p[1].revents && !p[2].revents)
		kubectl_reap(run);
}

int kubectl_turn(struct kubectl_run *const *runs, size_t n, uint64_t until_usec)
{
	struct pollfd p[RUNS_MAX * FDS];
	uint64_t now = clock_mono_usec();
	int r;

	if (now >= until_usec || n > RUNS_MAX)
		return -ETIMEDOUT;
	for (size_t i = 0; i < n; i++) {
		const struct kubectl_run *run = runs[i];
		bool on = !run->ended;

		p[i * FDS] = (struct pollfd){.fd = on ? run->to : -1, .events = POLLOUT};
		p[i * FDS + 1] = (struct pollfd){.fd = on ? run->from : -1, .events = POLLIN};
		p[i * FDS + 2] = (struct pollfd){.fd = on ? run->errors : -1, .events = POLLIN};
		p[i * FDS + 3] = (struct pollfd){.fd = on ? run->pidfd : -1, .events = POLLIN};
	}
	r = poll(p, n * FDS, (int)MIN((until_usec - now) / USEC_PER_MSEC + 1, UINT64_C(60000)));
	for (size_t i = 0; i < n && r > 0; i++)
		if (!runs[i]->ended)
			kubectl_serve(runs[i], p + i * FDS);
	return 0;
}

void kubectl_end(struct kubectl_run *run)
{
	if (!run->ended) {
		kill(run->pid, SIGKILL);
		kubectl_reap(run);
	}
	run->pidfd = fd_close(run->pidfd);
	run->to = fd_close(run->to);
	run->from = fd_close(run->from);
	run->errors = fd_close(run->errors);
	buf_done(&run->out);
	buf_done(&run->said);
}

int kubectl_fail(const struct kubectl *k, const struct kubectl_run *run, struct cloche_err *err)
{
	struct str why = asked_last_line(buf_str(&run->said));
	char text[PODSTATE_WHY_MAX + 1];

	if (!run->ended)
		why = STR("it takes too long");
	else if (!why.n)
		why = STR("it fails without a word");
	if (str_starts(why, STR("error: ")))
		why = str_from_index(why, strlen("error: "));
	podstate_show(why, text, sizeof(text));
	err_set(err, E_UNSUPPORTED, "kubectl %s: %s", run->verb, text);
	if (strstr(text, "(Forbidden)"))
		err_hint(err, "docs/kubernetes/role.yaml has the rights that are needed; who runs "
			      "the cluster can grant them");
	else if (k->context)
		err_hint(err, "run \"kubectl --context=%s get pods\" once yourself", k->context);
	else
		err_hint(err, "run \"kubectl get pods\" once yourself");
	return -E_UNSUPPORTED;
}

/* Wait for the end of a run. */
static int kubectl_finish(
	const struct kubectl *k, struct kubectl_run *run, int patience_sec, struct cloche_err *err)
{
	struct kubectl_run *const runs[] = {run};
	uint64_t until = clock_mono_usec() + (uint64_t)patience_sec * (uint64_t)USEC_PER_SEC;
	int r = 0;

	while (!run->ended && r == 0)
		r = kubectl_turn(runs, 1, until);
	return r < 0 || run->status != 0 ? kubectl_fail(k, run, err) : 0;
}

int kubectl_finish_json(const struct kubectl *k, struct kubectl_run *run, int patience_sec,
	json_t **ret, struct cloche_err *err)
{
	int r = kubectl_finish(k, run, patience_sec, err);

	*ret = NULL;
	if (r < 0 || str_trim(buf_str(&run->out)).n == 0)
		return r;
	r = json_text_read(buf_str(&run->out), 0, ret, NULL);
	return r < 0 ? err_set(err, E_PROTOCOL, "kubectl %s: what it says is no JSON", run->verb)
		     : 0;
}

int kubectl_call(const struct kubectl *k, const char *const *words, struct str input,
	int patience_sec, struct buf *ret, struct cloche_err *err)
{
	_cleanup_(kubectl_endp) struct kubectl_run run = KUBECTL_RUN_NONE;
	int r = kubectl_begin(k, words, input, &run, err);

	if (r == 0)
		r = kubectl_finish(k, &run, patience_sec, err);
	if (r < 0)
		return r;
	return ret && buf_add_str(ret, buf_str(&run.out)) < 0 ? err_nomem(err) : 0;
}

int kubectl_ask(const struct kubectl *k, const char *const *words, struct str input,
	int patience_sec, json_t **ret, struct cloche_err *err)
{
	_cleanup_(kubectl_endp) struct kubectl_run run = KUBECTL_RUN_NONE;
	int r = kubectl_begin(k, words, input, &run, err);

	*ret = NULL;
	return r == 0 ? kubectl_finish_json(k, &run, patience_sec, ret, err) : r;
}

int kubectl_become(const struct kubectl *k, const char *const *words, struct cloche_err *err)
{
	char **argv = kubectl_argv(k, words);

	if (!argv)
		return err_nomem(err);
	asked_become("kubernetes", k->path, (const char *const *)argv);
}

/* --- the place --- */

/* Whether a context is called so. */
static int kubectl_has_context(const char *path, const char *name, struct cloche_err *err)
{
	static const char *const words[] = {"config", "get-contexts", "--output=name", NULL};
	const struct kubectl k = {.path = (char *)(uintptr_t)path};
	_cleanup_(buf_donep) struct buf text = BUF_INIT(KUBECTL_OUT_MAX);
	struct str rest;
	int r = kubectl_call(&k, words, STR_NULL, LOCAL_SEC, &text, err);

	if (r < 0)
		return r;
	rest = buf_str(&text);
	while (rest.n)
		if (str_eq(str_next_line(&rest), str_from(name)))
			return 1;
	return 0;
}

static int kubectl_set_place(
	struct kubectl *k, struct str context, const char *space, struct cloche_err *err)
{
	free(k->context);
	free(k->space);
	k->context = str_dup(context);
	k->space = space ? strdup(space) : NULL;
	return k->context && (k->space || !space) ? 0 : err_nomem(err);
}

int kubectl_guess(struct kubectl *k, const char *place, struct cloche_err *err)
{
	const char *slash = place ? strrchr(place, '/') : NULL;

	*k = (struct kubectl){.path = program_on_path("kubectl")};
	if (!k->path) {
		err_set(err, E_UNSUPPORTED, "kubectl is not installed");
		err_hint(err, "install kubectl, in the version of your cluster");
		return -E_UNSUPPORTED;
	}
	if (!place)
		return 0;
	return kubectl_set_place(k,
		slash ? str_make(place, (size_t)(slash - place)) : str_from(place),
		slash ? slash + 1 : NULL, err);
}

int kubectl_confirm(struct kubectl *k, const char *place, struct cloche_err *err)
{
	int r = place && strchr(place, '/') ? kubectl_has_context(k->path, place, err) : 0;

	if (r < 0)
		return r;
	if (r == 1 && kubectl_set_place(k, str_from(place), NULL, err) < 0)
		return -err->code;
	if (place && (!k->context[0] || (k->space && !k->space[0]))) {
		err_set(err, E_USAGE, "\"%s\" names no place", place);
		err_hint(err, "say --place CONTEXT or --place CONTEXT/NAMESPACE; \"kubectl config "
			      "get-contexts\" lists them");
		return -E_USAGE;
	}
	return r;
}

int kubectl_init(struct kubectl *k, const char *place, struct cloche_err *err)
{
	int r = kubectl_guess(k, place, err);

	if (r == 0)
		r = kubectl_confirm(k, place, err);
	return MIN(r, 0);
}

int kubectl_settle(struct kubectl *k, struct cloche_err *err)
{
	static const char *const words[] = {"config", "view", "--minify", "--output=json", NULL};
	_cleanup_json_ json_t *view = NULL;
	struct str context, space;
	int r = kubectl_ask(k, words, STR_NULL, LOCAL_SEC, &view, err);

	if (r < 0)
		return r;
	context = json_str_at(view, "current-context");
	space = json_str_at(
		json_object_get(json_array_get(json_object_get(view, "contexts"), 0), "context"),
		"namespace");
	if (!context.n && !k->context) {
		err_set(err, E_UNSUPPORTED, "kubectl has no current context");
		err_hint(err, "say --place CONTEXT; \"kubectl config get-contexts\" lists them");
		return -E_UNSUPPORTED;
	}
	if (!k->context)
		k->context = str_dup(context);
	if (!k->space)
		k->space = str_dup(space.n ? space : STR("default"));
	return k->context && k->space ? 0 : err_nomem(err);
}
