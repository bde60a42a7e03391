/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One connection of the room, and how bytes get in and out of it: plain or TLS, with output that is
 * gathered and written once an iteration, one deadline, and five ways to end. What the bytes mean
 * is decided by its stage (identify, handshake, HTTP/1, DNS), a table of functions.
 *
 * A connection that has ended stays valid until the iteration ends; callers check c->dead after
 * whatever may have ended it. */

#include "base/buf.h"
#include "http/rate.h"
#include "ipc/netchan.h"
#include "loop/loop.h"
#include "policy/host.h"
#include "tls/server.h"
#include <netinet/in.h>
#include <sys/socket.h>

struct gateway;
struct leaf;
struct conn;

struct stage {
	const char *name;
	bool opens;    /* the connection is work under way although it has no stream */
	bool says_end; /* c->out is the last that the peer gets: close_notify follows it */
	/* Bytes or the end may be there, and reading is wanted. */
	void (*readable)(struct conn *c);
	/* c->out is about to be written: adds what there is to it, as much as is worth one write.
	 * May be NULL. */
	void (*fill)(struct conn *c);
	/* Some output has been taken by the peer. May be NULL. */
	void (*drained)(struct conn *c);
	/* The deadline has passed. */
	void (*expired)(struct conn *c);
	/* The connection ends, for whatever reason: free c->state. May be NULL. */
	void (*end)(struct conn *c);
};

union conn_addr {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

struct conn {
	struct gateway *g;
	struct conn *prev, *next;             /* g->conns, then g->dead */
	struct conn *dirty_prev, *dirty_next; /* g->dirty */
	struct conn *held_prev, *held_next;   /* g->held */
	struct conn *wait_prev, *wait_next;   /* leaf->waiting */
	const struct stage *stage;
	void *state; /* of the stage */

	struct loop_io io;
	struct loop_timer timer;
	uint64_t deadline;
	uint64_t marked; /* in which turn: see gateway.c */
	uint32_t number;
	int fd;
	uint16_t port; /* that the room connected to */
	bool want_read, dirty, again, held, dead, half_closed;
	unsigned cut_waits;      /* times that conn_cut() has waited for the kernel */
	bool blocked;            /* the peer did not take all output: wait until it does */
	bool tls_done;           /* the handshake is complete */
	bool h2;                 /* ALPN has chosen HTTP/2 */
	bool guarded;            /* see conn_guard_end() */
	bool owes_more;          /* bytes came, and more are wanted before an answer */
	struct http_rate pieces; /* small ones of bodies; made with the first */

	union conn_addr dest;
	struct net_client client; /* both ends */
	struct tls_conn *tls;
	struct leaf *leaf; /* that the handshake waits for */
	struct host host;  /* TLS: whom the client meant; n is 0 for plain connections */

	struct buf in; /* read, not used yet: usually nothing */
	struct buf out;
	size_t kept;    /* bytes for the room that wait elsewhere, by the stage's word */
	size_t unread;  /* both, as counted in the gateway's */
	size_t dropped; /* bytes read and thrown away while closing */
};

/* Takes fd. Returns NULL when memory is out (fd is closed). */
struct conn *conn_new(struct gateway *g, int fd, const union conn_addr *dest);
/* Whose connection it is: the address of the room's own socket. */
void conn_set_peer(struct conn *c, const union conn_addr *peer);
/* For the end of an iteration, or of the program: ends it if it has not ended, and frees. */
void conn_free(struct conn *c);

void conn_set_stage(struct conn *c, const struct stage *stage);
/* Fires stage->expired after so long; USEC_INFINITY: never. Cheap: timers are moved lazily. */
void conn_set_timeout(struct conn *c, uint64_t usec);

/* Bytes read; 0: the peer has ended its side; -EAGAIN; other negative: the connection is broken. */
_warn_unused_ ssize_t conn_read(struct conn *c, void *p, size_t n);
/* Whether reading is wanted. What waits inside already comes with the next iteration. */
void conn_want_read(struct conn *c, bool want);
/* Whether c may be read from now. */
static inline bool conn_may_read(const struct conn *c)
{
	return c->want_read && !c->held && !c->dead;
}
/* Reads a portion with each call of read_once(), for as long as that says that there may be more,
 * but not for ever: then others are first. */
void conn_read_turn(struct conn *c, bool (*read_once)(struct conn *c));
/* Whether there may be more to read without the descriptor becoming readable. */
bool conn_has_buffered(const struct conn *c);
/* Puts bytes that were read, and are not used yet, back in front. Returns 0 or -ENOMEM. */
_warn_unused_ int conn_unread(struct conn *c, struct str rest);

/* Has c flushed when the iteration ends. Call it after adding to c->out. */
void conn_mark(struct conn *c);
/* Writes now what the peer takes. */
void conn_flush(struct conn *c);
/* Bytes that the peer has not taken. */
size_t conn_pending_out(const struct conn *c);

/* Writes what is left, then closes. */
void conn_end(struct conn *c);
/* The same, but reads on for a while and drops it, so that the peer sees the answer and not a reset
 * because of what it was still sending. */
void conn_end_linger(struct conn *c);
/* If its end says that what was sent is complete: from here on whatever ends c in another way
 * than conn_end(), even this program's death, is a reset. */
void conn_guard_end(struct conn *c);
/* Closes now. */
void conn_close(struct conn *c);
/* Closes now so that the peer knows that it was cut off: no close_notify, and a reset. */
void conn_abort(struct conn *c);
/* The same, but what is already to be written reaches the peer before it. */
void conn_cut(struct conn *c);

/* "example.com (198.18.0.3:22)", "203.0.113.9:22", "[2001:db8::1]:22" into buffer. */
#define CONN_DEST_MAX 352
struct str conn_dest_text(struct conn *c, char buffer[CONN_DEST_MAX]);
/* The destination as a canonical host: an address literal. */
void conn_dest_host(const struct conn *c, struct host *ret);
/* The name that stands for the destination address, if it is a synthetic one, else the address.
 */
void conn_dest_name(struct conn *c, struct host *ret);
