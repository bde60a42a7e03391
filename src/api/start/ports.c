/* SPDX-License-Identifier: Apache-2.0 */
#include "api/start/ports.h"
#include "base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>

enum { PORTS_BACKLOG = 128 };

int ports_listen(const char *address, uint16_t port, uint16_t *ret_port, struct cloche_err *err)
{
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(port)};
	socklen_t size = sizeof(addr);
	const int on = 1;

	if (inet_pton(AF_INET, address, &addr.sin_addr) != 1)
		return err_set(err, E_USAGE, "%s is not an address", address);
	if (fd < 0)
		return err_sys(err, errno, "make a socket");
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, PORTS_BACKLOG) < 0) {
		int e = errno;

		err_sys(err, e, "port %u of this machine", port);
		if (e == EADDRINUSE)
			err_hint(err, "leave out the port to get any free one");
		return -E_SYSTEM;
	}
	if (getsockname(fd, (struct sockaddr *)&addr, &size) < 0)
		return err_sys(err, errno, "look at the socket");
	*ret_port = ntohs(addr.sin_port);
	return TAKE_FD(fd);
}

int ports_publish(const cloche_sandbox *sb, struct client *client, struct cloche_err *err)
{
	int r = sb->published ? client_wait_started(client, err) : 0;

	for (char **v = sb->published; r == 0 && v && *v; v++) {
		struct sandbox_published p;
		struct ctl_forward m = {0};
		_cleanup_fd_ int fd = -1;

		if (!sandbox_published(*v, &p))
			return err_set(err, E_USAGE, "--publish %s is malformed", *v);
		fd = ports_listen(p.address, p.host, &m.host_port, err);
		if (fd < 0)
			return fd;
		m.guest_port = p.guest;
		m.host_address = str_from(p.address);
		r = client_forward(client, &m, fd, err);
	}
	return r;
}
