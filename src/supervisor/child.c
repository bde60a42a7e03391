/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that the supervisor starts, and the channels to them and to the room's init. */
#include "base/fd.h"
#include "base/program.h"
#include "supervisor/supervisor.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

int child_start(struct child *c, struct loop *loop, const char *name, const struct program_fd *fds,
	size_t fds_n, loop_io_fn on_death, struct cloche_err *err)
{
	const char *const argv[] = {name, NULL};
	const struct program_spawn spawn = {
		.argv = argv, .fds = fds, .fds_n = fds_n, .stdio = {-1, -1, 2}};
	int r = program_start(&spawn, &c->pid, &c->pidfd, err);

	if (r < 0)
		return r;
	r = loop_io_add(loop, &c->death, c->pidfd, EPOLLIN, on_death);
	if (r == 0)
		return 0;
	child_kill(c);
	child_reap(c);
	return err_sys(err, -r, "watch %s", name);
}

void child_kill(const struct child *c)
{
	if (c->pid > 0)
		kill(c->pid, SIGKILL);
}

int child_reap(struct child *c)
{
	int status = 0;

	loop_io_remove(&c->death);
	c->pidfd = fd_close(c->pidfd);
	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	c->pid = 0;
	return status;
}

int conn_open(struct conn *c, struct loop *loop, int fd, size_t max_payload, size_t max_out,
	loop_io_fn on_io)
{
	int r = chan_init(&c->chan, fd, max_payload, max_out);

	c->open = true;
	return r < 0 ? r : loop_io_add(loop, &c->io, c->chan.fd, EPOLLIN, on_io);
}

int conn_flush(struct conn *c)
{
	int r = chan_flush(&c->chan);

	if (r == 0)
		loop_io_set(&c->io, chan_pending(&c->chan) ? EPOLLIN | EPOLLOUT : EPOLLIN);
	return r;
}

void conn_close(struct conn *c)
{
	if (!c->open)
		return;
	loop_io_remove(&c->io);
	chan_done(&c->chan);
	c->open = false;
}
