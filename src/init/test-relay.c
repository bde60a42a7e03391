/* SPDX-License-Identifier: Apache-2.0 */
/* Queries for names that become parts of a stream, and answers that become datagrams, in whatever
 * pieces they come. */
#include "base/fd.h"
#include "init/relay.h"
#include "tap.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct relay relay;
static int room, gateway; /* the other ends */

static void begin(void)
{
	int one[2], two[2];

	must(fd_socketpair(SOCK_SEQPACKET, one) == 0 && fd_socketpair(SOCK_STREAM, two) == 0);
	relay = (struct relay){.room = one[0], .gateway = two[0]};
	room = one[1];
	gateway = two[1];
}

static void end(void)
{
	relay_close(&relay);
	room = fd_close(room);
	gateway = fd_close(gateway);
}

/* Send bytes to the relay; return what it says. */
static bool answer(const char *bytes, size_t n)
{
	must(write(gateway, bytes, n) == (ssize_t)n);
	return relay_to_room(&relay);
}

/* Whether the next datagram that came to the room is this text; "": none came. */
static bool came(const char *text)
{
	char got[RELAY_BYTES];
	ssize_t n = recv(room, got, sizeof(got), MSG_DONTWAIT);

	if (!text[0])
		return n < 0 && errno == EAGAIN;
	return n == (ssize_t)strlen(text) && memcmp(got, text, (size_t)n) == 0;
}

static void queries_get_their_length(void)
{
	char got[RELAY_BYTES], large[RELAY_BYTES] = {0};

	begin();
	check(relay_to_gateway(&relay));
	must(send(room, "query", 5, 0) == 5);
	check(relay_to_gateway(&relay));
	check_int((int)read(gateway, got, sizeof(got)), 7);
	check(memcmp(got, "\0\5query", 7) == 0);
	must(send(room, large, sizeof(large) - 2, 0) > 0);
	check(relay_to_gateway(&relay));
	check_int((int)read(gateway, got, sizeof(got)), RELAY_BYTES);
	check(got[0] == (RELAY_BYTES - 2) >> 8 && got[1] == (char)(RELAY_BYTES - 2));
	must(send(room, large, sizeof(large) - 1, 0) > 0);
	check(!relay_to_gateway(&relay));
	end();
}

static void answers_come_in_any_pieces(void)
{
	begin();
	check(relay_to_room(&relay));
	check(answer("\0\3one\0\3two\0", 11) && came("one") && came("two") && came(""));
	check(answer("\5th", 3) && came("") && answer("ree\0", 4) && came("three"));
	check(answer("\1x", 2) && came("x") && came(""));
	end();
}

static void bad_answers_end_it(void)
{
	begin();
	check(!answer("\0\0", 2));
	end();
	begin();
	check(!answer("\xff\xff", 2));
	end();
	begin();
	gateway = fd_close(gateway);
	check(!relay_to_room(&relay));
	end();
	begin();
	room = fd_close(room);
	check(!relay_to_gateway(&relay));
	/* What came meanwhile is lost. */
	check(answer("\0\3one", 5));
	end();
}

/* Neither end is waited for. */
static void nobody_reads(void)
{
	char large[2048];
	bool more = true;

	memset(large, 'x', sizeof(large));
	large[0] = 0x07;
	large[1] = (char)0xfe;
	begin();
	for (int i = 0; i < 1000; i++)
		check(answer(large, sizeof(large)));
	end();
	begin();
	for (int i = 0; i < 1000 && more; i++) {
		must(send(room, large, sizeof(large), 0) > 0);
		more = relay_to_gateway(&relay);
	}
	check(!more);
	end();
}

int main(void)
{
	run_test(queries_get_their_length);
	run_test(answers_come_in_any_pieces);
	run_test(bad_answers_end_it);
	run_test(nobody_reads);
	return tap_done();
}
