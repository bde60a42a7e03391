/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For the tests of HTTP/2: the room's end of a connection, which is the same engine in its other
 * role, through a gateway in a process of its own. */

#include "base/clock.h"
#include "gateway/limits.h"
#include "gateway/testing.h"
#include "http/test-side.h"
#include "tap.h"

extern struct rig rig;

/* A connection of the room's. */
struct room {
	struct client c;
	struct side s;
	int fed; /* what h2_feed() said last */
};

bool has(const struct buf *b, const char *text);
void room_start(struct room *r, uint32_t stream_window, uint32_t window);
void room_stop(struct room *r);
void room_say(struct room *r);

/* Say what there is to say and take what comes within that time; false at the end. */
bool room_turn(struct room *r, int timeout_ms);

/* Until it knows what it may do. */
void room_settle(struct room *r);

/* Until what it was told contains text. */
bool room_told(struct room *r, const char *text);

struct ask {
	const char *method, *host, *target, *fields, *body;
	unsigned flags;
	uint64_t length; /* of the body, where it is told */
	bool goes_on;    /* the body's end is not sent */
};

/* Nothing is sent yet. */
struct leg *room_prepare(struct room *r, const struct ask *a);
struct leg *room_ask(struct room *r, const struct ask *a);
