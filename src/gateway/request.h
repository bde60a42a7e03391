/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* From a parsed request head to the request that the broker is asked for, or to a refusal. Pure. */

#include "http/msg.h"
#include "ipc/netchan.h"
#include "policy/host.h"

/* What is known of the connection that it came on. */
struct request_via {
	bool tls;
	struct host host; /* TLS: whom the client meant by its handshake */
	struct host dest; /* whom it connected to: its name if that is known, else the address */
	uint16_t port;
};

struct request_refusal {
	uint16_t status;
	enum net_event_kind event;
	const char *code, *message, *why; /* constants: for the answer, and for the log */
};

struct request {
	struct host host;
	struct net_open open; /* without stream, connection; views into host and the head */
	struct request_refusal refusal; /* status 0: none */
};

/* Fills ret. Fields are not looked at beyond what the parser derived: stream them with
 * request_add_fields(). */
void request_judge(const struct http_head *h, const struct request_via *via, struct request *ret);
/* Adds the fields that travel end to end. */
void request_add_fields(const struct http_head *h, struct net_fields_out *out);
