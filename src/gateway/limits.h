/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Every limit that the gateway sets for what a room makes it hold, do or wait for, in one table.
 * Limits of one message are in http/limits.h, those of an HTTP/2 connection in http/h2.h, those of
 * the channel to the broker in ipc/netchan.h. How much is done in one turn of the loop, and how
 * long a certificate is kept, stands with the code. */

#include <stddef.h>
#include <stdint.h>

struct gateway_limits {
	/* Connections from the room. */
	unsigned connections;     /* at once */
	unsigned accepts_per_sec; /* against floods only: more than handshakes allow */
	/* Exchanges at once on one of HTTP/2, those that only the broker still has to end
	 * included. */
	unsigned h2_exchanges;

	/* How long the room may take; microseconds. */
	uint64_t first_byte_usec; /* until a connection says anything */
	uint64_t hello_usec;      /* until its ClientHello is complete */
	uint64_t handshake_usec;  /* from then until its handshake is complete */
	uint64_t head_usec;       /* a request head, from its first byte on */
	uint64_t idle_usec;       /* between requests */
	uint64_t linger_usec;     /* to take the last answer, without progress */

	/* A request body must come at body_min_bytes a window while we wait for it. */
	uint64_t body_window_usec;
	uint64_t body_min_bytes;

	uint64_t stream_idle_usec; /* neither side of an exchange sends anything */
	size_t linger_bytes;       /* read and dropped before a connection is closed */
	size_t early_bytes; /* read and dropped of an HTTP/2 request answered before its end */

	/* Reading from the room stops while more than broker_high bytes wait for the broker, and
	 * resumes at broker_low. */
	size_t broker_high, broker_low;
	/* Above this, requests over HTTP/2 are refused: their heads are small on the wire and large
	 * for the broker, and many may come in what was read at once. */
	size_t broker_full;

	/* Bytes of all connections that the room has not taken. Above this, the connection with the
	 * most of them is aborted. What the broker may have under way fits in (broker/bounds.c). */
	size_t unread;
	/* Nothing is begun on a connection of HTTP/1 or DNS while it has more than unsent_high of
	 * these bytes; HTTP/1 goes on at unsent_low. */
	size_t unsent_high, unsent_low;

	unsigned leaves; /* certificates kept */
	unsigned names;  /* synthetic addresses kept */

	unsigned events_per_sec;     /* to be logged; more are counted */
	unsigned dns_per_sec;        /* queries answered by UDP; more are dropped */
	uint64_t dns_log_every_usec; /* the same name is logged once in this time */
	unsigned dns_log_names;
};

extern const struct gateway_limits gateway_limits_default;
