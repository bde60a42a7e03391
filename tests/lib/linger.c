/* SPDX-License-Identifier: Apache-2.0 */
#include "linger.h"
#include "tap.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

int linger_socket(void)
{
	static int listener = -1; /* its queue is the other end */
	const struct linger linger = {.l_onoff = 1, .l_linger = LINGER_SECONDS};
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);
	static const char bytes[65536];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (listener < 0) {
		listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		must(listener >= 0 && listen(listener, 16) == 0);
	}
	must(getsockname(listener, (struct sockaddr *)&a, &n) == 0);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	must(fd >= 0 && connect(fd, (struct sockaddr *)&a, n) == 0);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) == 0);
	/* Who waits all the same is killed. */
	alarm(LINGER_PATIENCE);
	return fd;
}
