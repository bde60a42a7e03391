/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What `cloche doctor` learns of another machine. Over the stream to `cloche-far probe`: each
 * PROBE_ECHO comes back as it is, so that near measures the round trip; PROBE_ASK is answered by a
 * little-endian length of four bytes and as much of struct far_probed. Far is hostile. */

#include "far/greet.h"
#include "far/protocol.h"

enum { PROBE_ECHO = '.', PROBE_ASK = '?' };
enum { PROBE_MAX_PAYLOAD = 64 * 1024 };

/* An answer: what `probed` points to is in `payload`. */
struct far_probe {
	struct buf payload;
	struct far_probed probed;
	uint64_t round_trip_usec; /* the shortest of a few */
};

/* Ask. The stream was greeted. On success the caller has to call far_probe_done(). */
_warn_unused_ int far_probe_ask(
	const struct greet *g, struct far_probe *ret, struct cloche_err *err);
void far_probe_done(struct far_probe *p);
