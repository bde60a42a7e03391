/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One connection to an origin, and what is spoken on it. */

#include "broker/pool.h"
#include "loop/loop.h"
#include "tls/client.h"

struct broker;
struct http_head;
struct stream;

/* What is spoken on a connection. A stream is attached (s->up) from begin() until it is detached.
 */
struct upstream_ops {
	/* Begins the request of s. */
	void (*begin)(struct upstream *u, struct stream *s);
	/* The body of s has more bytes, or has ended. */
	void (*send)(struct upstream *u, struct stream *s);
	/* The gateway takes more of s again. */
	void (*resume)(struct upstream *u, struct stream *s);
	/* s goes away before the exchange is over. */
	void (*detach)(struct upstream *u, struct stream *s);
	/* The socket is ready. */
	void (*event)(struct upstream *u, uint32_t events);
	/* u->job runs. */
	void (*work)(struct upstream *u);
	/* How many streams more it can serve now; NULL: one at a time, and it is asked only while
	 * it serves none. */
	unsigned (*room)(const struct upstream *u);
	/* u closes: streams that are left are told by the caller. Frees u->protocol. */
	void (*end)(struct upstream *u);
};

/* One connection to an origin. */
struct upstream {
	struct broker *broker;
	struct stream *first; /* for which it was made; NULL when the handshake is over */
	struct upstream *next, *prev;
	struct pool_bucket *bucket; /* while it is in the pool */
	bool shared;                /* it is there though it serves streams */
	int fd;
	struct tls_client *tls; /* NULL: plain */
	struct loop_io io;
	struct loop_job job;
	const struct upstream_ops *ops; /* NULL until the handshake is over */
	void *protocol;                 /* of the ops */
	bool dead;
	bool used;      /* has served a request, or waited for one */
	bool http1;     /* nothing else was offered: the origin may speak HTTP/2 */
	bool want_out;  /* TLS waits for writability */
	bool drained;   /* the last read took all that was there */
	uint64_t since; /* monotonic: when its handshake began, or it became idle */
	struct pool_key key;
};

/* A connection for s. Takes fd. */
void upstream_new(struct stream *s, int fd);
/* Sends the request of s on u, which comes from the pool. */
void upstream_attach(struct upstream *u, struct stream *s);
/* The three below do nothing if s has no connection. */
void upstream_send(struct stream *s);
void upstream_resume(struct stream *s);
void upstream_detach(struct stream *s);
/* Closes it. */
void upstream_close(struct upstream *u);
/* Frees closed ones that nobody holds any more (all: the loop is not run again). */
void upstreams_reap(struct broker *b, bool all);
/* For upstream_*.c: bytes on the socket, and what to wait for. Reading sets u->drained if all
 * that was there has been read: the next read would most probably find nothing, and epoll says when
 * there is more. */
enum tls_io upstream_read(struct upstream *u, char *p, size_t n, size_t *ret);
enum tls_io upstream_write(struct upstream *u, struct str s, size_t *ret);
/* Returns false if it could not be watched. Nothing at all: it is not watched. */
bool upstream_watch(struct upstream *u, bool in, bool out);
/* Has ops->work called in the next iteration. */
void upstream_work_later(struct upstream *u);
/* Why the connection ended, for messages. */
const char *upstream_error(const struct upstream *u);

/* --- upstream_h2.c --- */
_warn_unused_ int upstream_h2_start(struct upstream *u);

/* --- upstream_h1.c --- */
/* Makes u->protocol. */
_warn_unused_ int upstream_h1_start(struct upstream *u);

/* --- tunnel.c --- */
/* Makes u->protocol: bytes both ways. */
_warn_unused_ int upstream_tunnel_start(struct upstream *u);
/* The origin has answered 101, rest stands behind its head: from now on frames go both ways, or the
 * stream is refused. What was spoken before is ended, h with it. */
void upstream_to_websocket(
	struct upstream *u, struct stream *s, struct http_head *h, struct str rest);
