/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the program is run once for each request. It reads the request from a
 * socket, and its answer is read until it closes its output. The program is hostile: both its
 * answer and its time are limited; after that, it and its process group are killed. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/program.h"
#include "base/strv.h"
#include "provider/program/operations.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct run {
	pid_t pid;
	int pidfd, to, from; /* its standard input and output; or -1 */
	struct str request;
	struct buf answer;
	uint64_t until;
	const struct room_spec *spec;
};

enum { LOOK_MSEC = 200 /* how often to ask whether the caller has given up */ };

char **process_settings(char *const *env)
{
	static const char *const prefixes[] = {"DOCKER_", "CONTAINER", "REGISTRY_AUTH_FILE="};
	_cleanup_(strv_freep) char **kept = calloc(1, sizeof(char *));

	for (size_t i = 0; kept && env && env[i]; i++)
		for (size_t k = 0; k < ARRAY_SIZE(prefixes); k++)
			if (str_starts(str_from(env[i]), str_from(prefixes[k])) &&
				strv_add(&kept, str_from(env[i])) < 0)
				return NULL;
	return TAKE_PTR(kept);
}

/* Return program_env() with these added; these win. */
static char **make_env(char *const *more)
{
	_cleanup_(strv_freep) char **env = program_env(environ);

	for (size_t i = 0; env && more && more[i]; i++) {
		struct str one = str_from(more[i]);
		_cleanup_(freep) char *name = str_dup(str_prefix(one, str_chr(one, '=')));

		if (!name || strv_env_set(&env, name, more[i] + strlen(name) + 1) < 0)
			return NULL;
	}
	return TAKE_PTR(env);
}

static int start(struct run *run, const struct provider *p, const char *verb, char *const *more,
	struct cloche_err *err)
{
	_cleanup_(strv_freep) char **env = make_env(more);
	_cleanup_(freep) char *name = strdup(p->path), *word = strdup(verb);
	char *argv[] = {name, word, NULL};
	int in[2], out[2], r;
	struct program_spawn spawn = {.path = p->path, .argv = argv, .stdio = {-1, -1, 2}};

	if (!env || !name || !word)
		return err_nomem(err);
	/* A socket instead of a pipe: if the program stops reading, no signal may end us. */
	r = fd_socketpair(SOCK_STREAM, in);
	if (r < 0)
		return err_sys(err, -r, "make a socket");
	r = fd_pipe(out);
	if (r < 0) {
		fd_close(in[0]);
		fd_close(in[1]);
		return err_sys(err, -r, "make a pipe");
	}
	spawn.env = env;
	spawn.stdio[0] = in[0];
	spawn.stdio[1] = out[1];
	spawn.own_group = true;
	r = program_start(&spawn, &run->pid, &run->pidfd, err);
	fd_close(in[0]);
	fd_close(out[1]);
	run->to = in[1];
	run->from = out[0];
	if (r == 0 && (fd_set_nonblock(run->to, true) < 0 || fd_set_nonblock(run->from, true) < 0))
		r = err_sys(err, errno, "speak with %s", p->path);
	return r;
}

