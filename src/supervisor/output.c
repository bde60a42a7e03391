/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: in a kept sandbox the output of a process reaches us through our own pipes
 * (or its terminal) and goes to two places: to the pipe of the client that started it, by tee(2),
 * which copies no bytes, and then by splice(2) into the log. If the client's pipe is full we stop
 * reading, so that the process blocks as if it wrote there itself. If the pipe has no reader, or
 * there is no pipe, only the log is written. So the log never lags behind what a client got, and a
 * process waits only for the client that started it.
 *
 * When a process has ended, the rest of the output in its pipes (bounded by their size) is taken at
 * once, so that its end can be reported; data that the client cannot take yet waits in a relay
 * pipe. If a grandchild holds the pipe, its output is still logged, but the end does not wait for
 * it.
 *
 * The room may do anything to its ends (change their size or O_NONBLOCK, even read from them). So
 * every step here is non-blocking and bounded per iteration of the loop, and data that the room
 * takes away is missing only in its own log. */
#include "base/fd.h"
#include "base/jsonout.h"
#include "fs/fs.h"
#include "ipc/rundir.h"
#include "supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

enum {
	CHUNK = 64 * 1024,
	CHUNKS_PER_TURN = 4,
	MAX_ROUNDS = 1024, /* limit of reads when draining a stream of an ended process */
	MAX_META = 128 * 1024,
	MAX_ARGS_TEXT = 64 * 1024,
	TERMINAL_USEC = 100 * 1000, /* the longest that a read may block */
};

static void on_readable(struct loop_io *io, uint32_t events);
static void on_client(struct loop_io *io, uint32_t events);

static void close_in(struct stream *st)
{
	loop_io_remove(&st->in_io);
	st->in = fd_close(st->in);
}

static void close_to(struct stream *st)
{
	loop_io_remove(&st->to_io);
	st->to = fd_close(st->to);
	st->relay[0] = fd_close(st->relay[0]);
	st->relay[1] = fd_close(st->relay[1]);
}

static unsigned waiting_bytes(int fd)
{
	int n = 0;

	return ioctl(fd, FIONREAD, &n) == 0 && n > 0 ? (unsigned)n : 0;
}

/* The client's pipe is full: stop reading until it is not. `in` is removed from the loop
 * altogether, as a pipe that was hung up is always reported. */
static void hold(struct stream *st)
{
	struct loop *loop = st->task->sup->loop;

	loop_io_remove(&st->in_io);
	if (!st->to_io.loop && loop_io_add(loop, &st->to_io, st->to, EPOLLOUT, on_client) < 0)
		close_to(st);
}

static void output_go_on(struct stream *st)
{
	loop_io_remove(&st->to_io);
	if (st->in >= 0 && !st->in_io.loop &&
		loop_io_add(st->task->sup->loop, &st->in_io, st->in, EPOLLIN, on_readable) < 0)
		close_in(st);
}

/* Give the client the data in the relay. Return false if some is left. */
static bool feed(struct stream *st)
{
	while (st->to >= 0 && st->relay[0] >= 0) {
		ssize_t n = splice(st->relay[0], NULL, st->to, NULL, CHUNK, SPLICE_F_NONBLOCK);

		if (n > 0 || (n < 0 && errno == EINTR))
			continue;
		if (n < 0 && errno == EAGAIN && waiting_bytes(st->relay[0]) > 0)
			return false;
		/* The relay is empty, or the client is gone. */
		if (n < 0 && errno != EAGAIN)
			close_to(st);
		return true;
	}
	return true;
}

static bool make_relay(struct stream *st, int size)
{
	if (st->relay[0] >= 0)
		return true;
	if (fd_pipe(st->relay) < 0)
		return false;
	if (size > 0)
		(void)fcntl(st->relay[0], F_SETPIPE_SZ, size);
	return fd_set_nonblock(st->relay[0], true) == 0 && fd_set_nonblock(st->relay[1], true) == 0;
}

