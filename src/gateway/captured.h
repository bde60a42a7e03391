/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Takes the connections of a room without listeners: a relay sends them (ipc/capture.h). */

#include "ipc/chan.h"
#include "loop/loop.h"

struct gateway;

struct captured {
	struct gateway *g; /* NULL: not in use */
	struct chan chan;
	struct loop_io io;
	struct loop_job more; /* whole frames are still buffered */
};

/* Take fd. Return 0 or -errno. */
_warn_unused_ int captured_add(struct gateway *g, struct captured *c, int fd);
void captured_done(struct captured *c);
/* Stop taking connections, or go on. */
void captured_pause(struct captured *c, bool paused);
