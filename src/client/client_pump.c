/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: our ends of the pipes are non-blocking, so only the loop ever waits. The
 * caller's own descriptor may be shared with other processes, so its flags are not changed: it is
 * read only if the loop says that it is readable, or if it is a file, which always is (epoll does
 * not take files).
 *
 * A process that has ended may leave children that hold its pipes, so end-of-file may never come.
 * What it wrote itself was in the pipe when its end was reported: reading at most what a pipe can
 * hold gets all of it, however much the children go on writing. */
#include "base/clock.h"
#include "base/fd.h"
#include "client/client_internal.h"
#include "job/job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { TTY_DRAIN_MS = 200, TTY_QUIET_MS = 30, TTY_CAPACITY = 256 * 1024, EOT = 4 };

/* A pipe whose end `mine` (0 or 1) is ours and non-blocking. */
static int make_pipe(int mine, int *ret_mine, int *ret_child)
{
	int fds[2], r = fd_pipe(fds);

	if (r < 0)
		return r;
	r = fd_set_nonblock(fds[mine], true);
	if (r < 0) {
		fd_close(fds[0]);
		fd_close(fds[1]);
		return r;
	}
	*ret_mine = fds[mine];
	*ret_child = fds[1 - mine];
	return 0;
}

static int init_stream(struct pump *p, int i, int *ret_child, enum ctl_stdio *ret_stdio)
{
	const struct client_io *io = p->io;
	int r = 0;

	*ret_stdio = CTL_STDIO_FD;
	if (i == 0 && io->input == CLIENT_INPUT_PASS) {
		*ret_child = fcntl(io->fd, F_DUPFD_CLOEXEC, 3);
		return *ret_child < 0 ? -errno : 0;
	}
	if (i == 0 && io->input != CLIENT_INPUT_NONE)
		r = make_pipe(1, &p->in_to, ret_child);
	else if (i > 0 && io->write)
		r = make_pipe(0, &p->out[i - 1], ret_child);
	else
		*ret_stdio = CTL_STDIO_NULL;
	return r;
}

static int init_input(struct pump *p, struct client_io *io)
{
	*p = (struct pump){.io = io, .in_from = -1, .in_to = -1, .out = {-1, -1}};
	if (io->input == CLIENT_INPUT_BYTES)
		p->in = io->bytes;
	if (io->input != CLIENT_INPUT_FD)
		return 0;
	p->in_from = io->fd;
	p->in_buf = malloc(CLIENT_CHUNK);
	return p->in_buf ? 0 : -ENOMEM;
}

int pump_init(struct pump *p, struct client_io *io, bool tty, bool tty_pipe, int ret_child[3],
	enum ctl_stdio ret_stdio[3], struct cloche_err *err)
{
	int r = init_input(p, io);

	p->tty = tty;
	p->tty_pipe = tty && tty_pipe;
	p->from_terminal = tty && p->in_from >= 0 && isatty(p->in_from);
	if (r < 0)
		return err_nomem(err);
	for (int i = 0; i < 3 && r == 0; i++)
		if (!tty || (tty_pipe && i == 1))
			r = init_stream(p, i, &ret_child[i], &ret_stdio[i]);
	return r < 0 ? err_sys(err, -r, "make a pipe") : 0;
}

int pump_init_joined(struct pump *p, struct client_io *io, int child[3], struct cloche_err *err)
{
	int r = init_input(p, io);

	if (r < 0)
		return err_nomem(err);
	for (int i = 0; child && i < 2 && r == 0; i++)
		r = make_pipe(0, &p->out[i], &child[i + 1]);
	return r < 0 ? err_sys(err, -r, "make a pipe") : 0;
}

/* A terminal has no half-close. The end-of-file character means the same to a program that reads
 * lines. */
static void end_terminal_input(int fd)
{
	const char eot = EOT;
	ssize_t n = write(fd, &eot, 1);

	(void)n;
}

