/* SPDX-License-Identifier: Apache-2.0 */
/* How connections come to the gateway of a test: to its listener, or from a relay. */
#include "base/fd.h"
#include "gateway/testing.h"

#include <arpa/inet.h>
#include <signal.h>
#include <tap.h>
#include <unistd.h>

enum { PATIENCE_MS = 5000 };

int rig_make_capture(struct rig *r)
{
	const uint8_t loopback[16] = {127, 0, 0, 1};
	struct net_client *m = &r->meant.client;
	int pair[2];

	/* A TLS client writes to connections that have ended; a unix socket says so at once. */
	(void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	must(fd_socketpair(SOCK_STREAM, pair) == 0);
	must(chan_init(&r->capture, pair[0], CAPTURE_MAX_PAYLOAD, 65536) == 0);
	*m = (struct net_client){.family = 4, .port = 40000, .server_port = r->port};
	memcpy(m->address, loopback, sizeof(loopback));
	memcpy(m->server, loopback, sizeof(loopback));
	return pair[1];
}

void rig_capture(struct rig *r, const int *fds, unsigned n)
{
	must(message_send(&r->capture, CAPTURE_CONNECTION, capture_connection_message(), &r->meant,
		     fds, n) == 0);
	must(chan_flush_wait(&r->capture, PATIENCE_MS) == 0);
}

static int connect_captured(struct rig *r)
{
	int pair[2];

	must(fd_socketpair(SOCK_STREAM, pair) == 0);
	rig_capture(r, &pair[1], 1);
	close(pair[1]);
	return pair[0];
}

static int connect_to_listener(const struct rig *r)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(r->port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	must(fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	return fd;
}

void client_connect(struct client *c, struct rig *r)
{
	*c = (struct client){.r = r, .in = BUF_INIT((size_t)64 << 20)};
	c->fd = r->captured ? connect_captured(r) : connect_to_listener(r);
	must(fd_set_nonblock(c->fd, true) == 0);
}
