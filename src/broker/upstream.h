/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One connection to an origin, and its protocol. */

#include "broker/pool.h"
#include "loop/loop.h"
#include "tls/client.h"

struct broker;
struct http_head;
struct stream;

/* The protocol of a connection. A stream is attached (s->up) from begin() until it is detached. */
struct upstream_ops {
	/* Begin the request of s. */
	void (*begin)(struct upstream *u, struct stream *s);
	/* The body of s has more bytes, or has ended. */
	void (*send)(struct upstream *u, struct stream *s);
	/* The gateway takes more of s again. */
	void (*resume)(struct upstream *u, struct stream *s);
	/* s goes away before the exchange is over. NULL: u is closed. */
	void (*detach)(struct upstream *u, struct stream *s);
	/* The socket is ready. */
	void (*event)(struct upstream *u, uint32_t events);
	/* u->job runs. */
	void (*work)(struct upstream *u);
	/* Return how many more streams u can serve now. NULL: one at a time, and u is in the pool
	 * only while it serves none. */
	unsigned (*room)(const struct upstream *u);
	/* Free u->protocol when u closes; may be NULL. The caller tells the streams that are
	 * left. */
	void (*end)(struct upstream *u);

	/* --- called by the functions upstream_single_*() alone --- */
	/* Return whether something of the request waits to be written. */
	bool (*has_output)(const struct upstream *u);
	/* Take bytes that the origin sent for u->stream, or their end. */
	void (*take)(struct upstream *u, struct str bytes);
	void (*eof)(struct upstream *u, bool clean);
};

/* One connection to an origin. */
struct upstream {
	struct broker *broker;
	struct stream
		*stream; /* that it is made for, or that it alone serves; NULL: none or many */
	struct upstream *next, *prev;
	struct pool_bucket *bucket; /* while it is in the pool */
	bool shared;                /* it is in the pool although it serves streams */
	int fd;
	struct tls_client *tls; /* NULL: plain */
	struct loop_io io;
	struct loop_job job;
	const struct upstream_ops *ops; /* NULL until the handshake is over */
	void *protocol;                 /* of the ops */
	struct buf answer;              /* what ssh.c has read of it */
	bool dead;
	bool used;     /* has served a request, or waited for one */
	bool http1;    /* only HTTP/1.1 was offered; the origin may speak HTTP/2, too */
	bool want_out; /* TLS waits for writability */
	bool drained;  /* the last read took all that was there */
	bool paused;   /* it is not read, because the gateway takes no more of `stream` */
	bool in_ended,
		out_ended; /* a tunnel: the origin sends no more; it was told that we do not */
	uint64_t since;    /* monotonic: when its handshake began */
	uint64_t until;    /* monotonic: if it is idle, it serves no request from then on */
	unsigned policy;   /* number of the policy that it was made under */
	struct pool_key key;
};

/* Make a connection for s from fd, which is taken. */
void upstream_new(struct stream *s, int fd);
/* Send the request of s on u, which comes from the pool. */
void upstream_attach(struct upstream *u, struct stream *s);
/* The three below do nothing if s has no connection. */
void upstream_send(struct stream *s);
void upstream_resume(struct stream *s);
void upstream_detach(struct stream *s);
/* Close u. upstreams_reap() frees it. */
void upstream_close(struct upstream *u);
/* Free closed connections that the loop does not hold any more (all: free all, as the loop is not
 * run again). */
void upstreams_reap(struct broker *b, bool all);
/* For upstream_*.c: read, write and wait for events. Reading sets u->drained if all that was there
 * has been read: another read would most probably find nothing, and epoll reports when there is
 * more. */
enum tls_io upstream_read(struct upstream *u, char *p, size_t n, size_t *ret);
enum tls_io upstream_write(struct upstream *u, struct str s, size_t *ret);
/* Wait for these events; if both are false, do not watch the socket. Return false if it could not
 * be watched. */
bool upstream_watch(struct upstream *u, bool in, bool out);
/* Call ops->work() in the next iteration. */
void upstream_work_later(struct upstream *u);
/* Return why the connection ended, for messages. */
const char *upstream_error(const struct upstream *u);

/* For protocols that serve one stream at a time: the operations work, resume and event, and the
 * choice of the events to wait for. No more is read than the gateway takes. */
void upstream_single_work(struct upstream *u);
void upstream_single_resume(struct upstream *u, struct stream *s);
void upstream_single_event(struct upstream *u, uint32_t events);
void upstream_single_watch(struct upstream *u);

/* --- upstream_h2.c --- */
_warn_unused_ int upstream_h2_start(struct upstream *u);

/* --- upstream_h1.c --- */
/* Make u->protocol. */
_warn_unused_ int upstream_h1_start(struct upstream *u);

/* --- tunnel.c --- */
/* Pass bytes both ways. */
void upstream_tunnel_start(struct upstream *u);
/* Switch to WebSocket frames after the origin has answered 101, or refuse the stream. rest is what
 * followed the head. The previous protocol is ended, and h is freed with it. */
void upstream_to_websocket(
	struct upstream *u, struct stream *s, struct http_head *h, struct str rest);
