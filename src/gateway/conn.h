/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One connection from the room, and how bytes get in and out of it: plain or TLS, with output that
 * is gathered and written once per iteration, one deadline, and five ways to end. What the bytes
 * mean is decided by the connection's stage (identify, handshake, HTTP/1, DNS), a table of
 * functions.
 *
 * A connection that has ended stays valid until the iteration ends. Callers check c->dead after any
 * call that may have ended it. */

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
	bool opens;    /* counts as work under way, although it has no stream */
	bool says_end; /* c->out is the last output for the peer; close_notify follows it */
	/* Reading is wanted, and bytes or the end of the input may be there. */
	void (*readable)(struct conn *c);
	/* c->out is about to be written: append pending output, as much as is worth one write. May
	 * be NULL. */
	void (*fill)(struct conn *c);
	/* The peer has taken some output. May be NULL. */
	void (*drained)(struct conn *c);
	/* The deadline has passed. */
	void (*expired)(struct conn *c);
	/* The connection ends, for any reason: free c->state. May be NULL. */
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
	void *state; /* belongs to the stage */

	struct loop_io io;
	struct loop_timer timer;
	uint64_t deadline;
	uint64_t marked; /* turn in which c was marked: see gateway.c */
	uint32_t number;
	int fd;
	uint16_t port; /* port that the room connected to */
	bool want_read, dirty, again, held, dead, half_closed;
	unsigned cut_waits;      /* times that conn_cut() has waited for the kernel */
	bool blocked;            /* the peer has not taken all output: wait until it does */
	bool tls_done;           /* the handshake is complete */
	bool h2;                 /* ALPN has chosen HTTP/2 */
	bool guarded;            /* see conn_guard_end() */
	bool owes_more;          /* bytes came, but more are needed for an answer */
	struct http_rate pieces; /* rate of small pieces of bodies; set up with the first */

	union conn_addr dest;
	struct net_client client; /* both ends */
	struct net_owner *owner;  /* see conn_set_owner() */
	struct tls_conn *tls;
	struct leaf *leaf; /* leaf that the handshake waits for */
	struct host host;  /* TLS: host that the client meant; n is 0 for plain connections */

	struct buf in; /* read but not used yet; usually empty */
	struct buf out;
	size_t kept;    /* bytes for the room that the stage keeps elsewhere */
	size_t unread;  /* pending output and kept, as counted in g->unread */
	size_t dropped; /* bytes read and thrown away while closing */
};

static inline enum net_scheme conn_scheme(const struct conn *c)
{
	return c->tls ? NET_HTTPS : NET_HTTP;
}

/* Take fd. Return NULL on failure; fd is closed then. */
struct conn *conn_new(struct gateway *g, int fd, const union conn_addr *dest);
/* Record the client: the address of the socket in the room. */
void conn_set_peer(struct conn *c, const union conn_addr *peer);
/* Keep a copy of what whoever captured the connection says of its process, if there is memory. */
void conn_set_owner(struct conn *c, const struct net_owner *owner);
static inline struct net_owner conn_owner(const struct conn *c)
{
	return c->owner ? *c->owner : (struct net_owner){0};
}
/* Free c at the end of an iteration or of the program; end it first if it has not ended. */
void conn_free(struct conn *c);

/* Go on with another descriptor, which is taken. Return 0, or -errno with c as it was but for its
 * descriptor, which is closed. */
_warn_unused_ int conn_replace(struct conn *c, int fd);
void conn_set_stage(struct conn *c, const struct stage *stage);
/* Call stage->expired after usec; USEC_INFINITY means never. Cheap: timers are moved lazily. */
void conn_set_timeout(struct conn *c, uint64_t usec);

/* Return the bytes read, 0 if the peer has ended its side, -EAGAIN, or another negative value if
 * the connection is broken. */
_warn_unused_ ssize_t conn_read(struct conn *c, void *p, size_t n);
/* Say whether reading is wanted. Bytes that are already buffered are delivered in a later turn, not
 * from within this call. */
void conn_want_read(struct conn *c, bool want);
/* Whether c may be read from now. */
static inline bool conn_may_read(const struct conn *c)
{
	return c->want_read && !c->held && !c->dead;
}
/* Call read_once() for as long as it says that there may be more, but only a few times: then other
 * connections get their turn. */
void conn_read_turn(struct conn *c, bool (*read_once)(struct conn *c));
/* Whether there may be more to read without the descriptor becoming readable. */
bool conn_has_buffered(const struct conn *c);

/* Flush c when the iteration ends. Call this after adding to c->out. */
void conn_mark(struct conn *c);
/* Write as much as the peer takes now. */
void conn_flush(struct conn *c);
/* Return the number of bytes that the peer has not taken. */
size_t conn_pending_out(const struct conn *c);

/* Write pending output, then close. */
void conn_end(struct conn *c);
/* Like conn_end(), but read and drop input for a while, so that the peer sees the answer and not a
 * reset because of what it was still sending. */
void conn_end_linger(struct conn *c);
/* For a connection whose end tells the peer that the data is complete: from here on every end other
 * than conn_end() or conn_end_linger(), even this program's death, is a reset. */
void conn_guard_end(struct conn *c);
/* Close now. */
void conn_close(struct conn *c);
/* Close now with a reset and without close_notify, so that the peer knows that it was cut off. */
void conn_abort(struct conn *c);
/* Like conn_abort(), but pending output reaches the peer first. */
void conn_cut(struct conn *c);

/* Write the destination into buffer, like "example.com (198.18.0.3:22)", "203.0.113.9:22" or
 * "[2001:db8::1]:22". */
#define CONN_DEST_MAX 352
struct str conn_dest_text(struct conn *c, char buffer[CONN_DEST_MAX]);
/* Set ret to the destination as a canonical host: an address literal. */
void conn_dest_host(const struct conn *c, struct host *ret);
/* Set ret to the name that the destination address stands for if it is a synthetic one, else to the
 * address. */
void conn_dest_name(struct conn *c, struct host *ret);