/* The result of one step. */
enum moved { MOVED, NOTHING_NOW, FULL, AT_END };

/* Move at most CHUNK from a pipe into the log alone. */
static enum moved to_log(struct stream *st)
{
	unsigned n = waiting_bytes(st->in);
	char byte;
	ssize_t r;

	if (n > 0)
		return clocked_splice(st, MIN(n, (unsigned)CHUNK)) > 0 ? MOVED : NOTHING_NOW;
	r = read(st->in, &byte, 1);
	if (r == 1)
		clocked_put(st, &byte, 1);
	return r == 1 ? MOVED : r == 0 ? AT_END : NOTHING_NOW;
}

/* tee() returns 0 at the end of file, and also if a process of the room has taken the data away. */
static enum moved nothing_came(const struct stream *st)
{
	struct pollfd p = {.fd = st->in, .events = POLLIN};

	if (poll(&p, 1, 0) != 1)
		return NOTHING_NOW;
	return p.revents & POLLIN ? MOVED : AT_END;
}

static enum moved from_pipe(struct stream *st, int to)
{
	ssize_t n;

	if (to < 0)
		return to_log(st);
	n = tee(st->in, to, CHUNK, SPLICE_F_NONBLOCK);
	if (n > 0) {
		(void)clocked_splice(st, (uint64_t)n);
		return MOVED;
	}
	if (n == 0)
		return nothing_came(st);
	if (errno == EINTR)
		return MOVED;
	if (errno == EAGAIN)
		return waiting_bytes(st->in) > 0 ? FULL : NOTHING_NOW;
	/* Its reader is gone. */
	if (to == st->to)
		close_to(st);
	return FULL;
}

static void on_alarm(int signo)
{
	(void)signo;
}

/* Init may have kept a descriptor of the same open file and can make it blocking at any moment. So
 * a read that blocks is interrupted, and then counts as the end. */
static ssize_t read_terminal(int fd, char *p, size_t n)
{
	static const struct itimerval soon = {{0, TERMINAL_USEC}, {0, TERMINAL_USEC}}, never = {0};
	static bool prepared;
	ssize_t r;
	int e;

	if (!prepared) {
		/* Without SA_RESTART. */
		const struct sigaction a = {.sa_handler = on_alarm};

		if (sigaction(SIGALRM, &a, NULL) < 0)
			return -1;
		prepared = true;
	}
	(void)setitimer(ITIMER_REAL, &soon, NULL);
	r = read(fd, p, n);
	e = errno;
	(void)setitimer(ITIMER_REAL, &never, NULL);
	errno = e;
	return r;
}

/* Read from the terminal into the log and into the pipe `to`, if that is one. */
static enum moved copy_terminal(struct stream *st, int to)
{
	char chunk[16 * 1024];
	ssize_t n = read_terminal(st->in, chunk, sizeof(chunk));

	if (n <= 0)
		return n < 0 && errno == EAGAIN ? NOTHING_NOW : AT_END;
	clocked_put(st, chunk, (size_t)n);
	if (to >= 0)
		(void)!write(to, chunk, (size_t)n);
	return MOVED;
}

/* A terminal's output has to be read; tee() does not work on it. The relay takes the client's copy,
 * so that no write to the client can block. It is empty then, so the copy fits. */
static enum moved from_terminal(struct stream *st)
{
	enum moved r;

	if (st->to >= 0 && !make_relay(st, 0))
		close_to(st);
	if (!feed(st))
		return FULL;
	r = copy_terminal(st, st->relay[1]);
	return r == MOVED && !feed(st) ? FULL : r;
}

static enum moved move(struct stream *st)
{
	/* The client has been told the end; other processes now print only into the log. */
	bool ended = st->task->state == TASK_ENDED;

