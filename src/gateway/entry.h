/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The first stages of a connection: find out which protocol it speaks, terminate its TLS, and hand
 * it to the stage for that protocol. */

#include "gateway/conn.h"

void entry_start(struct conn *c);
/* Find out by its first bytes what c is: no rule passes it as plain TCP. */
void entry_identify(struct conn *c);
/* Take the ports of NET_PORTS. Return false if it is malformed. */
bool entry_take_ports(struct gateway *g, const struct net_ports *m);
/* The leaf that c waited for has come, or was refused if leaf is NULL. c->leaf is NULL by now. */
void entry_leaf_ready(struct conn *c, const struct leaf *leaf);
