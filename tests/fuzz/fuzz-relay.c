/* SPDX-License-Identifier: Apache-2.0 */
/* Answers for names on their way into a room: whatever comes, in whatever pieces (the first byte
 * says of which size), what goes on is the beginning of it, cut where its lengths say.
 * fuzz-deps: init base */
#include "base/fd.h"
#include "init/relay.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Compare what has come to the room with the input, from *at on. */
static void take_all(int room, const uint8_t *data, size_t size, size_t *at)
{
	uint8_t got[2 + RELAY_BYTES];
	ssize_t n;

	while ((n = recv(room, got + 2, RELAY_BYTES, MSG_DONTWAIT)) > 0) {
		got[0] = (uint8_t)(n >> 8);
		got[1] = (uint8_t)n;
		n += 2;
		if (size - *at < (size_t)n || memcmp(got, data + *at, (size_t)n) != 0)
			abort();
		*at += (size_t)n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t piece = size ? (size_t)data[0] + 1 : 1;
	int room[2], gateway[2];
	struct relay r;
	size_t seen = 1;
	bool goes_on = true;

	if (fd_socketpair(SOCK_SEQPACKET, room) < 0 || fd_socketpair(SOCK_STREAM, gateway) < 0)
		abort();
	r = (struct relay){.room = room[0], .gateway = gateway[0]};
	for (size_t at = 1; at < size && goes_on; at += piece) {
		size_t n = MIN(piece, size - at);

		if (send(gateway[1], data + at, n, MSG_NOSIGNAL) != (ssize_t)n)
			abort();
		goes_on = relay_to_room(&r);
		take_all(room[1], data, size, &seen);
	}
	relay_close(&r);
	close(room[1]);
	close(gateway[1]);
	return 0;
}
