/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The stages of a connection that is HTTP no more: bytes go both ways, at the pace of whoever takes
 * them. Of a WebSocket they are frames that are judged; of a tunnel they are the client's own TLS,
 * into which nobody looks. */

#include "gateway/conn.h"
#include "gateway/stream.h"

/* The broker has answered 101 on s, and the answer stands in c->out: from now on c is a WebSocket.
 * s is taken over (its owner may go); the state that c had is left to the caller, who sets it free
 * first. Returns 0, or -ENOMEM with nothing changed. */
_warn_unused_ int tunnel_websocket(struct conn *c, struct stream *s);

/* Asks the broker for a tunnel to c->host and c->port. taken: what the client has sent so far; it
 * is copied, and TLS of our own, if any, goes. The connection may be gone after it. */
void tunnel_start(struct conn *c, struct str taken);