	if (st->task->tty)
		return ended ? copy_terminal(st, -1) : from_terminal(st);
	return from_pipe(st, ended ? -1 : st->to);
}

static void at_end(struct stream *st)
{
	struct task *t = st->task;

	close_in(st);
	/* Data that the client has not taken yet waits in the relay. */
	if (feed(st))
		close_to(st);
	else
		hold(st);
	task_on_output(t);
}

/* Once, while the command runs: whoever reads its log has to know that it has a gap. */
static void tell_gap(struct task *t)
{
	if (t->log.sys_errno == 0 || t->gap_told)
		return;
	t->gap_told = true;
	output_write_meta(t);
}

static void on_readable(struct loop_io *io, uint32_t events)
{
	struct stream *st = container_of(io, struct stream, in_io);

	for (int i = 0; i < CHUNKS_PER_TURN; i++) {
		switch (move(st)) {
		case MOVED:
			tell_gap(st->task);
			break;
		case NOTHING_NOW:
			return;
		case FULL:
			if (st->to >= 0)
				hold(st);
			return;
		case AT_END:
			at_end(st);
			return;
		}
	}
}

static void on_client(struct loop_io *io, uint32_t events)
{
	struct stream *st = container_of(io, struct stream, to_io);
	struct task *t = st->task;

	if (events & EPOLLERR)
		close_to(st);
	else if (!feed(st))
		return;
	output_go_on(st);
	if (t->state != TASK_ENDED && st->in >= 0)
		return;
	close_to(st);
	task_on_output(t);
}

/* --- the beginning --- */

static bool is_pipe(int fd)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) && (flags & O_ACCMODE) != O_RDONLY;
}

static int make_stream(struct task *t, int which, int *ret_end)
{
	struct stream *st = &t->streams[which - 1];
	int pair[2], r = fd_pipe(pair);

	if (r < 0)
		return r;
	st->in = pair[0];
	*ret_end = pair[1];
	r = fd_set_nonblock(st->in, true);
	if (r == 0)
		r = loop_io_add(t->sup->loop, &st->in_io, st->in, EPOLLIN, on_readable);
	return r;
}

static int make_input(struct task *t, int *ret_end)
{
	int pair[2], r = fd_pipe(pair);

	if (r < 0)
		return r;
	*ret_end = pair[0];
	t->input = pair[1];
	return 0;
}

int output_prepare(struct task *t, const struct ctl_exec *m, struct chan_frame *f, int ret_fds[3])
{
	bool raw = m->flags & CTL_EXEC_RAW;
	unsigned taken = 0;
	int r = 0;

	t->captured = true;
	t->sup->tasks.captured_n++;
	t->input = t->dir = -1;
	t->log = EXECLOG_INIT;
	for (int i = 0; i < 2; i++)
		t->streams[i] = (struct stream){
			.task = t, .which = i + 1, .in = -1, .to = -1, .relay = {-1, -1}};
	for (int i = 0; i < 3; i++) {
		int *fd = m->stdio[i] == CTL_STDIO_FD ? &f->fds[taken++] : NULL;

		if (fd && i > 0 && !raw && !is_pipe(*fd))
			r = -EINVAL;
		else if (fd && i > 0 && !raw)
			t->streams[i - 1].to = TAKE_FD(*fd);
		else if (fd)
			ret_fds[i] = TAKE_FD(*fd);
	}
	if (t->tty || raw || r < 0)
		return r;
	if (m->stdio[0] != CTL_STDIO_FD && m->flags & CTL_EXEC_KEEP_INPUT)
		r = make_input(t, &ret_fds[0]);
	for (int i = 1; i < 3 && r == 0; i++)
		r = make_stream(t, i, &ret_fds[i]);
	return r;
}

