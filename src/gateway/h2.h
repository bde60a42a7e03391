/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The stage that speaks HTTP/2 with the room: many requests at once, each a stream to the broker.
 */

#include "gateway/conn.h"

/* Call this after a handshake that has chosen HTTP/2. */
void h2_start(struct conn *c);
