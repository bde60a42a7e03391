/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the parts of cloche-forward share. */

#include "base/err.h"
#include "loop/loop.h"

enum { MAX_CONNS = 256, BUFFER = 32 * 1024 };

/* Bytes on their way in one direction. */
struct way {
	char *mem; /* BUFFER bytes */
	size_t head, tail;
	bool ended; /* the reading side has ended */
	bool shut;  /* and the writing side was told */
};

struct conn {
	struct forward *forward;
	int fds[2]; /* host, room (-1 until it has answered) */
	struct loop_io io[2];
	struct way ways[2]; /* i: from fds[i] to the other */
	struct loop_timer patience;
	struct loop_job bury;
	bool dead;
};

struct forward {
	struct loop *loop;
	struct loop_io listener, room;
	struct loop_timer listen_again;
	uint64_t host_cookie; /* of the host's network namespace; 0: this kernel has none */
	unsigned conns_n;
	/* Who waits for an answer, in order; NULL: has given up. */
	struct conn *asked[MAX_CONNS];
	unsigned asked_first, asked_n;
};

/* --- conn.c --- */
/* Takes host. NULL on lack of memory. */
struct conn *conn_new(struct forward *f, int host);
/* Takes room: bytes flow from here on. */
void conn_join(struct conn *c, int room);
/* Ends it: at once, so that the other end sees a reset, if nothing has flowed. */
void conn_end(struct conn *c);

/* --- main.c --- */
void forward_forget(struct forward *f, const struct conn *c);
