/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How the host reaches a port of a room: for each connection it needs, cloche-forward, on the host,
 * writes one byte to a socket, and is answered with one byte, 'y' with a socket attached, or 'n'.
 * Answers come in the order of the requests.
 *
 * On this machine "cloche-init connect PORT" answers, in the room, and the socket is connected to
 * the port. Into a room elsewhere no answer is needed from there: the supervisor answers, and the
 * other end of that socket has "cloche-init reach PORT" in the room, which says with one more byte
 * ('y' or 'n') whether it could connect, and copies.
 *
 * The room is not trusted: see bin/cloche-forward. A socket of the host is never sent into the
 * room, as a program there could connect it again, to any address. */

#define FORWARD_MODE_SEND "connect"
#define FORWARD_MODE_COPY "reach"

enum {
	/* of cloche-forward */
	FORWARD_FD_LISTENER = 3,   /* TCP, listening on the host's loopback */
	FORWARD_FD_ROOM = 4,       /* the socket to the room */
	FORWARD_FD_SUPERVISOR = 5, /* instead of that, for a room elsewhere */
	/* of cloche-init */
	FORWARD_FD_INSIDE = 0,

	FORWARD_ASK = 'c',
	FORWARD_YES = 'y',
	FORWARD_NO = 'n',
};
