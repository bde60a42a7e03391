/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The channel to the broker: its frames go to the streams and handshakes that they are for. */

#include "base/err.h"

struct gateway;

/* Watches g->broker and queues the greeting. Returns 0 or sets err. */
_warn_unused_ int broker_start(struct gateway *g, struct cloche_err *err);
/* Writes what waits, at the end of an iteration, and lets held connections go on if that is
 * possible again. */
void broker_flush(struct gateway *g);
/* Handles the frames that are there. */
void broker_read(struct gateway *g);
