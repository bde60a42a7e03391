/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Filters the output of a room for our terminal: text, colours and cursor movement pass; what makes
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
	TERMINAL_UNTOUCHED, /* our end is not a terminal: bytes pass unchanged */
	TERMINAL_TEXT,      /* the command has no terminal of its own: text, colours, movement */
	TERMINAL_PROGRAM,   /* the command has a terminal (-t) for full-screen programs */
};

enum {
	TERMINAL_FILTER_HELD =
		4096,              /* the longest sequence that can pass; longer ones are dropped */
	TERMINAL_FILTER_END = 512, /* the most that terminal_filter_end() writes */
};

/* The most that n bytes of input can write. */
#define TERMINAL_FILTER_OUT(n) (3 * (n) + TERMINAL_FILTER_HELD)

struct terminal_filter {
	enum terminal_filter_kind kind;
	unsigned char state;     /* in the current sequence */
	unsigned char utf8_left; /* missing bytes of the current character */
	bool drop;               /* the current sequence will not pass */
	bool asked;              /* a sequence that the terminal answers has passed */
	bool styled;             /* attributes are on */
	uint64_t modes;          /* one bit for each mode that is not in its usual state */
	uint32_t string_n;       /* bytes of the current string, held or not */
	uint64_t asked_at;       /* with a descriptor: when the last question passed (now_usec) */
	size_t held_n;
	unsigned char held[TERMINAL_FILTER_HELD];
};

/* --- pure --- */

void terminal_filter_init(struct terminal_filter *f, enum terminal_filter_kind kind);

/* Filter n bytes of the stream into out (TERMINAL_FILTER_OUT(n) bytes that do not overlap in) and
 * return the number of bytes written. Only complete characters and sequences are written, so that
 * two streams on one terminal cannot form one together. Nothing else is held back. */
size_t terminal_filter_feed(
	struct terminal_filter *f, const unsigned char *in, size_t n, unsigned char *out);

/* End the stream: write what resets the terminal (nothing if nothing was changed) into out and
 * return the number of bytes. Incomplete sequences are dropped. The filter can be used again. */
size_t terminal_filter_end(struct terminal_filter *f, unsigned char out[TERMINAL_FILTER_END]);

/* --- with a descriptor (terminal_output.c) --- */

/* Choose the kind: it depends on whether fd is a terminal, and on whether the command has one. */
void terminal_filter_open(struct terminal_filter *f, int fd, bool has_tty);

/* Write all bytes, filtered. Return false (with errno) on failure. */
bool terminal_filter_write(struct terminal_filter *f, int fd, const void *data, size_t n);

/* Reset the terminal if something was changed. Wait briefly for answers to recent questions and
 * discard them, because the shell would read them as input. Return false (with errno) on failure.
 * May be called twice, or if nothing was written. */
bool terminal_filter_close(struct terminal_filter *f, int fd);
