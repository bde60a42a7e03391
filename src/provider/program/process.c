/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the program is run once for each request. It reads the request from a
 * socket, and its answer is read until it closes its output. The program is hostile: both its
 * answer and its time are limited; after that, it and its process group are killed.
 *
 * If the request has a line `far`, the program may become a stream. So its input stays open after
 * the request, and its answer is read byte by byte: what follows the line `far` is the stream's.
 * What it says to standard error may then come from the other place. It goes through a pipe, so
 * that it is not too much, nothing for a terminal to obey, and nobody changes the mode of our own.
 */
#include "base/clock.h"
#include "base/escape.h"
#include "base/fd.h"
#include "base/program.h"
#include "base/strv.h"
#include "job/job.h"
#include "provider/names.h"
#include "provider/program/operations.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS_MAX = 16 * 1024, WORDS_READS = 32 };
#define LOOK_MSEC ((uint64_t)200) /* how often to ask whether the caller has given up */

char **process_settings(char *const *env)
{
	_cleanup_(strv_freep) char **kept = calloc(1, sizeof(char *));

	for (size_t i = 0; kept && env && env[i]; i++) {
		struct str one = str_from(env[i]);

		if (program_is_engine_setting(str_prefix(one, str_chr(one, '='))) &&
			strv_add(&kept, one) < 0)
			return NULL;
	}
	return TAKE_PTR(kept);
}

/* Return program_env() with what the provider needs of ours, and with these added; these win. */
static char **make_env(const struct provider *p, char *const *more)
{
	_cleanup_(strv_freep) char **env = program_env(environ);

	if (env && provider_asks_service(p->name) && program_env_add_service(&env, environ) < 0)
		return NULL;
	for (size_t i = 0; env && more && more[i]; i++) {
		struct str one = str_from(more[i]);
		_cleanup_(freep) char *name = str_dup(str_prefix(one, str_chr(one, '=')));

		if (!name || strv_env_set(&env, name, more[i] + strlen(name) + 1) < 0)
			return NULL;
	}
	return TAKE_PTR(env);
}

static int process_make_words(int *ret, int *ret_theirs)
{
	int pair[2], r = fd_pipe(pair);

	if (r < 0)
		return r;
	*ret = pair[0];
	*ret_theirs = pair[1];
	return fd_set_nonblock(pair[0], true);
}

void process_pass_on(struct process_words *words)
{
	char text[2048];

	for (int i = 0; i < WORDS_READS && words->fd >= 0; i++) {
		_cleanup_(buf_donep) struct buf safe = BUF_INIT(8 * sizeof(text));
		ssize_t n = read(words->fd, text, sizeof(text));

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			words->fd = fd_close(words->fd);
			return;
		}
		n = MIN(n, (ssize_t)words->left);
		words->left -= (size_t)n;
		if (escape_terminal(&safe, str_make(text, (size_t)n)) == 0 && buf_len(&safe))
			(void)!fd_write_all(STDERR_FILENO, buf_data(&safe), buf_len(&safe));
	}
}

static void write_some(struct process *run)
{
	ssize_t n = send(run->to, run->ask.request.p, run->ask.request.n, MSG_NOSIGNAL);

	if (n > 0)
		run->ask.request = str_from_index(run->ask.request, (size_t)n);
	/* The program may answer without reading everything. */
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		run->ask.request = STR_NULL;
	if (run->ask.request.n == 0 && !run->ask.far)
		run->to = fd_close(run->to);
}

int process_begin(struct process *ret, const struct provider *p, const struct process_ask *ask,
	struct cloche_err *err)
{
	_cleanup_(strv_freep) char **env = make_env(p, ask->env);
	_cleanup_fd_ int their_in = -1, their_out = -1, their_words = -1, to = -1, from = -1,
			 words = -1;
	const char *const led[] = {ask->leader, "carry", p->path, ask->verb, NULL};
	const char *const *argv = ask->leader ? led : led + 2;
	int in[2], out[2], r;
	struct program_spawn spawn = {.path = argv[0], .argv = argv, .env = env, .own_group = true};

