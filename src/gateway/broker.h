/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The channel to the broker. Its frames are given to the streams and handshakes that they belong
 * to. */

#include "base/err.h"

struct gateway;

/* Watch g->broker and queue the greeting. Return 0 or set err. */
_warn_unused_ int broker_start(struct gateway *g, struct cloche_err *err);
/* Write pending output at the end of an iteration, and resume held connections if the broker has
 * caught up. */
void broker_flush(struct gateway *g);
/* Handle the frames that have arrived. */
void broker_read(struct gateway *g);
