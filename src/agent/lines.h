/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Cuts a stream of bytes into lines, however it was split into chunks. A line longer than the
 * maximum is dropped and counted, so that a process that never writes a newline costs at most that
 * much memory. */

#include "base/buf.h"

#define LINES_MAX_DEFAULT (16U << 20)

struct lines {
	struct buf partial; /* the current, incomplete line */
	bool skipping;      /* inside a line that was too long */
	uint64_t dropped;   /* lines that were too long */
};

/* Called with each line, without its newline; the view is valid during the call. A negative result
 * stops the feeding. */
typedef int (*lines_fn)(struct str line, void *data);

#define LINES_INIT(maximum) ((struct lines){.partial = BUF_INIT(maximum)})

void lines_done(struct lines *l);

/* Take the next chunk, of any size. Return 0, -ENOMEM, or fn's negative result (the rest of the
 * chunk is then lost). */
_warn_unused_ int lines_feed(struct lines *l, struct str chunk, lines_fn fn, void *data);

/* End the stream: deliver a last line that had no newline. Return as lines_feed(). */
_warn_unused_ int lines_end(struct lines *l, lines_fn fn, void *data);