static void drop_input(struct pump *p)
{
	loop_io_remove(&p->streams[PUMP_IN_FROM].io);
	loop_io_remove(&p->streams[PUMP_IN_TO].io);
	p->in_to = fd_close(p->in_to);
	if (p->in_from >= 0 && p->io->input_ended)
		p->io->input_ended(p->io->user);
	p->in_from = -1;
}

static void end_input(struct pump *p)
{
	if (p->tty && p->in_to >= 0)
		end_terminal_input(p->in_to);
	drop_input(p);
}

static void drop_output(struct pump *p, int i)
{
	loop_io_remove(&p->streams[PUMP_OUT + i].io);
	p->out[i] = fd_close(p->out[i]);
}

void pump_done(struct pump *p)
{
	drop_input(p);
	drop_output(p, 0);
	drop_output(p, 1);
	free(p->in_buf);
	p->in_buf = NULL;
}

int pump_take_input(struct pump *p, int fd)
{
	int r = fd_set_nonblock(fd, true);
	bool none = p->io->input == CLIENT_INPUT_NONE;

	if (r == 0 && none && p->tty)
		end_terminal_input(fd);
	if (p->tty && !p->tty_pipe) {
		p->out[0] = fd;
		p->in_to = r == 0 && !none ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;
		return r == 0 && !none && p->in_to < 0 ? -errno : r;
	}
	if (none)
		fd_close(fd);
	else
		p->in_to = fd;
	return r;
}

static void on_stream(struct loop_io *io, uint32_t events)
{
	container_of(io, struct pump_stream, io)->came = events;
}

/* fd -1: do not wait for it now. */
static int watch_stream(struct pump_stream *s, struct loop *l, int fd, uint32_t events)
{
	s->came = 0;
	if (fd < 0) {
		loop_io_remove(&s->io);
		return 0;
	}
	if (!s->io.loop)
		return loop_io_add(l, &s->io, fd, events, on_stream);
	loop_io_set(&s->io, events);
	return 0;
}

int pump_watch(struct pump *p, struct loop *l)
{
	bool full = p->in.n > 0, idle = full || p->in_to < 0 || p->from_always;
	int r = watch_stream(&p->streams[PUMP_IN_FROM], l, idle ? -1 : p->in_from, EPOLLIN);
	bool more;

	/* EPERM is a file. If the descriptor is invalid, read() reports it. */
	if (r == -EPERM || r == -EBADF) {
		p->from_always = true;
		r = 0;
	}
	/* Watch it even with nothing to write, to notice when the reader closes its end. */
	more = p->io->input != CLIENT_INPUT_FD || p->from_always;
	if (r == 0)
		r = watch_stream(&p->streams[PUMP_IN_TO], l, p->in_to, full || more ? EPOLLOUT : 0);
	for (int i = 0; r == 0 && i < 2; i++)
		r = watch_stream(&p->streams[PUMP_OUT + i], l, p->out[i], EPOLLIN);
	return r;
}

/* Gets the next piece of input; closes the input at its end. */
static void fill_input(struct pump *p, bool from_ready)
{
	ssize_t n = 0;

	if (p->io->input == CLIENT_INPUT_FD) {
		if (!from_ready)
			return;
		n = read(p->in_from, p->in_buf, CLIENT_CHUNK - 1);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n > 0 && p->io->filter) {
			n = p->io->filter(p->io->user, p->in_buf, (size_t)n);
			p->left |= n < 0;
			if (n <= 0)
				return;
		}
	}
	if (n > 0)
		p->in = str_make(p->in_buf, (size_t)n);
	else if (p->from_terminal)
		/* Our terminal has vanished; the user has not typed an end-of-file. */
		p->in_from = -1;
	else {
		/* A pipe cannot pass on that this is no end-of-file. */
		p->in_errno = n < 0 ? errno : 0;
		end_input(p);
	}
}

