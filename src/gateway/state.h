/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The central object of the gateway, which holds all its state. */

#include "base/hash.h"
#include "dns/synthetic.h"
#include "gateway/captured.h"
#include "gateway/dns.h"
#include "gateway/event.h"
#include "gateway/gateway.h"
#include "gateway/leaf.h"
#include "gateway/listener.h"
#include "http/msg.h"
#include "ipc/chan.h"
#include "loop/loop.h"
#include "tls/server.h"

enum { GATEWAY_SCRATCH = 64 * 1024, GATEWAY_POOL = 64 };

struct gateway {
	const struct gateway_limits *limits;
	struct loop *loop;
	struct chan supervisor, broker;
	struct loop_io supervisor_io, broker_io;
	struct loop_job frames; /* whole frames of the broker are still buffered */
	struct loop_job turn;   /* at the end of an iteration: see gateway_touch() */
	struct loop_timer rest; /* see gateway_rest() */
	struct cloche_err *err; /* of gateway_run() */

	struct tls_server *tls;
	struct leaf_cache leaves;
	struct dns_synthetic *names;
	struct event_log events;
	struct dns_log dns_log;

	struct listener tcp[2];
	struct dns_socket udp[2];
	struct captured captured;
	struct accept_rate accepts;

	bool ports_known; /* the broker has said which ports may be TCP: until then connections wait
			   */
	bool has_tcp;
	uint8_t tcp_ports[NET_PORT_BYTES]; /* if has_tcp: as in struct net_ports */
	bool has_ssh;                      /* git over ssh is judged, not refused unread */

	struct conn *conns;        /* list */
	unsigned conns_n, opening; /* connections in all, and in a handshake */
	uint32_t next_conn;
	uint64_t turn_n;
	bool turning;       /* run_turn() runs: gateway_touch() need not schedule it */
	struct conn *dirty; /* to be flushed when the iteration ends */
	struct conn *held;  /* not read from while the broker is behind */
	struct conn *dead;  /* to be freed when the iteration ends */
	size_t unread;      /* bytes of all connections that the room has not taken */

	struct stream *streams; /* by number */
	uint32_t next_stream;
	struct h1 *pool; /* exchanges to use again */
	unsigned pool_n;

	struct http_head answer;       /* head of the response that is being written */
	char scratch[GATEWAY_SCRATCH]; /* what was just read */
};

/* Schedule the work at the end of this iteration: flush the marked connections, write the broker's
 * channel, and free dead connections. */
void gateway_touch(struct gateway *g);
/* There is no connection: give memory back to the system if that lasts for a moment. */
void gateway_rest(struct gateway *g);
/* Write what waits for the supervisor. */
void gateway_flush_supervisor(struct gateway *g);
/* End gateway_run() with code and message (fixed text). */
void gateway_fail(struct gateway *g, int code, const char *message);
/* Whole frames of the broker are buffered: handle them in the next iteration. */
void gateway_more_frames(struct gateway *g);
/* Return whether the broker is behind. If so, c is not read from until it has caught up. */
bool gateway_hold(struct gateway *g, struct conn *c);
/* End the run if r says that a frame could not be sent to the broker. */
void gateway_sent(struct gateway *g, int r);
