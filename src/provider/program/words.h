/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The lines that are spoken with a provider's program (docs/design/provider-protocol.md). */

#include "base/buf.h"

/* Adds a line of words; the last one is NULL. A byte that is no printable ASCII, a space or a
 * backslash is written as \0 and three octal digits, as printf %b of a shell reads it; an empty
 * word as \0000, which no word has. 0 or -ENOMEM. */
_warn_unused_ int words_add_line(struct buf *out, ...) __attribute__((sentinel));

/* The most that a program may answer, and the longest text in it that is shown. */
enum { WORDS_ANSWER_MAX = 64 * 1024, WORDS_TEXT_MAX = 400, WORDS_CANNOT_MAX = 8 };

/* What a program said. */
struct words_answer {
	bool ok;
	char error[WORDS_TEXT_MAX + 1], hint[WORDS_TEXT_MAX + 1], version[WORDS_TEXT_MAX + 1];
	char *cannot[WORDS_CANNOT_MAX]; /* heap */
	unsigned cannot_n;
};

/* Reads an answer: hostile bytes. False if it is none: no "ok" and no "error" at its end. */
_warn_unused_ bool words_read_answer(struct str text, struct words_answer *ret);
void words_answer_done(struct words_answer *a);