	if (!env)
		return err_nomem(err);
	/* A socket instead of a pipe: if the program stops reading, no signal may end us. */
	r = fd_socketpair(SOCK_STREAM, in);
	if (r < 0)
		return err_sys(err, -r, "make a socket");
	their_in = in[0];
	to = in[1];
	r = fd_pipe(out);
	if (r < 0)
		return err_sys(err, -r, "make a pipe");
	from = out[0];
	their_out = out[1];
	r = ask->far ? process_make_words(&words, &their_words) : 0;
	if (r < 0)
		return err_sys(err, -r, "make a pipe");
	if (fd_set_nonblock(to, true) < 0 || fd_set_nonblock(from, true) < 0)
		return err_sys(err, errno, "speak with %s", p->path);
	*ret = (struct process){.provider = p,
		.words.fd = -1,
		.ask = *ask,
		.answer = BUF_INIT(WORDS_ANSWER_MAX),
		.until = clock_mono_usec() + (uint64_t)ask->patience_sec * (uint64_t)USEC_PER_SEC};
	spawn.stdio[0] = their_in;
	spawn.stdio[1] = their_out;
	spawn.stdio[2] = ask->far ? their_words : 2;
	r = program_start(&spawn, &ret->pid, &ret->pidfd, err);
	if (r < 0)
		return r;
	ret->words = (struct process_words){.fd = TAKE_FD(words), .left = WORDS_MAX};
	ret->to = TAKE_FD(to);
	ret->from = TAKE_FD(from);
	/* So that it can work while the caller waits for others. */
	write_some(ret);
	return 0;
}

