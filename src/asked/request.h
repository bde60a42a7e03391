/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What this program is asked (docs/design/provider-protocol.md). */

#include "base/err.h"
#include "base/str.h"
#include <stdbool.h>
#include <stdint.h>

/* Heap; NULL or 0: it was not said. */
struct request {
	char *id, *hostname, *place, *script, *image;
	char **labels; /* KEY=VALUE (strv) */
	uint64_t memory_bytes, cpus_milli, lifetime_sec;
	bool memory_optional, cpus_optional; /* nobody asked for it */
	bool begun;                          /* its first line was read */
};

void request_done(struct request *r);
static inline void request_donep(struct request *r)
{
	request_done(r);
}

/* As asked_take_fn. Lines that this program need not know are passed over. */
_warn_unused_ int request_take_line(struct request *r, struct str line, struct cloche_err *err);
/* Read a request, which the caller has set to 0. */
_warn_unused_ int request_read(struct request *r, int fd, struct cloche_err *err);
