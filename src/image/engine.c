/* SPDX-License-Identifier: Apache-2.0 */
#include "image/engine.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/program.h"
#include "image/recipe.h"
#include "job/job.h"
#include <cloche/image_build.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	MAX_LINE = 4096,
	MAX_ANSWER = 4096,
	MAX_LIST = 128 * 1024,
	MAX_ARGS = 16,
	PATIENCE_MS = 5000
};

void engine_done(struct engine *e)
{
	free(e->path);
	*e = (struct engine){.stop_fd = -1};
}

static const char *engine_name(const struct engine *e)
{
	const char *slash = strrchr(e->path, '/');

	return slash ? slash + 1 : e->path;
}

int engine_find(const char *wanted, struct engine *ret, struct cloche_err *err)
{
	static const char *const known[] = {"podman", "buildah", "docker"};

	ret->path = NULL;
	if (wanted && strchr(wanted, '/'))
		ret->path = access(wanted, X_OK) == 0 ? strdup(wanted) : NULL;
	else if (wanted)
		ret->path = program_on_path(wanted);
	for (size_t i = 0; !wanted && !ret->path && i < ARRAY_SIZE(known); i++)
		ret->path = program_on_path(known[i]);
	if (!ret->path) {
		if (wanted)
			err_set(err, E_NOT_FOUND, "%s is not there", wanted);
		else
			err_set(err, E_NOT_FOUND, "there is nothing that builds images");
		err_hint(err, "install podman, buildah or docker");
		return -E_NOT_FOUND;
	}
	ret->is_buildah = strcmp(engine_name(ret), "buildah") == 0;
	return 0;
}

/* --- one call --- */

struct call {
	struct engine *e;
	pid_t pid;
	int pidfd, out;
	char line[MAX_LINE];
	size_t line_n;
	char last[MAX_LINE]; /* the last line that is not blank */
	struct buf *answer;  /* NULL: lines are reported */
	bool stopped;
};

JOB_TELL1(tell_line, cloche_image_line_fn, const char *)

static void end_line(struct call *c)
{
	/* For a line that rewrites itself, only its end is kept. */
	c->line[c->line_n] = '\0';
	if (c->line_n > 0 && strspn(c->line, " \t") < c->line_n)
		memcpy(c->last, c->line, c->line_n + 1);
	if (c->e->on_line)
		tell_line(c->e->on_line, c->line, c->e->user);
	c->line_n = 0;
}

static void take(struct call *c, const char *p, size_t n)
{
	if (c->answer) {
		(void)!buf_add(c->answer, p, MIN(n, buf_room(c->answer)));
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (p[i] == '\n' || c->line_n == sizeof(c->line) - 1)
			end_line(c);
		if (p[i] != '\n' && p[i] != '\0' && p[i] != '\r')
			c->line[c->line_n++] = p[i];
	}
}

/* From now on the job waits for the program's end, even if it was cancelled. */
static void stop(struct call *c)
{
	c->stopped = true;
	job_hold_cancel();
	(void)syscall(SYS_pidfd_send_signal, c->pidfd, SIGTERM, NULL, 0);
	if (job_wait_fd(c->pidfd, POLLIN, PATIENCE_MS) <= 0)
		(void)syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
}

/* Read until the program has ended; its children may keep its output open for longer. */
static void watch(struct call *c)
{
	char chunk[4096];

	for (;;) {
		struct pollfd p[] = {{.fd = c->out, .events = POLLIN},
			{.fd = c->pidfd, .events = POLLIN},
			{.fd = c->stopped ? -1 : c->e->stop_fd, .events = POLLIN}};
		ssize_t n;
		int r = job_wait(p, ARRAY_SIZE(p), -1);

		if (!c->stopped && (r < 0 || p[2].revents))
			stop(c);
		if (r < 0)
			continue;
		n = p[0].revents ? read(c->out, chunk, sizeof(chunk)) : -1;
		if (n > 0)
			take(c, chunk, (size_t)n);
		else if (p[1].revents)
			return;
		else if (n == 0)
			c->out = -1;
	}
}

