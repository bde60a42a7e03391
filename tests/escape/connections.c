/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: flood the gateway with connections and unfinished requests
 * Wall: the gateway's bounds; others' rooms have a gateway of their own */
#include "attempt.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

int main(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(443)};
	int n = 0, sent = 0;

	inet_pton(AF_INET, "203.0.113.1", &a.sin_addr);
	while (n < 1500) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

		if (fd < 0)
			break;
		connect(fd, (struct sockaddr *)&a, sizeof(a));
		sent += send(fd, "\x16\x03\x01", 3, MSG_NOSIGNAL) > 0;
		n++;
	}
	printf("%d connections, %d began\n", n, sent);
	usleep(200000);
	return HELD;
}
