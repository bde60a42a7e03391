/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared declarations of cloche-forward. */

#include "base/err.h"
#include "loop/loop.h"

enum { MAX_CONNS = 256, BUFFER = 32 * 1024 };

/* Bytes in transit in one direction. */
struct way {
	char *mem; /* BUFFER bytes */
	size_t head, tail;
	bool ended; /* the reading side has ended */
	bool shut;  /* and the writing side was shut down */
};

struct conn {
	struct forward *forward;
	int fds[2];  /* host, room (-1 until the room has answered) */
	bool joined; /* bytes may be copied */
	struct loop_io io[2];
	struct way ways[2]; /* i: from fds[i] to the other */
	struct loop_timer patience;
	struct loop_job bury;
	bool dead;
};

struct forward {
	struct loop *loop;
	struct loop_io listener, room;
	int asks; /* FORWARD_FD_ROOM, or FORWARD_FD_SUPERVISOR: the room is elsewhere */
	struct loop_timer listen_again;
	uint64_t host_cookie; /* of the host's network namespace; 0: this kernel has none */
	unsigned conns_n;
	/* Connections that wait for an answer, in order; NULL: the connection has ended. */
	struct conn *asked[MAX_CONNS];
	unsigned asked_first, asked_n;
};

/* --- conn.c --- */
/* Take ownership of host, also on failure. NULL if out of memory. */
struct conn *conn_new(struct forward *f, int host);
/* Take ownership of room and start to copy. */
void conn_join(struct conn *c, int room);
/* Take ownership of room, and start to copy when it has said FORWARD_YES. */
void conn_join_later(struct conn *c, int room);
/* End the connection. If no bytes were copied yet, the client gets a reset. */
void conn_end(struct conn *c);

/* --- main.c --- */
void forward_forget(struct forward *f, const struct conn *c);