static int output_describe(struct task *t, const struct ctl_exec *m)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(MAX_META);
	_cleanup_(freep) char *cwd =
		room_spec_recorded(&t->sup->spec, m->spec.cwd ? m->spec.cwd : "/");
	struct jsonout o = {.b = &b};
	bool cut = false;

	if (!cwd)
		return -ENOMEM;
	jsonout_number(&o, "number", t->shown);
	jsonout_bool(&o, "tty", t->tty);
	jsonout_number(&o, "uid", m->spec.uid);
	jsonout_number(&o, "gid", m->spec.gid);
	jsonout_text(&o, "cwd", cwd);
	jsonout_open(&o, "argv", '[');
	for (size_t i = 0; m->spec.argv[i] && !cut; i++) {
		struct str arg =
			i > 0 && i == m->code_arg ? STR(CTL_CODE) : str_from(m->spec.argv[i]);

		/* An escaped byte takes at most six bytes. */
		cut = buf_len(&b) + arg.n > MAX_ARGS_TEXT || buf_room(&b) / 6 < arg.n + 16;
		if (!cut)
			jsonout_str(&o, NULL, arg);
	}
	jsonout_close(&o, ']');
	jsonout_bool(&o, "argv_cut", cut);
	jsonout_number(&o, "timeout_usec", t->timeout_usec);
	jsonout_number(&o, "started_usec", t->started_real);
	t->described = o.error == 0 ? str_dup(buf_str(&b)) : NULL;
	return t->described ? 0 : -ENOMEM;
}

