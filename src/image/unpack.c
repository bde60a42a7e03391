/* SPDX-License-Identifier: Apache-2.0 */
#include "image/unpack.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/program.h"
#include "base/utf8.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_LINES = 1 << 20, MAX_TEXT = 4096 };

static int start(
	const char *what, int in, int dir, int out, int trouble, pid_t *ret, struct cloche_err *err)
{
	const struct program_fd fds[] = {{in, UNPACK_FD_IN}, {dir, UNPACK_FD_DIR}};
	const char *const argv[] = {"cloche-unpack", what, NULL};
	const struct program_spawn spawn = {
		.argv = argv, .fds = fds, .fds_n = ARRAY_SIZE(fds), .stdio = {-1, out, trouble}};

	return program_start(&spawn, ret, NULL, err);
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
		got = read(fd, to, buf_room(&b));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(err, errno, "read from cloche-unpack");
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
	struct str text, line;
	uint64_t code = 0;
	size_t at;

	(void)!fd_read_to_end(fd, &b);
	text = buf_str(&b);
	line = str_prefix(text, str_chr(text, '\n'));
	at = str_chr(line, ' ');
	text = str_from_index(text, line.n + 1);
	if (parse_u64(str_prefix(line, at), UINT32_MAX, &code) < 0 ||
		!err_is_code((uint32_t)code)) {
		if (WIFSIGNALED(status))
			return err_set(err, E_INTERNAL, "cloche-unpack was ended by signal %d",
				WTERMSIG(status));
		return err_set(err, E_INTERNAL, "cloche-unpack failed: %.*s", STR_FMT(line));
	}
	line = str_from_index(line, at + 1);
	err_set(err, (int)code, "%.*s", STR_FMT(line));
	text = str_prefix(text, str_chr(text, '\n'));
	if (text.n)
		err_hint(err, "%.*s", STR_FMT(text));
	return -(int)code;
}

static int finish(pid_t pid, int trouble, int r, struct cloche_err *err)
{
	int status;

	if (r < 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_sys(err, errno, "wait for cloche-unpack");
	if (r < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return r;
	return take_trouble(trouble, status, err);
}

int unpack_run(const struct unpack_job *job, struct cloche_err *err)
{
	static const char *const names[] = {[UNPACK_LAYER] = "layer", [UNPACK_FILES] = "files"};
	int out[2] = {-1, -1}, trouble[2] = {-1, -1}, r;
	pid_t pid;

	r = fd_pipe(out);
	if (r == 0)
		r = fd_pipe(trouble);
	r = r < 0 ? err_sys(err, -r, "make a pipe")
		  : start(names[job->what], job->in, job->dir, out[1], trouble[1], &pid, err);
	out[1] = fd_close(out[1]);
	trouble[1] = fd_close(trouble[1]);
	if (r == 0)
		r = finish(pid, trouble[0], read_lines(job, out[0], err), err);
	fd_close(out[0]);
	fd_close(trouble[0]);
	return r;
}

int unpack_pack_to(int out, int dir, int list, struct cloche_err *err)
{
	int trouble[2], r = fd_pipe(trouble);
	pid_t pid;

	if (r < 0)
		return err_sys(err, -r, "make a pipe");
	r = start("pack", list, dir, out, trouble[1], &pid, err);
	trouble[1] = fd_close(trouble[1]);
	if (r == 0)
		r = finish(pid, trouble[0], 0, err);
	fd_close(trouble[0]);
	return r;
}
