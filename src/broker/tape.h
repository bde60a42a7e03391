/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The recording of what the room sends and receives: lines of a cassette (record/cassette.h).
 * They are written at the room's end of the chain, so that none holds the value of a secret. If
 * recording is off, these functions do nothing. */

#include "base/buf.h"
#include "record/cassette_write.h"

#include <stdbool.h>

struct broker;
struct http_fields;
struct net_response;
struct stream;

struct tape {
	int fd; /* -1: nothing is recorded (any more) */
	uint64_t limit, bytes;
	uint64_t last; /* last number that was used */
	struct buf line;
};

/* The recording of one stream. */
struct tape_track {
	uint64_t number; /* of the exchange; 0: it is not recorded */
	bool cut;        /* the rest of its bodies is not kept */
	bool raw;        /* it has become a WebSocket or a tunnel */
	bool ended;
};

void tape_init(struct tape *t);
/* Start recording to fd, an append-only file, which is taken. limit is in bytes; 0: the default. */
void tape_start(struct tape *t, int fd, uint64_t limit);
void tape_done(struct tape *t);

/* Record the request of s, whose head has just arrived. */
void tape_request(struct stream *s);
/* Add the URL of s, whose head is still as it came, to ret. Return 0 or a negative errno of
 * buf_add. */
_warn_unused_ int tape_url(const struct stream *s, struct buf *ret);
void tape_sent(struct stream *s, struct str bytes);
void tape_sent_end(struct stream *s);
/* Record that s is refused; the answer follows. */
void tape_refused(struct stream *s, unsigned status);
void tape_response(
	struct stream *s, const struct net_response *m, const struct cassette_headers *headers);
/* Return a view of f, which is borrowed. f may be NULL: no headers. */
struct cassette_headers tape_headers(const struct http_fields *f);
void tape_data(struct stream *s, struct str bytes);
void tape_end(struct stream *s, const struct http_fields *trailers);
/* s has closed. It was broken off if its answer has not ended. */
void tape_closed(struct stream *s);