void pump_forget_sigpipe(void)
{
	const struct timespec now = {0};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	while (sigtimedwait(&set, NULL, &now) < 0 && errno == EINTR)
		;
}

static void write_input(struct pump *p)
{
	ssize_t n = write(p->in_to, p->in.p, p->in.n);

	if (n >= 0) {
		p->in = str_from_index(p->in, (size_t)n);
	} else if (errno != EAGAIN && errno != EINTR) {
		/* The process has closed its input, which is fine. In a job, the next wait would
		 * let the signal through to the thread, which has it unblocked. */
		if (!p->sigpipe_pending)
			pump_forget_sigpipe();
		p->in = STR_NULL;
		drop_input(p);
	}
}

static void move_input(struct pump *p)
{
	if (p->in_to < 0)
		return;
	if (p->in.n == 0) {
		if (p->streams[PUMP_IN_TO].came & (EPOLLERR | EPOLLHUP)) {
			drop_input(p);
			return;
		}
		fill_input(p, p->from_always || p->streams[PUMP_IN_FROM].came != 0);
	}
	if (p->in_to >= 0 && p->in.n > 0)
		write_input(p);
}

static void hand_on(struct pump *p, int i, const char *chunk, size_t n)
{
	uint64_t limit = p->io->output_limit, before = p->bytes[i];

	p->bytes[i] += n;
	if (limit && p->bytes[i] > limit) {
		p->truncated[i] = true;
		n = before >= limit ? 0 : (size_t)(limit - before);
	}
	if (n > 0 && p->io->write && p->io->write(p->io->user, i + 1, chunk, n) < 0)
		drop_output(p, i);
}

/* Return the number of bytes read, 0 if there are none now, or -1 at the end. */
static ssize_t read_output(struct pump *p, int i, char *chunk)
{
	ssize_t n = read(p->out[i], chunk, CLIENT_CHUNK);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		drop_output(p, i);
		return -1;
	}
	hand_on(p, i, chunk, (size_t)n);
	return n;
}

void pump_move(struct pump *p, char *chunk)
{
	move_input(p);
	for (int i = 0; i < 2; i++)
		if (p->out[i] >= 0 && p->streams[PUMP_OUT + i].came)
			(void)read_output(p, i, chunk);
}

/* What is written to a terminal reaches its master a little later, through a kernel thread. The
 * hang-up comes after all data; without one, nothing has come for quiet_ms. */
static void drain_terminal(struct pump *p, char *chunk, int quiet_ms)
{
	uint64_t until = clock_mono_usec() + TTY_DRAIN_MS * USEC_PER_MSEC;
	size_t left = TTY_CAPACITY;

	while (p->out[0] >= 0 && left > 0) {
		uint64_t now = clock_mono_usec();
		ssize_t n;

		if (now >= until ||
			job_wait_fd(p->out[0], POLLIN,
				MIN(quiet_ms, (int)((until - now) / USEC_PER_MSEC) + 1)) <= 0)
			return;
		n = read_output(p, 0, chunk);
		left -= n > 0 ? MIN(left, (size_t)n) : 0;
	}
}

void pump_drain(struct pump *p, char *chunk)
{
	if (p->tty && !p->tty_pipe) {
		drain_terminal(p, chunk, TTY_DRAIN_MS);
		return;
	}
	for (int i = 0; i < 2; i++) {
		int capacity = p->out[i] >= 0 ? fcntl(p->out[i], F_GETPIPE_SZ) : 0;
		size_t left = capacity > 0 ? (size_t)capacity : 0;

		while (p->out[i] >= 0 && left > 0) {
			ssize_t n = read_output(p, i, chunk);

			if (n <= 0)
				break;
			left -= MIN(left, (size_t)n);
		}
	}
}

void pump_settle(struct pump *p, char *chunk)
{
	drain_terminal(p, chunk, TTY_QUIET_MS);
}
