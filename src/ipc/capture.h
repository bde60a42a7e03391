/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The protocol between a relay and the gateway of a room whose network no listening socket can be
 * taken from: it is on another machine, or the room has no network at all. The relay speaks for the
 * room and is not trusted. The supervisor hands the gateway's end of the channel over
 * (HELPER_CAPTURE, ipc/helper.h). Nothing goes from the gateway to the relay.
 *
 * Each connection of the room comes with the gateway's end of a pair of connected unix stream
 * sockets. The relay, or the room's process itself, has the other end. If the client has ended its
 * direction, the relay ends it with shutdown(SHUT_WR); it closes the socket when the client is
 * gone. The kernel keeps no reset for such a socket: what the gateway breaks off looks ended to the
 * other end (unless it had sent bytes that were not read, which gives ECONNRESET). Only an answer
 * in plain HTTP/1.0 that ends with its connection looks complete then; all others show that they
 * are not.
 *
 * A destination that stands for a name in a map of the relay's (dns/synthetic.h) comes with that
 * name, and the gateway gives it an address of its own map. So a destination of the gateway's own
 * map, which a room knows if its queries over TCP (port 53) were sent here, comes without a name.
 * One room has its addresses from one of the two maps.
 *
 * The gateway stops reading while it has too many connections. A malformed frame, a descriptor that
 * is something else and the end of the channel end the gateway, and the sandbox with it, as half a
 * network is none. So a relay tells the supervisor that its room has ended before it hangs up. */

#include "ipc/netchan.h"

enum { CAPTURE_MAX_PAYLOAD = 2048 };

enum capture_frame {
	CAPTURE_CONNECTION = 1, /* struct capture_connection, 1 fd */
	CAPTURE_ASKED,          /* struct capture_asked */
};

/* client: both ends as the room's socket sees them; the family is known, and the server's port is
 * not 0. An address of the client that is not known is 0. */
#define CAPTURE_CONNECTION_FIELDS(F)                                                               \
	F(PART, client, net_client)                                                                \
	F(STR, name, .max = NET_MAX_HOST) /* that the destination stands for; empty: none */       \
	F(PART, owner, net_owner)
MESSAGE_WITH_FD(capture, connection, CAPTURE_CONNECTION, CAPTURE_CONNECTION_FIELDS);

enum capture_answer {
	CAPTURE_ANSWER_A,    /* the first four bytes of address */
	CAPTURE_ANSWER_AAAA, /* address */
	CAPTURE_ANSWER_NODATA,
	CAPTURE_ANSWER_FORMERR,
	CAPTURE_ANSWER_SERVFAIL,
	CAPTURE_ANSWER_BADVERS,
	CAPTURE_ANSWER_END
};

/* A DNS query that was answered, for the log. */
#define CAPTURE_ASKED_FIELDS(F)                                                                    \
	F(STR, name, .max = NET_MAX_HOST) /* as it was asked for: any bytes */                     \
	F(U16, type)                                                                               \
	F(ENUM, answer, capture_answer, CAPTURE_ANSWER_END)                                        \
	F(BYTES, address, 16)
MESSAGE(capture, asked, CAPTURE_ASKED, CAPTURE_ASKED_FIELDS);
