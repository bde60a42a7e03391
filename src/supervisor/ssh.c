/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: gateway and broker each ask for the end of a connection of SSH that is
 * theirs (HELPER_SSH). It is a process of its own for one connection. What it is follows from who
 * asked, and from nothing that was sent; the descriptors are only handed on. It ends by itself when
 * either of them does, and with the supervisor at the latest. */
#include "base/program.h"
#include "ipc/sshleg.h"
#include "supervisor/supervisor.h"

#include <utlist.h>

enum { SSH_ENDS_MAX = 64 };

struct ssh_end {
	struct ssh_end *prev, *next;
	struct child child;
	struct supervisor *sup;
};

static void ssh_on_death(struct loop_io *io, uint32_t events)
{
	struct ssh_end *end = container_of(io, struct ssh_end, child.death);
	struct supervisor *s = end->sup;

	(void)child_reap(&end->child);
	DL_DELETE(s->net.ssh_ends, end);
	free(end);
	sandbox_check_end(s);
}

void ssh_stop(struct supervisor *s)
{
	struct ssh_end *end;

	DL_FOREACH (s->net.ssh_ends, end)
		child_kill(&end->child);
}

void ssh_start(struct supervisor *s, bool room, int peer, int plain)
{
	const char *const argv[] = {"cloche-ssh", room ? "room" : "origin", NULL};
	const struct program_fd fds[] = {{peer, SSHLEG_FD_PEER}, {plain, SSHLEG_FD_PLAIN}};
	const struct program_spawn spawn = {
		.argv = argv, .fds = fds, .fds_n = ARRAY_SIZE(fds), .stdio = {-1, -1, 2}};
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct ssh_end *end;
	int n;

	if (s->state >= SUP_KILLED)
		return;
	DL_COUNT(s->net.ssh_ends, end, n);
	end = n < SSH_ENDS_MAX ? calloc(1, sizeof(*end)) : NULL;
	if (!end)
		return;
	end->sup = s;
	if (program_start(&spawn, &end->child.pid, &end->child.pidfd, &err) < 0) {
		free(end);
		return;
	}
	if (loop_io_add(s->loop, &end->child.death, end->child.pidfd, EPOLLIN, ssh_on_death) < 0) {
		child_kill(&end->child);
		(void)child_reap(&end->child);
		free(end);
		return;
	}
	DL_APPEND(s->net.ssh_ends, end);
}
