/* SPDX-License-Identifier: Apache-2.0 */
#include "init/relay.h"
#include "base/fd.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum { LENGTH = 2 };

bool relay_to_gateway(struct relay *r)
{
	uint8_t query[RELAY_BYTES];
	ssize_t n = recv(r->room, query + LENGTH, sizeof(query) - LENGTH, MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	/* Nobody's query is so long; 0 is also the end. */
	if (n == 0 || n > (ssize_t)sizeof(query) - LENGTH)
		return false;
	query[0] = (uint8_t)(n >> 8);
	query[1] = (uint8_t)n;
	n += LENGTH;
	return send(r->gateway, query, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) == n;
}

bool relay_to_room(struct relay *r)
{
	ssize_t n = recv(r->gateway, r->in + r->n, sizeof(r->in) - r->n, MSG_DONTWAIT);
	size_t at = 0;

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR);
	r->n += (size_t)n;
	while (r->n - at >= LENGTH) {
		size_t length = (size_t)r->in[at] << 8 | r->in[at + 1];

		if (length == 0 || length > sizeof(r->in) - LENGTH)
			return false;
		if (r->n - at < LENGTH + length)
			break;
		/* A datagram that the room does not read is lost. */
		(void)!send(r->room, r->in + at + LENGTH, length, MSG_DONTWAIT | MSG_NOSIGNAL);
		at += LENGTH + length;
	}
	r->n -= at;
	memmove(r->in, r->in + at, r->n);
	return true;
}

void relay_close(struct relay *r)
{
	r->room = fd_close(r->room);
	r->gateway = fd_close(r->gateway);
}
