/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The stage that speaks HTTP/1.0 and 1.1 with the room: one request at a time, each a stream to the
 * broker. */

#include "gateway/conn.h"

void h1_start(struct conn *c);
/* Free the exchanges that are kept for reuse. */
void h1_pool_done(struct gateway *g);
