/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a room prints, on its way to a terminal of ours: text, colours and movement pass; what makes
 * a terminal answer, act or stay changed does not. One filter per stream.
 *
 *	struct terminal_filter f;
 *
 *	terminal_filter_open(&f, STDOUT_FILENO, has_tty);
 *	... terminal_filter_write(&f, STDOUT_FILENO, data, n) ...
 *	terminal_filter_close(&f, STDOUT_FILENO);
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum terminal_filter_kind {
	TERMINAL_UNTOUCHED, /* no terminal at our end: bytes pass as they are */
	TERMINAL_TEXT,      /* the command has no terminal of its own: text, colours, movement */
	TERMINAL_PROGRAM,   /* it has one (-t) and may run whole-screen programs in it */
};

enum {
	TERMINAL_FILTER_HELD = 4096, /* the longest sequence that is looked at; longer ones go */
	TERMINAL_FILTER_END = 512,   /* the most that terminal_filter_end() writes */
};

/* What feeding n bytes can write at most. */
#define TERMINAL_FILTER_OUT(n) (3 * (n) + TERMINAL_FILTER_HELD)

struct terminal_filter {
	enum terminal_filter_kind kind;
	unsigned char state;     /* where in a sequence we are */
	unsigned char utf8_left; /* bytes that the character begun still lacks */
	bool drop;               /* the sequence begun has been found wanting already */
	bool asked;              /* a question has passed that the terminal answers */
	bool styled;             /* attributes are on */
	uint64_t modes;          /* switched away from the usual, a bit each */
	uint32_t string_n;       /* bytes of the string begun, held or not */
	uint64_t asked_at; /* with a descriptor: when the last one did, in monotonic milliseconds */
	size_t held_n;
	unsigned char held[TERMINAL_FILTER_HELD];
};

/* --- pure --- */

void terminal_filter_init(struct terminal_filter *f, enum terminal_filter_kind kind);

/* Filters n bytes of the stream into out (of TERMINAL_FILTER_OUT(n) bytes, not the same memory) and
 * returns how many it wrote. Only whole characters and whole sequences are written, so that two
 * streams on one terminal cannot make up one together; nothing else is held back. */
size_t terminal_filter_feed(
	struct terminal_filter *f, const unsigned char *in, size_t n, unsigned char *out);

/* The stream is over: writes what puts the terminal right again (nothing, if nothing was left on)
 * into out and returns how much. What was begun and not finished is dropped. The filter is as new.
 */
size_t terminal_filter_end(struct terminal_filter *f, unsigned char out[TERMINAL_FILTER_END]);

/* --- with a descriptor (terminal_output.c) --- */

/* Chooses the kind: whether fd is a terminal, and whether the command inside has one of its own. */
void terminal_filter_open(struct terminal_filter *f, int fd, bool has_tty);

/* Writes all of it, filtered; false (with errno) if that failed. */
bool terminal_filter_write(struct terminal_filter *f, int fd, const void *data, size_t n);

/* Puts the terminal right if something was left on. Answers to questions of the last moment are
 * waited for, a little, and thrown away: the shell would read them. False as above. Harmless if
 * nothing was written, and a second time. */
bool terminal_filter_close(struct terminal_filter *f, int fd);
