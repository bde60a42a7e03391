/* SPDX-License-Identifier: Apache-2.0 */
#include "image/unpack.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/utf8.h"
#include "job/job.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_LINES = 1 << 20, MAX_TEXT = 4096, PATIENCE_MS = 3000 };

int image_start_program(
	struct program_spawn spawn, pid_t *ret_pid, int *ret_trouble, struct cloche_err *err)
{
	int trouble[2], r = fd_pipe(trouble);

	if (r < 0)
		return err_sys(err, -r, "make a pipe");
	spawn.stdio[2] = trouble[1];
	r = program_start(&spawn, ret_pid, NULL, err);
	fd_close(trouble[1]);
	if (r < 0)
		fd_close(trouble[0]);
	else
		*ret_trouble = trouble[0];
	return r;
}

int image_read_trouble(int fd, struct buf *b)
{
	for (;;) {
		char *at;
		ssize_t n = (ssize_t)MIN(buf_room(b), (size_t)MAX_TEXT);
		int r = n ? buf_reserve(b, (size_t)n, &at) : -E2BIG;

		if (r < 0)
			return r;
		n = job_read(fd, at, (size_t)n);
		if (n <= 0)
			return (int)n;
		buf_commit(b, (size_t)n);
	}
}

int image_wait_program(pid_t pid, bool give_up, int *ret_status)
{
	int r;

	job_hold_cancel();
	if (give_up) {
		_cleanup_fd_ int fd = (int)syscall(SYS_pidfd_open, pid, 0);

		/* It may have temporary files to remove. */
		kill(pid, SIGTERM);
		if (fd < 0 || job_wait_fd(fd, POLLIN, PATIENCE_MS) <= 0)
			kill(pid, SIGKILL);
	}
	r = job_wait_child(pid, ret_status);
	job_release_cancel();
	return r;
}

static int unpack_start(const char *what, int in, int dir, int out, pid_t *ret_pid,
	int *ret_trouble, struct cloche_err *err)
{
	const struct program_fd fds[] = {{in, UNPACK_FD_IN}, {dir, UNPACK_FD_DIR}};
	const struct program_spawn spawn = {
		.argv = (const char *const[]){"cloche-unpack", what, NULL},
		.fds = fds,
		.fds_n = ARRAY_SIZE(fds),
		.stdio = {-1, out, -1}};

	return image_start_program(spawn, ret_pid, ret_trouble, err);
}

static int dispatch(const struct unpack_job *job, struct str line, struct cloche_err *err)
{
	static const struct str progress = {"progress ", 9};
	uint64_t bytes;

	if (!str_starts(line, progress))
		return job->line(job->line_user, line, err);
	if (!job->progress || parse_u64(str_from_index(line, progress.n), UINT64_MAX, &bytes) < 0 ||
		job->progress(job->user, bytes))
		return 0;
	return err_set(err, E_CANCELLED, "it was given up");
}

static int read_lines(const struct unpack_job *job, int fd, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(MAX_TEXT);

	for (size_t lines = 0; lines < MAX_LINES;) {
		size_t n = str_chr(buf_str(&b), '\n');
		ssize_t got;
		char *to;
		int r;

		if (n < buf_len(&b)) {
			r = dispatch(job, str_prefix(buf_str(&b), n), err);
			if (r < 0)
				return r;
			buf_consume(&b, n + 1);
			lines++;
			continue;
		}
		r = buf_room(&b) ? buf_reserve(&b, buf_room(&b), &to) : -E2BIG;
		if (r < 0)
			return err_set(err, E_CORRUPT, "cloche-unpack wrote no lines");
		got = job_read(fd, to, buf_room(&b));
		if (got < 0)
			return err_sys(err, (int)-got, "read from cloche-unpack");
		if (got == 0)
			return 0;
		buf_commit(&b, (size_t)got);
	}
	return err_set(err, E_LIMIT, "cloche-unpack wrote too many lines");
}

/* Read the error from its standard error. */
static int take_trouble(int fd, int status, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(MAX_TEXT);
	struct str text, line, message, hint;
	uint64_t code = 0;

	(void)!image_read_trouble(fd, &b);
	text = buf_str(&b);
	line = message = str_next_line(&text);
	hint = str_next_line(&text);
	if (parse_u64(str_next(&message, ' '), UINT32_MAX, &code) < 0 ||
		!err_is_code((uint32_t)code)) {
		if (WIFSIGNALED(status))
			return err_set(err, E_INTERNAL, "cloche-unpack was ended by signal %d",
				WTERMSIG(status));
		return err_set(err, E_INTERNAL, "cloche-unpack failed: %.*s", STR_FMT(line));
	}
	err_set(err, (int)code, "%.*s", STR_FMT(message));
	if (hint.n)
		err_hint(err, "%.*s", STR_FMT(hint));
	return -(int)code;
}

/* Takes trouble. r is the result of reading its answers. */
static int unpack_finish(pid_t pid, int trouble, int r, struct cloche_err *err)
{
	_cleanup_fd_ int errors = trouble;
	int status, waited;

	if (r < 0)
		kill(pid, SIGKILL);
	waited = image_wait_program(pid, false, &status);
	if (waited < 0)
		return err_sys(err, -waited, "wait for cloche-unpack");
	if (r < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return r;
	return take_trouble(errors, status, err);
}

int unpack_run(const struct unpack_job *job, struct cloche_err *err)
{
	int out[2], trouble, r = fd_pipe(out);
	pid_t pid;

	if (r < 0)
		return err_sys(err, -r, "make a pipe");
	r = unpack_start(job->what, job->in, job->dir, out[1], &pid, &trouble, err);
	fd_close(out[1]);
	if (r == 0)
		r = unpack_finish(pid, trouble, read_lines(job, out[0], err), err);
	fd_close(out[0]);
	return r;
}

int unpack_pack_to(int out, int dir, int list, struct cloche_err *err)
{
	int trouble, r;
	pid_t pid;

	r = unpack_start(UNPACK_PACK, list, dir, out, &pid, &trouble, err);
	if (r < 0)
		return r;
	/* It says nothing until it has ended, unless it fails. */
	r = job_wait_fd(trouble, POLLIN, -1);
	return unpack_finish(
		pid, trouble, r < 0 ? err_sys(err, -r, "wait for cloche-unpack") : 0, err);
}
