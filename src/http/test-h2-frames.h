/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For tests of HTTP/2: frames, right and wrong ones, for a server to take, and what it answers. */

#include "tap.h"
#include "test-side.h"

enum {
	DATA,
	HEADERS,
	PRIORITY,
	RST_STREAM,
	SETTINGS,
	PUSH_PROMISE,
	PING,
	GOAWAY,
	WINDOW_UPDATE,
	CONTINUATION
};
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4 };

extern struct side s;
extern struct buf in; /* to be fed */
extern bool alive;    /* h2_feed() has not failed */

/* What was answered. */
extern struct answers {
	unsigned resets, acks, settings_acks;
	int32_t reset, goaway; /* codes, -1: none */
	uint32_t reset_id;
} seen;

void u8(struct buf *b, unsigned v);
void frame(unsigned type, unsigned flags, uint32_t id, struct str payload);
void frame_u32(unsigned type, uint32_t id, uint32_t v);

/* RFC 7541 5.1 and 5.2, without Huffman coding. */
void text(struct buf *b, struct str s_);

/* "name value" pairs up to a NULL; '=' stands before names that are indexed as they are. */
void pairs(struct buf *b, const char *const *p);

extern uint32_t next_id;

void request_with(unsigned flags, const char *const *p);

#define request(flags, ...) request_with(flags, (const char *const[]){__VA_ARGS__, NULL})
#define GOOD ":method", "GET", ":scheme", "https", ":authority", "a.test", ":path", "/"
#define POST ":method", "POST", ":scheme", "https", ":authority", "a.test", ":path", "/"

void see(struct buf *out);

/* Feed what was built, in pieces of at most n bytes, and read the answers. */
void play_cut(size_t n);
void play(void);
void begin_with(struct str preface);
void begin(void);
void done(void);

/* Every head that is wrong costs its stream, and nobody hears of it. */
void refused(const char *why, const char *const *p);

#define REFUSED(why, ...) refused(why, (const char *const[]){__VA_ARGS__, NULL})
