/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The stages of a connection that no longer speaks HTTP: bytes go both ways, at the receiver's
 * pace. In a WebSocket they are frames, which are judged. In a tunnel they are the client's own
 * TLS or, if a rule passes plain TCP there, anything, which is not looked into. */

#include "gateway/conn.h"
#include "gateway/stream.h"

/* The broker has answered 101 on s, and the answer is in c->out: make c a WebSocket. Takes s over
 * (its owner may go) and replaces c->state, which the caller frees afterwards. Return 0, or -ENOMEM
 * with c unchanged; s may be closed then. */
_warn_unused_ int tunnel_websocket(struct conn *c, struct stream *s);

/* Ask the broker for a tunnel of plain TCP to where c leads; nothing was read. If no rule is for
 * it, entry_identify() follows. May end the connection. */
struct sshleg_request;
/* c is a socket to the room's end of SSH (ssh.h), whose request m was read; it has n bytes of
 * c->in. */
void tunnel_start_ssh(struct conn *c, const struct sshleg_request *m, size_t n);
void tunnel_start_tcp(struct conn *c);

/* Ask the broker for a tunnel to c->host and c->port. taken is what the client has sent so far; it
 * is copied, and c->tls is freed. May end the connection. */
void tunnel_start(struct conn *c, struct str taken);
