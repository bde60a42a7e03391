/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The person's ssh, as what carries bytes to a place. One connection to a place is kept for a while
 * after its last use, so that the next stream costs no handshake. */

#include "base/err.h"

enum { CARRIER_NAME = 40 };
struct carrier {
	char *ssh;                   /* its path */
	const char *place;           /* borrowed */
	char name[CARRIER_NAME + 1]; /* of the socket: a digest of the place */
};

static inline void carrier_donep(struct carrier *c)
{
	freep(&c->ssh);
}

/* Find ssh and go to the private directory where its connections have their sockets. */
_warn_unused_ int carrier_init(struct carrier *ret, const char *place, struct cloche_err *err);
/* Have a connection to the place. doubt: one that is there already has to show that it works. */
_warn_unused_ int carrier_connect(
	const struct carrier *c, bool doubt, int patience_sec, struct cloche_err *err);
/* Run a script in the place, without input and output. */
_warn_unused_ int carrier_run(
	const struct carrier *c, const char *script, int patience_sec, struct cloche_err *err);
/* Answer with "far" and become what carries our standard input and output to a script in the place.
 * Return only if nothing was answered. */
int carrier_become(const struct carrier *c, const char *script, struct cloche_err *err);