void output_open_log(struct task *t, const struct ctl_exec *m)
{
	struct sandbox_dir *d = &t->sup->dir;
	char path[sizeof(RUNDIR_EXECS) + 16];
	int r;

	snprintf(path, sizeof(path), RUNDIR_EXECS "/%u", t->shown);
	if (mkdirat(d->fd, path, 0700) == 0)
		t->dir = openat(d->fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = t->dir < 0 ? -errno : execlog_make(&t->log, t->dir, t->sup->start.log_bytes);
	if (r < 0)
		t->log.sys_errno = -r;
	(void)output_describe(t, m);
	output_write_meta(t);
}

/* Return whether the client's pipe has a reader. A reader that is gone is noticed only when
 * something is printed, or here. */
static bool has_reader(const struct stream *st)
{
	struct pollfd p = {.fd = st->to, .events = POLLOUT};

	return st->to >= 0 && !(poll(&p, 1, 0) == 1 && p.revents & POLLERR);
}

int output_share(struct task *t, int fds[2])
{
	if (!t->captured || t->tty || !is_pipe(fds[0]) || !is_pipe(fds[1]))
		return -EINVAL;
	if (has_reader(&t->streams[0]) || has_reader(&t->streams[1]))
		return -EBUSY;
	for (int i = 0; i < 2; i++) {
		close_to(&t->streams[i]);
		output_go_on(&t->streams[i]);
		t->streams[i].to = TAKE_FD(fds[i]);
	}
	return 0;
}

int output_started(struct task *t, int master)
{
	struct stream *st = &t->streams[0];
	int r;

	if (!t->tty)
		return 0;
	st->in = master;
	t->input = fcntl(master, F_DUPFD_CLOEXEC, 3);
	r = t->input < 0 ? -errno : fd_set_nonblock(master, true);
	return r < 0 ? r : loop_io_add(t->sup->loop, &st->in_io, master, EPOLLIN, on_readable);
}

/* --- the end --- */

/* Drain the pipe; data that the client cannot take goes into the relay. The rounds are bounded, as
 * a process of the room may write to the pipe and read from it for ever. */
static void take_left(struct stream *st)
{
	int to = st->to, size = st->in >= 0 ? fcntl(st->in, F_GETPIPE_SZ) : 0;

	for (int i = 0; i < MAX_ROUNDS && st->in >= 0; i++) {
		switch (from_pipe(st, to)) {
		case MOVED:
			break;
		case NOTHING_NOW:
			return;
		case AT_END:
			close_in(st);
			return;
		case FULL:
			/* The client is gone, or its pipe is full, or the relay is full too. */
			to = st->to >= 0 && to == st->to && make_relay(st, size) ? st->relay[1]
										 : -1;
			break;
		}
	}
}

static void take_left_of_terminal(struct stream *st)
{
	enum moved r = MOVED;

	if (st->to >= 0 && make_relay(st, 0))
		(void)fcntl(st->relay[0], F_SETPIPE_SZ, 256 * 1024);
	for (int i = 0; i < MAX_ROUNDS && st->in >= 0 && r == MOVED; i++) {
		r = copy_terminal(st, st->relay[1]);
		(void)feed(st);
	}
	if (r == AT_END)
		close_in(st);
}

void output_exited(struct task *t)
{
	t->input = fd_close(t->input);
	for (int i = 0; i < 2; i++) {
		struct stream *st = &t->streams[i];

		if (t->tty)
			take_left_of_terminal(st);
		else
			take_left(st);
		if (feed(st))
			close_to(st);
		else
			hold(st);
		/* Other processes may still print, from now on only into the log. */
		if (st->in >= 0 && !st->in_io.loop)
			if (loop_io_add(t->sup->loop, &st->in_io, st->in, EPOLLIN, on_readable) < 0)
				close_in(st);
	}
}

bool output_is_delivered(const struct task *t)
{
	return !t->captured || (t->streams[0].to < 0 && t->streams[1].to < 0);
}

bool output_is_closed(const struct task *t)
{
	return !t->captured || (t->streams[0].in < 0 && t->streams[1].in < 0);
}

void output_close(struct task *t)
{
	if (!t->captured)
		return;
	for (int i = 0; i < 2; i++) {
		close_in(&t->streams[i]);
		close_to(&t->streams[i]);
	}
	t->input = fd_close(t->input);
	execlog_done(&t->log);
}

void output_describe_end(struct jsonout *o, const struct task *t)
{
	jsonout_number(o, "ended_usec", t->ended_real);
	ctl_exit_write(&t->result, o);
}

void output_write_meta(struct task *t)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(2 * MAX_META);
	bool ended = t->state == TASK_ENDED, closed = ended && output_is_closed(t);
	struct jsonout o = {.b = &b};

	if (closed)
		execlog_done(&t->log);

	if (t->dir < 0 || !t->described)
		return;
	jsonout_open(&o, NULL, '{');
	jsonout_text(&o, "state", ended ? "exited" : "running");
	jsonout_raw(&o, NULL, str_from(t->described));
	jsonout_number(&o, "pid", t->pid);
	if (ended)
		output_describe_end(&o, t);
	jsonout_bool(&o, "log_closed", closed);
	jsonout_number(&o, "out_bytes", t->log.end);
	jsonout_number(&o, "lost_bytes", t->log.lost);
	jsonout_text(&o, "log_error", t->log.sys_errno ? strerror(t->log.sys_errno) : NULL);
	jsonout_close(&o, '}');
	if (o.error == 0 && buf_add_char(&b, '\n') == 0)
		(void)!fs_write_atomic(t->dir, RUNDIR_META, buf_str(&b), 0600, false, NULL);
	/* There may be many ended processes, but only few descriptors. */
	if (closed && !t->unrecorded)
		t->dir = fd_close(t->dir);
}

uint64_t output_size(const struct task *t)
{
	return t->log.end - t->log.first + (t->log.index_end - t->log.index_first);
}

void output_remove(struct task *t)
{
	char path[sizeof(RUNDIR_EXECS) + 16];

	if (!t->captured)
		return;
	output_close(t);
	t->sup->tasks.captured_n--;
	t->captured = false;
	snprintf(path, sizeof(path), RUNDIR_EXECS "/%u", t->shown);
	fs_remove_tree(t->sup->dir.fd, path);
	t->dir = fd_close(t->dir);
	free(t->described);
	t->described = NULL;
	clocked_done(t);
}
