/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: input that is written while the command runs goes through a pair of stream
 * sockets, whose other end the client reads as it reads any descriptor. So the kernel's buffer is
 * the window, and a terminal, a joined command and a record need nothing of their own. If a write
 * finds it full, the client's loop watches for room: the job then has something to do, and gives
 * way again. */
#include "api/run/run.h"
#include "base/fd.h"

#include <errno.h>
#include <sys/socket.h>

static int input_execute(void *user, cloche_err *err)
{
	return cloche_run_execute(user, err);
}

int cloche_run_start(cloche_run *run, cloche_job **ret, cloche_err *err)
{
	return cloche_job_start(input_execute, run, ret, err);
}

void cloche_run_close_input(cloche_run *run)
{
	loop_io_remove(&run->input_io);
	run->input = fd_close(run->input);
}

void run_drop_input(cloche_run *run)
{
	cloche_run_close_input(run);
	run->input_command = fd_close(run->input_command);
}

/* The client reads no more. */
static void input_ended(void *user)
{
	run_drop_input(user);
}

static int input_open(cloche_run *run, struct cloche_err *err)
{
	int fds[2], r;

	if (run->code)
		return err_set(
			err, E_USAGE, "code takes no input: its standard input carries the code");
	if (run->detached)
		return err_set(err, E_USAGE, "nobody can write input to a detached command");
	if (atomic_load(&run->executed))
		return err_set(
			err, E_USAGE, "input that is written has to be announced before the run");
	r = fd_socketpair(SOCK_STREAM, fds);
	if (r < 0)
		return err_sys(err, -r, "make a socket");
	run->input = fd_lift(fds[0]);
	run->input_command = fd_lift(fds[1]);
	if (run->input < 0 || run->input_command < 0) {
		r = MIN(run->input, run->input_command);
		run_drop_input(run);
		return err_sys(err, -r, "make a socket");
	}
	run->input_streams = true;
	run->io.input = CLIENT_INPUT_FD;
	run->io.fd = run->input_command;
	run->io.input_ended = input_ended;
	return 0;
}

static void input_has_room(struct loop_io *io, uint32_t events)
{
	loop_io_remove(io);
	container_of(io, struct cloche_run, input_io)->input_full = false;
}

void run_watch_input(cloche_run *run)
{
	struct client *client = atomic_load(&run->client);

	/* If this fails, the caller only is not told. */
	if (client && run->input_full && run->input >= 0 && !run->input_io.loop)
		(void)!loop_io_add(
			client_loop(client), &run->input_io, run->input, EPOLLOUT, input_has_room);
}

int cloche_run_write_input(
	cloche_run *run, const void *data, size_t length, size_t *ret_taken, cloche_err *err)
{
	size_t taken = 0;
	int r = run->input_streams ? 0 : input_open(run, err);

	if (r < 0)
		return r;
	while (run->input >= 0 && taken < length) {
		ssize_t n = send(run->input, (const char *)data + taken, length - taken,
			MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n >= 0) {
			taken += (size_t)n;
		} else if (errno == EAGAIN) {
			run->input_full = true;
			run_watch_input(run);
			break;
		} else if (errno != EINTR) {
			return err_sys(err, errno, "write input");
		}
	}
	*ret_taken = run->input >= 0 ? taken : length;
	return 0;
}