static void write_some(struct run *run)
{
	ssize_t n = send(run->to, run->request.p, run->request.n, MSG_NOSIGNAL);

	if (n > 0)
		run->request = str_from_index(run->request, (size_t)n);
	/* The program may answer without reading everything. */
	if (run->request.n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		run->to = fd_close(run->to);
}

static int read_some(struct run *run)
{
	char *at;
	ssize_t n;

	if (buf_reserve(&run->answer, 4096, &at) < 0)
		return -E2BIG;
	n = read(run->from, at, 4096);
	if (n > 0)
		buf_commit(&run->answer, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		run->from = fd_close(run->from);
	return 0;
}

/* Needed because processes that the program leaves behind may still hold its output. */
static bool is_complete(const struct run *run)
{
	struct words_answer a;
	bool complete = words_read_answer(buf_str(&run->answer), &a);

	words_answer_done(&a);
	return complete && buf_data(&run->answer)[buf_len(&run->answer) - 1] == '\n';
}

static bool has_given_up(const struct run *run)
{
	return run->spec && run->spec->given_up && run->spec->given_up(run->spec->born_user);
}

/* Run until the program has answered, and then until it has ended. */
static int talk(struct run *run)
{
	bool answered = false;

	for (;;) {
		struct pollfd p[] = {{.fd = answered ? run->pidfd : run->from, .events = POLLIN},
			{.fd = run->to, .events = POLLOUT}};
		uint64_t now = clock_mono_usec();
		int r;

		if (now >= run->until)
			return -ETIMEDOUT;
		if (has_given_up(run))
			return -ECANCELED;
		r = poll(p, 2,
			(int)MIN((run->until - now) / USEC_PER_MSEC + 1, (uint64_t)LOOK_MSEC));
		if (r < 0 && errno != EINTR)
			return -errno;
		if (r > 0 && p[1].revents)
			write_some(run);
		if (r <= 0 || !p[0].revents)
			continue;
		if (answered)
			return 0;
		r = read_some(run);
		if (r < 0)
			return r;
		answered = run->from < 0 || is_complete(run);
	}
}

static int judge(const struct provider *p, const char *verb, struct str text, int status,
	struct words_answer *ret, struct cloche_err *err)
{
	bool clear = words_read_answer(text, ret);

	if (clear && ret->ok && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (clear && ret->error[0]) {
		/* The caller of probe names the provider itself. */
		if (strcmp(verb, "probe") == 0)
			err_set(err, E_UNSUPPORTED, "%s", ret->error);
		else
			err_set(err, E_UNSUPPORTED, "provider %s: %s", p->name, ret->error);
		if (ret->hint[0])
			err_hint(err, "%s", ret->hint);
	} else if (WIFSIGNALED(status)) {
		err_set(err, E_PROTOCOL, "provider %s was ended by signal %d during %s", p->name,
			WTERMSIG(status), verb);
	} else {
		err_set(err, E_PROTOCOL,
			"provider %s answered %s neither with \"ok\" nor with an error", p->name,
			verb);
	}
	words_answer_done(ret);
	return err ? -err->code : -E_PROTOCOL;
}

int process_run(const struct provider *p, const struct process_ask *ask, struct words_answer *ret,
	struct cloche_err *err)
{
	struct run run = {.pid = -1,
		.pidfd = -1,
		.to = -1,
		.from = -1,
		.request = ask->request,
		.answer = BUF_INIT(WORDS_ANSWER_MAX),
		.until = clock_mono_usec() + (uint64_t)ask->patience_sec * (uint64_t)USEC_PER_SEC,
		.spec = ask->spec};
	int r = start(&run, p, ask->verb, ask->env, err), status = 0,
	    talked = r == 0 ? talk(&run) : 0;

	*ret = (struct words_answer){0};
	fd_close(run.to);
	fd_close(run.from);
	fd_close(run.pidfd);
	if (run.pid > 0 && talked < 0)
		kill(-run.pid, SIGKILL);
	while (run.pid > 0 && waitpid(run.pid, &status, 0) < 0 && errno == EINTR)
		;
	if (talked == -ETIMEDOUT)
		r = err_set(err, E_PROTOCOL, "provider %s did not answer %s in %d s", p->name,
			ask->verb, ask->patience_sec);
	else if (talked == -ECANCELED)
		r = err_set(err, E_CANCELLED, "nobody waits for the room any more");
	else if (talked < 0)
		r = err_set(err, E_PROTOCOL, "provider %s answered %s with too much", p->name,
			ask->verb);
	if (r == 0)
		r = judge(p, ask->verb, buf_str(&run.answer), status, ret, err);
	buf_done(&run.answer);
	return r;
}
