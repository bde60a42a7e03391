/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For the tests of HTTP/2: an end of a connection that writes down what it is told, and what moves
 * bytes between two of them, cut in every way. */

#include "http/h2.h"

enum { SIDE_STREAMS = 512, OUT_ENOUGH = 64 * 1024 };

struct side;

/* One stream as its user sees it. */
struct leg {
	struct side *side;
	struct h2_stream *st; /* NULL: gone */
	uint32_t id;
	struct buf out; /* waits to be sent */
	uint64_t received, sent;
	enum h2_error error;
	bool ended, gone;
};

struct side {
	struct h2 *h;
	struct buf log, out;
	struct leg legs[SIDE_STREAMS];
	unsigned legs_n, goaways, settings;
	bool keeps; /* data is not given back */
	bool quiet; /* nothing is written down */
	void (*on_head)(struct leg *l, struct http_head *head);
	void (*on_end)(struct leg *l);
	void (*on_data)(struct leg *l, size_t n);
	char why[80]; /* the last malformed one */
};

/* End the test program if there are too many. */
struct leg *leg_new(struct side *s);

int side_try(struct side *s, enum h2_role role, uint32_t stream, uint32_t window);
void side_done(struct side *s);

/* What it has noted since the last time. */
const char *side_log(struct side *s);

/* Reproducible, unlike base/rand.h. */
unsigned h2_random(unsigned bound);

/* Move what `from` has to say to `to` in pieces of at most `most` bytes; return whether there was
 * any. */
bool side_move(struct side *from, struct side *to, unsigned most);

/* Until neither has more to say. */
void side_settle(struct side *a, struct side *b, unsigned most);
