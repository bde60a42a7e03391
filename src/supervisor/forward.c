/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a port is forwarded by a program of its own (cloche-forward), which gets the
 * client's listening socket and a socket on which it asks for connections (ipc/forward.h). In a
 * room of this machine the answers come from one process of the room, which sends what it has
 * connected. No connection can be sent from a room elsewhere, so there the answers are ours: each
 * is a socket whose other end a process there gets, which copies. The supervisor ends all of
 * them. */
#include "ipc/forward.h"
#include "base/fd.h"
#include "base/program.h"
#include "ipc/roomctl.h"
#include "supervisor/supervisor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <utlist.h>

enum { MAX_FORWARDS = 64, ANSWERS_PER_TURN = 64 };

static void forward_free(struct forward *f)
{
	loop_io_remove(&f->asks);
	fd_close(f->asks_fd);
	free(f->host_address);
	free(f);
}

static void forward_on_death(struct loop_io *io, uint32_t events)
{
	struct forward *f = container_of(io, struct forward, child.death);
	struct supervisor *s = f->sup;

	child_reap(&f->child);
	DL_DELETE(s->forwards, f);
	forward_free(f);
	if (s->state == SUP_UP)
		record_update(s);
}

/* Return whether fd is a TCP socket that listens on loopback only; *ret_port is its port. */
static bool forward_is_loopback(int fd, uint16_t *ret_port)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} a = {0};
	socklen_t n = sizeof(a), int_n = sizeof(int);
	int protocol = 0, listens = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &int_n) < 0 ||
		protocol != IPPROTO_TCP ||
		getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &int_n) < 0 || !listens ||
		getsockname(fd, &a.any, &n) < 0)
		return false;
	*ret_port = ntohs(a.any.sa_family == AF_INET6 ? a.v6.sin6_port : a.v4.sin_port);
	if (a.any.sa_family == AF_INET)
		return ntohl(a.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return a.any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr);
}

/* Start cloche-init in that mode in the room, with a socket as its descriptor 0. */
static int forward_start_inside(
	struct supervisor *s, char *mode, uint16_t port, int *ret_ours, struct cloche_err *err)
{
	char init[] = ROOMCTL_INIT_PATH, text[8];
	char *argv[] = {init, mode, text, NULL};
	struct exec_spec spec;
	_cleanup_fd_ int theirs = -1;
	int pair[2], r = fd_socketpair(SOCK_STREAM, pair);

	if (r < 0)
		return err_sys(err, -r, "make a socket");
	theirs = pair[1];
	snprintf(text, sizeof(text), "%u", port);
	exec_spec_init(&spec);
	spec.argv = argv;
	if (!task_internal(s, &spec, theirs)) {
		fd_close(pair[0]);
		return err_set(err, E_BUSY, "the sandbox takes no more processes");
	}
	*ret_ours = pair[0];
	return 0;
}

/* --- rooms elsewhere --- */

static bool forward_answer(struct forward *f)
{
	char mode[] = FORWARD_MODE_COPY, byte = FORWARD_YES;
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	union fd_control control;
	_cleanup_fd_ int fd = -1;

	if (forward_start_inside(f->sup, mode, f->guest_port, &fd, NULL) < 0)
		byte = FORWARD_NO;
	else
		fd_attach(&msg, &control, &fd, 1);
	return sendmsg(f->asks_fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

static void forward_on_asks(struct loop_io *io, uint32_t events)
{
	struct forward *f = container_of(io, struct forward, asks);
	char asked[ANSWERS_PER_TURN];
	ssize_t n = recv(f->asks_fd, asked, sizeof(asked), MSG_DONTWAIT);
	bool ok = n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));

	for (ssize_t i = 0; i < n && ok; i++)
		ok = forward_answer(f);
	/* Then it ends, too. */
	if (!ok) {
		loop_io_remove(&f->asks);
		f->asks_fd = fd_close(f->asks_fd);
	}
}

/* --- the program --- */

static int forward_start_program(
	struct forward *f, int listener, int asks, int number, struct cloche_err *err)
{
	const struct program_fd fds[] = {{listener, FORWARD_FD_LISTENER}, {asks, number}};

