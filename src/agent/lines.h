/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Cuts a stream of bytes into lines, however the stream was split into chunks. A line longer than
 * the maximum is dropped whole and counted, so that a process that never writes a newline costs at
 * most that much memory. */

#include "base/buf.h"

#define LINES_MAX_DEFAULT (16U << 20)

struct lines {
	struct buf partial; /* the line under way */
	bool skipping;      /* inside a line that was too long */
	uint64_t count;     /* lines delivered */
	uint64_t dropped;   /* lines that were too long */
};

/* Called with each line, without its newline; the view is valid during the call. A negative return
 * stops the feeding. */
typedef int (*lines_fn)(struct str line, void *data);

#define LINES_INIT(maximum) ((struct lines){.partial = BUF_INIT(maximum)})

/* Frees the memory. */
void lines_done(struct lines *l);

/* Takes the next chunk, of any size. Returns 0, -ENOMEM, or what fn returned below 0 (the rest of
 * the chunk is then lost). */
_warn_unused_ int lines_feed(struct lines *l, struct str chunk, lines_fn fn, void *data);

/* The stream is over: delivers a last line that had no newline. Returns as lines_feed does. */
_warn_unused_ int lines_end(struct lines *l, lines_fn fn, void *data);
