/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: "cloche-init connect PORT" is a process of the room like any other, without
 * rights of its own. For each byte on descriptor 0 it connects to that port of the room's loopback
 * and sends the connection out (ipc/forward.h). It ends with its socket. */
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

int connect_main(const char *port_text)
{
	uint64_t port;
	char byte;

	/* The socket leads out of the room, though only to cloche-forward. */
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		return 1;
	if (parse_u64(str_from(port_text), UINT16_MAX, &port) < 0 || port == 0)
		return 2;
	while (read(FORWARD_FD_INSIDE, &byte, 1) == 1) {
		int fd = dial((uint16_t)port);
		bool ok = answer(fd);

		fd_close(fd);
		if (!ok)
			return 1;
	}
	return 0;
}
