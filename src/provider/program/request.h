/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a provider's program of ours is asked, as it reads it (docs/design/provider-protocol.md).
 * The other side is words.h. */

#include "base/buf.h"
#include "base/err.h"

enum { REQUEST_LINE_MAX = 256 * 1024, REQUEST_MAX = 1024 * 1024 };

/* Heap; NULL: it was not said. */
struct request {
	char *place, *script, *id, *image;
	char **labels; /* KEY=VALUE (strv) */
	bool begun;    /* its first line was read */
};

void request_done(struct request *r);
static inline void request_donep(struct request *r)
{
	request_done(r);
}

/* Take a line, without its end. Return 1 if it is the last one, 0 if not, or an error. Other lines
 * are passed over. */
_warn_unused_ int request_take_line(struct request *r, struct str line, struct cloche_err *err);
/* Read a request, which the caller has set to 0, to its last line and not a byte further: what
 * follows is not ours. */
_warn_unused_ int request_read(struct request *r, int fd, struct cloche_err *err);
