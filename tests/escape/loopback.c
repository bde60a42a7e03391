/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: reach a server on the host's loopback, by TCP and UDP, IPv4 and IPv6, by other names of
 *    this machine
 * Wall: network namespace; what the gateway captures it judges, and nothing here is allowed */
#include "attempt.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

/* A connection is the gateway's: what counts is whether the server's greeting comes. */
static void attempt(const char *address, int family, int port)
{
	struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	const char *request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
	char buf[512] = "";
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), udp, r;
	struct pollfd p = {.fd = fd, .events = POLLIN};

	inet_pton(AF_INET, address, &a4.sin_addr);
	inet_pton(AF_INET6, address, &a6.sin6_addr);
	if (family == AF_INET)
		r = connect(fd, (struct sockaddr *)&a4, sizeof(a4));
	else
		r = connect(fd, (struct sockaddr *)&a6, sizeof(a6));
	if (r == 0 && send(fd, request, strlen(request), MSG_NOSIGNAL) > 0 &&
		poll(&p, 1, 1000) > 0 && recv(fd, buf, sizeof(buf) - 1, 0) > 0 &&
		strstr(buf, "canary"))
		escaped(address);
	printf("%s: %s: %.60s\n", address, r < 0 ? strerror(errno) : "captured", buf);
	close(fd);
	udp = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (family == AF_INET)
		(void)!sendto(udp, "escaped", 7, 0, (struct sockaddr *)&a4, sizeof(a4));
	close(udp);
}

int main(void)
{
	int port = canary_number("CANARY_PORT");

	attempt("127.0.0.1", AF_INET, port);
	attempt("127.1.2.3", AF_INET, port);
	attempt("0.0.0.0", AF_INET, port);
	attempt("169.254.169.254", AF_INET, 80);
	attempt(canary("CANARY_ADDRESS"), AF_INET, port);
	attempt("::1", AF_INET6, port);
	attempt("::ffff:127.0.0.1", AF_INET6, port);
	attempt("::", AF_INET6, port);
	return verdict();
}
