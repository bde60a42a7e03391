/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The recording of what the room sends and gets: lines of a cassette (cassette/cassette.h), written
 * at the room's end of the chain, so that values of secrets are in none. Nothing happens if
 * nothing is recorded. */

#include "base/buf.h"
#include "cassette/write.h"

#include <stdbool.h>

struct broker;
struct http_fields;
struct net_response;
struct stream;

struct tape {
	int fd; /* -1: nothing is recorded (any more) */
	uint64_t limit, bytes;
	uint64_t last; /* number that was given */
	struct buf line;
};

/* Of one stream. */
struct tape_track {
	uint64_t number; /* of the exchange; 0: it is not recorded */
	bool cut;        /* the rest of its bodies is not kept */
	bool raw;        /* it has become a WebSocket or a tunnel */
	bool ended;
};

void tape_init(struct tape *t);
/* Takes fd, a file for appending alone. limit: bytes; 0: as many as usual. */
void tape_start(struct tape *t, int fd, uint64_t limit);
void tape_done(struct tape *t);

/* The request of s, whose head came just now. */
void tape_request(struct stream *s);
/* The URL of s, whose head is as it came: adds it to ret. 0 or a negative errno of buf_add. */
_warn_unused_ int tape_url(const struct stream *s, struct buf *ret);
void tape_sent(struct stream *s, struct str bytes);
void tape_sent_end(struct stream *s);
/* It is refused; the answer follows. */
void tape_refused(struct stream *s, unsigned status);
void tape_response(
	struct stream *s, const struct net_response *m, const struct cassette_headers *headers);
/* Borrows f, which may be NULL: there are none. */
struct cassette_headers tape_headers(const struct http_fields *f);
void tape_data(struct stream *s, struct str bytes);
void tape_end(struct stream *s, const struct http_fields *trailers);
/* It is over: broken off, if its answer has not ended. */
void tape_closed(struct stream *s);
