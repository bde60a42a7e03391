/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The first stages of a connection: find out which protocol it speaks, terminate its TLS, and hand
 * it to the stage for that protocol. */

#include "gateway/conn.h"

void entry_start(struct conn *c);
/* The leaf that c waited for has come, or was refused if leaf is NULL. c->leaf is NULL by now. */
void entry_leaf_ready(struct conn *c, const struct leaf *leaf);