static int read_some(struct process *run)
{
	size_t most = run->ask.far ? 1 : 4096;
	char *at;
	ssize_t n;

	if (buf_reserve(&run->answer, most, &at) < 0)
		return -E2BIG;
	n = read(run->from, at, most);
	if (n > 0)
		buf_commit(&run->answer, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		run->from = fd_close(run->from);
	return 0;
}

/* The last line is read first, as this is called for each byte. */
static bool is_whole(struct str text, struct words_answer *ret)
{
	const char *before = text.n > 1 ? memrchr(text.p, '\n', text.n - 1) : NULL;
	struct str last = before ? str_from_index(text, (size_t)(before + 1 - text.p)) : text;

	return str_ends(text, STR("\n")) && words_read_answer(last, ret) &&
	       words_read_answer(text, ret);
}

/* Needed because processes that the program leaves behind may still hold its output. */
static void look_at_answer(struct process *run)
{
	struct words_answer a;
	bool whole = is_whole(buf_str(&run->answer), &a);

	run->answered = run->from < 0 || whole;
	run->is_stream = run->ask.far && run->from >= 0 && whole && a.far;
}

/* A supervisor has to ask whether its client has given up; in the library, a job is cancelled. */
static bool may_give_up(const struct process *run)
{
	return run->ask.spec && run->ask.spec->given_up;
}

static bool has_given_up(const struct process *run)
{
	return may_give_up(run) && run->ask.spec->given_up(run->ask.spec->born_user);
}

/* Return 1 if the program has ended after its answer or has become a stream, 2 if other is
 * readable, 0 if neither, or -errno. The caller may have waited for others until the time was over,
 * so what is there of the answer then still counts: WORDS_ANSWER_MAX at most. */
static int talk(struct process *run, int other)
{
	struct pollfd p[] = {{.fd = run->answered ? run->pidfd : run->from, .events = POLLIN},
		{.fd = run->ask.request.n ? run->to : -1, .events = POLLOUT},
		{.fd = other, .events = POLLIN}, {.fd = run->words.fd, .events = POLLIN}};
	uint64_t now = clock_mono_usec(), left;
	bool late = now >= run->until;
	int r;

	if (has_given_up(run))
		return -ECANCELED;
	left = late ? 0 : (run->until - now) / USEC_PER_MSEC + 1;
	if (late)
		p[1].fd = p[2].fd = p[3].fd = -1;
	r = job_wait(p, ARRAY_SIZE(p), (int)(may_give_up(run) ? MIN(left, LOOK_MSEC) : left));
	if (r <= 0)
		return r == 0 && late ? -ETIMEDOUT : r;
	if (p[1].revents)
		write_some(run);
	if (p[3].revents)
		process_pass_on(&run->words);
	if (p[2].revents)
		return 2;
	if (!p[0].revents || run->answered)
		return p[0].revents != 0;
	r = read_some(run);
	look_at_answer(run);
	return r < 0 ? r : run->is_stream;
}

bool process_wait(struct process *run, int other)
{
	int r;

	do
		r = run->is_stream ? 1 : talk(run, other);
	while (r == 0);
	run->trouble = r < 0 ? r : 0;
	return r == 2;
}

static int judge(const struct provider *p, const char *verb, struct str text, int status,
	struct words_answer *ret, struct cloche_err *err)
{
	bool clear = words_read_answer(text, ret);

	if (clear && ret->ok && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (clear && ret->error[0]) {
		bool gone = ret->gone && strcmp(verb, "connect") == 0;

		/* The caller of probe names the provider itself. */
		if (strcmp(verb, "probe") == 0)
			err_set(err, E_UNSUPPORTED, "%s", ret->error);
		else
			err_set(err, gone ? E_BROKEN : E_UNSUPPORTED, "provider %s: %s", p->name,
				ret->error);
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
	return err ? -err->code : -E_PROTOCOL;
}

int process_end_or_stream(struct process *run, struct words_answer *ret,
	struct process_stream *ret_stream, struct cloche_err *err)
{
	*ret = (struct words_answer){0};
	if (run->trouble == 0)
		(void)process_wait(run, -1);
	if (run->trouble < 0 || !run->is_stream)
		return process_end(run, ret, err);
	(void)!words_read_answer(buf_str(&run->answer), ret);
	buf_done(&run->answer);
	*ret_stream = (struct process_stream){.pid = run->pid,
		.pidfd = run->pidfd,
		.to = run->to,
		.from = run->from,
		.words = run->words};
	return 1;
}

int process_stream_end(struct process_stream *stream)
{
	int status = 0;

	if (stream->pid > 0)
		kill(-stream->pid, SIGKILL);
	fd_close(stream->to);
	fd_close(stream->from);
	fd_close(stream->pidfd);
	if (stream->pid > 0) {
		job_hold_cancel();
		(void)!job_wait_child(stream->pid, &status);
		job_release_cancel();
	}
	process_pass_on(&stream->words);
	fd_close(stream->words.fd);
	*stream = PROCESS_STREAM_NONE;
	return status;
}

int process_end(struct process *run, struct words_answer *ret, struct cloche_err *err)
{
	const char *name = run->provider->name, *verb = run->ask.verb;
	int r, status = 0;

	*ret = (struct words_answer){0};
	if (run->trouble == 0)
		(void)process_wait(run, -1);
	fd_close(run->to);
	fd_close(run->from);
	fd_close(run->pidfd);
	if (run->trouble < 0 || run->is_stream)
		kill(-run->pid, SIGKILL);
	/* It has ended, or has just been killed. */
	job_hold_cancel();
	(void)!job_wait_child(run->pid, &status);
	job_release_cancel();
	process_pass_on(&run->words);
	run->words.fd = fd_close(run->words.fd);
	if (run->trouble == -ETIMEDOUT)
		r = err_set(err, E_PROTOCOL, "provider %s did not answer %s in %d s", name, verb,
			run->ask.patience_sec);
	else if (run->trouble == -ECANCELED)
		r = err_set(err, E_CANCELLED, "nobody waits for the room any more");
	else if (run->trouble < 0)
		r = err_set(err, E_PROTOCOL, "provider %s answered %s with too much", name, verb);
	else
		r = judge(run->provider, verb, buf_str(&run->answer), status, ret, err);
	buf_done(&run->answer);
	return r;
}

int process_run(const struct provider *p, const struct process_ask *ask, struct words_answer *ret,
	struct cloche_err *err)
{
	struct process run;
	int r = process_begin(&run, p, ask, err);

	*ret = (struct words_answer){0};
	return r < 0 ? r : process_end(&run, ret, err);
}
