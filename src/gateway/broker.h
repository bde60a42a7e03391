/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The channel to the broker. Its frames are given to the streams and handshakes that they belong
 * to. */

#include "base/err.h"

struct gateway;

/* Watches g->broker and queues the greeting. Returns 0 or sets err. */
_warn_unused_ int broker_start(struct gateway *g, struct cloche_err *err);
/* Write pending output at the end of an iteration, and resume held connections if the broker has
 * caught up. */
void broker_flush(struct gateway *g);
/* Handle the frames that have arrived. */
void broker_read(struct gateway *g);
