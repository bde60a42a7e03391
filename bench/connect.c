/* SPDX-License-Identifier: Apache-2.0 */
/* usage: connect PORT PROXY_PORT HOST:PORT [USER]. Listens on 127.0.0.1:PORT and takes each connection
 * through a proxy's CONNECT to HOST:PORT, for load generators that speak to no proxy. Two threads a
 * connection, which do nothing but copy. USER is base64 for the proxy. */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in proxy = {.sin_family = AF_INET};
static const char *target;
static char field[512]; /* one more, or none */

struct pair {
	int from, to;
};

static void pump(int from, int to)
{
	char bytes[65536];
	ssize_t n;

	while ((n = read(from, bytes, sizeof(bytes))) > 0)
		for (ssize_t done = 0, k; done < n; done += k) {
			k = send(to, bytes + done, (size_t)(n - done), MSG_NOSIGNAL);
			if (k <= 0) {
				n = done;
				shutdown(from, SHUT_RDWR);
				break;
			}
		}
	shutdown(to, SHUT_WR);
}

static void *back(void *arg)
{
	struct pair *p = arg;

	pump(p->to, p->from);
	return NULL;
}

static int dial(void)
{
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char head[512];
	size_t n = 0;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, (struct sockaddr *)&proxy, sizeof(proxy)) < 0 ||
		dprintf(fd, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", target, target, field) < 0)
		return close(fd), -1;
	while (n < sizeof(head) - 1 && read(fd, head + n, 1) == 1) {
		head[++n] = '\0';
		if (n >= 4 && memcmp(head + n - 4, "\r\n\r\n", 4) == 0)
			break;
	}
	return n > 12 && memcmp(head + 8, " 200", 4) == 0 ? fd : (close(fd), -1);
}

static void *serve(void *arg)
{
	struct pair p = {.from = (int)(intptr_t)arg, .to = dial()};
	pthread_t thread;

	if (p.to >= 0 && pthread_create(&thread, NULL, back, &p) == 0) {
		pump(p.from, p.to);
		pthread_join(thread, NULL);
	}
	close(p.from);
	close(p.to);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_in own = {.sin_family = AF_INET};
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (argc != 4 && argc != 5)
		return 2;
	if (argc == 5)
		snprintf(field, sizeof(field), "Proxy-Authorization: Basic %s\r\n", argv[4]);
	own.sin_addr.s_addr = proxy.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	own.sin_port = htons((uint16_t)atoi(argv[1]));
	proxy.sin_port = htons((uint16_t)atoi(argv[2]));
	target = argv[3];
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&own, sizeof(own)) < 0 || listen(fd, 4096) < 0)
		return 1;
	for (;;) {
		pthread_t thread;
		int conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		if (conn < 0)
			continue;
		(void)setsockopt(conn, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)conn) == 0)
			pthread_detach(thread);
		else
			close(conn);
	}
}
