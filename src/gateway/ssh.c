/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: no byte of SSH is read here. The connection goes to a process that speaks
 * SSH, which the supervisor starts, and a socket to that process takes its place: what comes from
 * it is one request, then what git sends. It has read what the room sends, so it is trusted no more
 * than the room. Number, addresses and limits of the connection stay those of the room's. */
#include "gateway/ssh.h"
#include "base/clock.h"
#include "base/fd.h"
#include "gateway/conn.h"
#include "gateway/state.h"
#include "gateway/tunnel.h"
#include "ipc/helper.h"
#include "ipc/sshleg.h"

#include <sys/socket.h>
#include <unistd.h>

#define SSH_REQUEST_USEC (90 * USEC_PER_SEC)
enum { SSH_READ = 4096 };

static void ssh_readable(struct conn *c)
{
	struct sshleg_request m;
	ssize_t n;
	char *at;

	if (buf_reserve(&c->in, SSH_READ, &at) < 0) {
		conn_close(c);
		return;
	}
	n = conn_read(c, at, SSH_READ);
	if (n == -EAGAIN)
		return;
	if (n <= 0) {
		conn_close(c);
		return;
	}
	buf_commit(&c->in, (size_t)n);
	n = sshleg_take_request(buf_str(&c->in), &m);
	if (n < 0 || (n == 0 && buf_len(&c->in) > 2 * SSHLEG_MAX_RECORD))
		conn_close(c);
	else if (n > 0)
		tunnel_start_ssh(c, &m, (size_t)n);
}

static const struct stage ssh_stage = {
	.opens = true,
	.readable = ssh_readable,
	.expired = conn_close,
};

void ssh_start(struct conn *c)
{
	struct gateway *g = c->g;
	int pair[2], r;

	if (fd_socketpair(SOCK_STREAM, pair) < 0) {
		conn_close(c);
		return;
	}
	/* The process waits on its end. */
	r = fd_set_nonblock(pair[0], true);
	if (r == 0)
		r = helper_send_ssh(&g->supervisor, (int[]){c->fd, pair[1]});
	fd_close(pair[1]);
	if (r < 0)
		fd_close(pair[0]);
	if (r < 0 || conn_replace(c, pair[0]) < 0) {
		conn_close(c);
		return;
	}
	gateway_flush_supervisor(g);
	conn_set_stage(c, &ssh_stage);
	conn_set_timeout(c, SSH_REQUEST_USEC);
}
