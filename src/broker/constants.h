/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Limits on memory and time in the broker, see docs/design/limits.md. */

#include "base/clock.h"
#include "ipc/netchan.h"

enum {
	SCRATCH = 32 * 1024,       /* most that is read from an origin at once */
	DECODE_MAX = 128 << 20,    /* memory of all decoders together */
	OUT_HIGH = 256 * 1024,     /* waiting for the gateway: stop reading from it and origins */
	OUT_LOW = 64 * 1024,       /* ... and go on */
	OUT_MAX = 8 * 1024 * 1024, /* a gateway that sends and never reads is cut off */
	REPLAY_MAX = 64 * 1024,    /* kept of a request that may have to be sent again */
	REQUEST_COLLECTED_MAX = 256 * 1024 * 1024,      /* of all collected bodies together */
	REQUEST_HIGH = NET_REQUEST_WINDOW + NET_WINDOW, /* of a request that waits for the origin */
	REQUEST_LOW = 32 * 1024, /* unsent bytes below which the room may send more */
	NOTE_MAX = 512,
	RESOLVER_FDS = 32,
};

#define CONNECT_USEC (10 * USEC_PER_SEC)
#define FETCH_USEC (30 * USEC_PER_SEC)
#define EXPECT_USEC (1 * USEC_PER_SEC) /* for an origin to say 100 */
#define STALL_USEC (60 * 60 * USEC_PER_SEC)
#define FIRST_SWEEP_USEC (1 * USEC_PER_SEC)
#define SWEEP_USEC (5 * USEC_PER_SEC)