/* Return the program's exit status. */
static int call(struct engine *e, const char *const *args, struct call *c, struct cloche_err *err)
{
	_cleanup_fd_ int out = -1, in = -1, pidfd = -1;
	const char *argv[MAX_ARGS];
	struct program_spawn spawn = {.path = e->path, .argv = argv, .env = environ};
	int pipe_[2], r, status;
	size_t n = 0;

	argv[n++] = e->path;
	while (n < MAX_ARGS - 1 && *args)
		argv[n++] = *args++;
	argv[n] = NULL;
	r = fd_pipe(pipe_);
	if (r < 0)
		return err_sys(err, -r, "make a pipe");
	out = pipe_[0];
	in = pipe_[1];
	spawn.stdio[0] = -1;
	spawn.stdio[1] = in;
	spawn.stdio[2] = c->answer ? -1 : in;
	c->e = e;
	c->line_n = 0;
	c->last[0] = '\0';
	c->stopped = false;
	r = program_start(&spawn, &c->pid, &pidfd, err);
	if (r < 0)
		return r;
	in = fd_close(in);
	c->out = out;
	c->pidfd = pidfd;
	watch(c);
	if (!c->stopped)
		job_hold_cancel();
	r = job_wait_child(c->pid, &status);
	job_release_cancel();
	if (r < 0)
		return err_sys(err, -r, "wait for %s", e->path);
	if (c->line_n > 0)
		end_line(c);
	if (c->stopped)
		return err_set(err, E_CANCELLED, "the build was stopped");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* --- what is asked for --- */

/* Ask for a member of an image's description, as each kind of engine calls it. c->answer is for the
 * answer. Return as call(). */
static int inspect(struct engine *e, const char *docker, const char *buildah, const char *tag,
	struct call *c, struct cloche_err *err)
{
	const char *const as_docker[] = {"image", "inspect", "--format", docker, tag, NULL};
	const char *const as_buildah[] = {
		"inspect", "--type", "image", "--format", buildah, tag, NULL};

	return call(e, e->is_buildah ? as_buildah : as_docker, c, err);
}

int engine_created(struct engine *e, const char *tag, int64_t *ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf answer = BUF_INIT(MAX_ANSWER);
	struct call c = {.answer = &answer};
	int r = inspect(e, "{{.Created}}", "{{.OCIv1.Created}}", tag, &c, err);
	struct str rest = buf_str(&answer);
	int64_t usec;

	if (r < 0)
		return r;
	if (r > 0 || parse_time(str_trim(str_next_line(&rest)), &usec) < 0)
		return 0;
	*ret = usec / (int64_t)USEC_PER_SEC;
	return 1;
}

static int failed(const struct engine *e, const char *verb, const struct call *c, int status,
	struct cloche_err *err)
{
	return err_set(err, E_IMAGE, "%s %s ended with status %d: %s", engine_name(e), verb, status,
		c->last[0] ? c->last : "it said nothing");
}

int engine_build(struct engine *e, const struct engine_build *what, struct cloche_err *err)
{
	const char *const named[] = {"-t", what->tag, "-f", what->dockerfile, what->context};
	const char *args[MAX_ARGS] = {"build"};
	struct call c = {0};
	size_t n = 1;
	int r;

	if (what->fresh)
		args[n++] = "--no-cache";
	if (what->fresh && !what->local)
		args[n++] = "--pull";
	memcpy(args + n, named, sizeof(named));
	r = call(e, args, &c, err);
	return r <= 0 ? r : failed(e, "build", &c, r, err);
}

int engine_id(struct engine *e, const char *tag, char ret[SHA256_HEX_MAX], struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf answer = BUF_INIT(MAX_ANSWER);
	struct call c = {.answer = &answer};
	int r = inspect(e, "{{.Id}}", "{{.FromImageID}}", tag, &c, err);
	struct str rest = buf_str(&answer), id = str_next_line(&rest);

	if (r < 0)
		return r;
	if (str_starts(id, STR("sha256:")))
		id = str_from_index(id, 7);
	if (r > 0 || id.n != SHA256_HEX_MAX - 1)
		return failed(e, "inspect", &c, r, err);
	snprintf(ret, SHA256_HEX_MAX, "%.*s", STR_FMT(id));
	return 0;
}

/* Go writes some characters as no JSON does. */
static bool is_json_list(struct str list)
{
	if (!str_starts(list, STR("[\"")) || !str_ends(list, STR("\"]")))
		return false;
	for (size_t i = 0; i < list.n; i++)
		if (list.p[i] == '\\' && !strchr("\"\\/bfnrtu", list.p[++i]))
			return false;
	return true;
}

static int get_list(struct engine *e, const char *docker, const char *buildah, const char *tag,
	struct buf *ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf answer = BUF_INIT(MAX_LIST);
	struct call c = {.answer = &answer};
	int r = inspect(e, docker, buildah, tag, &c, err);
	struct str rest = buf_str(&answer), list = str_trim(str_next_line(&rest));

	if (r < 0 || (r == 0 && (str_eq(list, STR("null")) || str_eq(list, STR("[]")))))
		return r;
	if (r > 0)
		return failed(e, "inspect", &c, r, err);
	if (!is_json_list(list))
		return err_set(err, E_IMAGE, "%s does not say in JSON what the image runs",
			engine_name(e));
	return buf_add_str(ret, list) < 0 ? err_nomem(err) : 0;
}

/* Buildah's templates have no json. */
#define BUILDAH_LIST(of)                                                                           \
	"[{{range $i, $e := .OCIv1.Config." of "}}{{if $i}}, {{end}}{{printf \"%q\" $e}}{{end}}]"

int engine_command(struct engine *e, const char *tag, struct buf *ret_entrypoint,
	struct buf *ret_cmd, struct cloche_err *err)
{
	int r = get_list(e, "{{json .Config.Entrypoint}}", BUILDAH_LIST("Entrypoint"), tag,
		ret_entrypoint, err);

	return r < 0 ? r
		     : get_list(e, "{{json .Config.Cmd}}", BUILDAH_LIST("Cmd"), tag, ret_cmd, err);
}

int engine_save(struct engine *e, const char *tag, const char *path, struct cloche_err *err)
{
	_cleanup_(freep) char *archive = NULL;
	const char *const docker[] = {"save", "-o", path, tag, NULL};
	const char *buildah[] = {"push", tag, NULL, NULL};
	struct call c = {0};
	int r;

	if (asprintf(&archive, "oci-archive:%s", path) < 0) {
		archive = NULL;
		return err_nomem(err);
	}
	buildah[2] = archive;
	r = call(e, e->is_buildah ? buildah : docker, &c, err);
	return r <= 0 ? r : failed(e, "save", &c, r, err);
}
