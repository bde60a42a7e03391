/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How a port of a room is reached from the host: cloche-forward, on the host, writes one byte for
 * each connection it needs to a socket that leads into the room; there "cloche-init connect PORT"
 * answers each with one byte, 'y' with a connected socket attached, or 'n'. Answers come in the
 * order of the requests. The inside is not trusted: see bin/cloche-forward. A socket of the host
 * never goes in: whoever has one could connect it anew, to anywhere. */

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
