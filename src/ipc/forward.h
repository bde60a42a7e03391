/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How the host reaches a port of a room: for each connection it needs, cloche-forward, on the host,
 * writes one byte to a socket that leads into the room. There "cloche-init connect PORT" answers
 * with one byte, 'y' with a connected socket attached, or 'n'. Answers come in the order of the
 * requests. The room is not trusted: see bin/cloche-forward. A socket of the host is never sent
 * into the room, as a program there could connect it again, to any address. */

enum {
	/* of cloche-forward */
	FORWARD_FD_LISTENER = 3, /* TCP, listening on the host's loopback */
	FORWARD_FD_ROOM = 4,     /* the socket to the room */
	/* of cloche-init connect */
	FORWARD_FD_INSIDE = 0,

	FORWARD_ASK = 'c',
	FORWARD_YES = 'y',
	FORWARD_NO = 'n',
};
