/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Turns a parsed request head into the request for the broker, or into a refusal. Pure. */

#include "http/msg.h"
#include "ipc/netchan.h"
#include "policy/host.h"

/* What is known of the connection that the request came on. */
struct request_via {
	bool tls;
	struct host host; /* TLS: host that the client meant by its handshake */
	struct host dest; /* host that it connected to: its name if known, else the address */
	uint16_t port;
};

struct request_refusal {
	uint16_t status;
	enum net_event_kind event;
	const char *code, *message, *why; /* constants: for the answer, and for the log */
};

struct request {
	struct host host;
	struct net_open open; /* without stream, connection, client; views into host and the head */
	struct request_refusal refusal; /* status 0: none */
};

/* Fill ret. It does not contain the fields: send them with request_add_fields(). */
void request_judge(const struct http_head *h, const struct request_via *via, struct request *ret);
/* Add the fields that travel end to end. */
void request_add_fields(const struct http_head *h, struct net_fields_out *out);
