/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: "cloche-init connect PORT" is a process of the room like any other, without
 * rights of its own. For each byte on descriptor 0 it connects to that port of the room's loopback
 * and sends the connection out (ipc/forward.h). It ends with its socket. "cloche-init reach PORT"
 * connects once and copies. */
#include "base/fd.h"
#include "base/parse.h"
#include "init/program.h"
#include "ipc/forward.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE_MS = 5000 };

/* Return a connected socket, or -1. It stays non-blocking; the receiver assumes nothing about
 * it. */
static int dial_one(const void *address, socklen_t n, int domain)
{
	_cleanup_fd_ int fd = socket(domain, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	int error = 0;
	socklen_t error_n = sizeof(error);

	if (fd < 0)
		return -1;
	if (connect(fd, address, n) == 0)
		return TAKE_FD(fd);
	/* A listener with a full queue does not answer. */
	if (errno != EINPROGRESS || poll(&p, 1, PATIENCE_MS) <= 0 ||
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_n) < 0 || error != 0)
		return -1;
	return TAKE_FD(fd);
}

static int dial(uint16_t port)
{
	const struct sockaddr_in v4 = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr = {htonl(INADDR_LOOPBACK)}};
	const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
		.sin6_port = htons(port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = dial_one(&v4, sizeof(v4), AF_INET);

	return fd >= 0 ? fd : dial_one(&v6, sizeof(v6), AF_INET6);
}

static bool answer(int fd)
{
	union fd_control control;
	char byte = fd >= 0 ? FORWARD_YES : FORWARD_NO;
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (fd >= 0)
		fd_attach(&msg, &control, &fd, 1);
	do
		n = sendmsg(FORWARD_FD_INSIDE, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

/* The port of an argument, or 0. The socket leads out of the room, though only to cloche-forward.
 */
static uint16_t take_port(const char *text)
{
	uint64_t port;

	return prctl(PR_SET_DUMPABLE, 0) == 0 && parse_u64(str_from(text), UINT16_MAX, &port) == 0
		       ? (uint16_t)port
		       : 0;
}

int connect_main(const char *port_text)
{
	uint16_t port = take_port(port_text);
	char byte;

	if (port == 0)
		return 2;
	while (read(FORWARD_FD_INSIDE, &byte, 1) == 1) {
		int fd = dial(port);
		bool ok = answer(fd);

		fd_close(fd);
		if (!ok)
			return 1;
	}
	return 0;
}

/* --- one connection, by copying --- */

/* Bytes in transit in one direction. */
struct way {
	int from, to;
	size_t head, tail;
	bool ended; /* and what came before that was written */
	char mem[32 * 1024];
};

static bool is_later(ssize_t n)
{
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Read and write what can be read and written now. Return false if the connection is broken. */
static bool way_move(struct way *w)
{
	ssize_t n;

	if (w->ended)
		return true;
	if (w->head == w->tail) {
		n = recv(w->from, w->mem, sizeof(w->mem), MSG_DONTWAIT);
		if (n < 0)
			return is_later(n);
		w->head = 0;
		w->tail = (size_t)n;
		w->ended = n == 0;
	}
	if (w->ended) {
		/* It may fail if the other side is gone already. */
		(void)shutdown(w->to, SHUT_WR);
		return true;
	}
	n = send(w->to, w->mem + w->head, w->tail - w->head, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n > 0)
		w->head += (size_t)n;
	return n >= 0 || is_later(n);
}

static int copy(int room)
{
	static struct way ways[2];
	bool ok = true;

	for (int i = 0; i < 2; i++) {
		ways[i].from = i ? room : FORWARD_FD_INSIDE;
		ways[i].to = i ? FORWARD_FD_INSIDE : room;
	}
	while (ok && !(ways[0].ended && ways[1].ended)) {
		struct pollfd p[2];

		for (int i = 0; i < 2; i++) {
			const struct way *w = &ways[i];
			bool writes = w->head < w->tail;

			/* One that has ended would be reported for ever. */
			p[i] = (struct pollfd){.fd = w->ended ? -1
						     : writes ? w->to
							      : w->from,
				.events = writes ? POLLOUT : POLLIN};
		}
		ok = poll(p, 2, -1) >= 0 || errno == EINTR;
		for (int i = 0; i < 2 && ok; i++)
			ok = way_move(&ways[i]);
	}
	return ok ? 0 : 1;
}

int reach_main(const char *port_text)
{
	uint16_t port = take_port(port_text);
	_cleanup_fd_ int fd = port ? dial(port) : -1;
	const char byte = fd >= 0 ? FORWARD_YES : FORWARD_NO;

	if (port == 0)
		return 2;
	if (send(FORWARD_FD_INSIDE, &byte, 1, MSG_NOSIGNAL) != 1)
		return 1;
	return fd < 0 ? 1 : copy(fd);
}