	return child_start(&f->child, f->sup->loop, "cloche-forward", fds, ARRAY_SIZE(fds),
		forward_on_death, err);
}

static int forward_begin_here(struct forward *f, int listener, struct cloche_err *err)
{
	char mode[] = FORWARD_MODE_SEND;
	_cleanup_fd_ int inside = -1;
	int r = forward_start_inside(f->sup, mode, f->guest_port, &inside, err);

	return r < 0 ? r : forward_start_program(f, listener, inside, FORWARD_FD_ROOM, err);
}

static int forward_begin_elsewhere(struct forward *f, int listener, struct cloche_err *err)
{
	_cleanup_fd_ int theirs = -1;
	int pair[2], r = fd_socketpair(SOCK_STREAM, pair);

	if (r < 0)
		return err_sys(err, -r, "make a socket");
	f->asks_fd = pair[0];
	theirs = pair[1];
	r = loop_io_add(f->sup->loop, &f->asks, f->asks_fd, EPOLLIN, forward_on_asks);
	if (r < 0)
		return err_sys(err, -r, "watch a socket");
	return forward_start_program(f, listener, theirs, FORWARD_FD_SUPERVISOR, err);
}

/* Without a network of its own nothing listens in a room: the port would be open, and lead nowhere.
 */
static int forward_check(const struct supervisor *s, struct cloche_err *err)
{
	const char *isolation = room_isolation(s->room);

	if (strcmp(isolation, provider_isolation("native")) == 0)
		return 0;
	err_set(err, E_UNSUPPORTED, "no port leads into a sandbox with isolation %s", isolation);
	err_hint(err, s->spec.net == ROOM_NET_HOST
			      ? "with --net host, what listens inside does so on this machine: ask "
				"its own port"
			      : "nothing can listen there: use another provider");
	return -E_UNSUPPORTED;
}

static int forward_begin(
	struct supervisor *s, const struct ctl_forward *m, int listener, struct cloche_err *err)
{
	struct forward *f;
	int n, r = forward_check(s, err);

	if (r < 0)
		return r;
	DL_COUNT(s->forwards, f, n);
	if (n >= MAX_FORWARDS)
		return err_set(err, E_LIMIT, "the sandbox has %d forwarded ports already", n);
	f = calloc(1, sizeof(*f));
	if (!f)
		return err_nomem(err);
	*f = (struct forward){
		.sup = s, .guest_port = m->guest_port, .host_port = m->host_port, .asks_fd = -1};
	f->host_address = str_dup(m->host_address);
	if (!f->host_address)
		r = err_nomem(err);
	else if (s->spec.place)
		r = forward_begin_elsewhere(f, listener, err);
	else
		r = forward_begin_here(f, listener, err);
	if (r < 0) {
		forward_free(f);
		return r;
	}
	DL_APPEND(s->forwards, f);
	record_update(s);
	return 0;
}

bool forward_on_request(struct peer *p, struct chan_frame *frame)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct ctl_forward m;
	uint16_t port;
	int r;

	if (!ctl_get_forward(frame->payload, &m) || frame->fds_n != 1)
		return false;
	if (!forward_is_loopback(frame->fds[0], &port))
		r = err_set(&err, E_DENIED,
			"only TCP sockets that listen on the host's loopback are forwarded");
	else if (port != m.host_port)
		r = err_set(&err, E_USAGE, "the socket listens on port %u, not on %u", port,
			m.host_port);
	else
		r = forward_begin(p->sup, &m, frame->fds[0], &err);
	if (r < 0)
		request_refuse(p, CTL_FORWARD, &err);
	else
		peer_sent(p, ctl_send_forwarded(&p->chan));
	return true;
}

void forwards_stop(struct supervisor *s)
{
	struct forward *f, *tmp;

	DL_FOREACH_SAFE (s->forwards, f, tmp) {
		child_kill(&f->child);
		child_reap(&f->child);
		DL_DELETE(s->forwards, f);
		forward_free(f);
	}
}
