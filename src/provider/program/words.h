/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The lines that are exchanged with a provider's program (docs/design/provider-protocol.md). */

#include "base/buf.h"

/* Add a line of words; the last argument is NULL. Any byte that is not printable ASCII, and a space
 * or backslash, is written as \0 and three octal digits, as printf %b of a shell reads it. An empty
 * word is written as \0000, which no other word contains. Return 0 or -ENOMEM. */
_warn_unused_ int words_add_line(struct buf *out, ...) __attribute__((sentinel));
/* The same of an array that ends with NULL. */
_warn_unused_ int words_add_all(struct buf *out, const char *const *words);

/* Limits: the size of an answer, the longest text in it that is shown, and the number of "cannot"
 * lines. */
enum { WORDS_ANSWER_MAX = 64 * 1024, WORDS_TEXT_MAX = 400, WORDS_CANNOT_MAX = 8 };

/* The answer of a program. */
struct words_answer {
	bool ok;
	bool far;        /* from here on the program is a stream to where the room is made */
	bool root_image; /* the room's root is the image that was asked for */
	bool gone;       /* with the error of connect: the room is gone for good */
	/* Where the program makes rooms, if not on this machine. */
	char place[WORDS_TEXT_MAX + 1];
	char error[WORDS_TEXT_MAX + 1], hint[WORDS_TEXT_MAX + 1], version[WORDS_TEXT_MAX + 1];
	char cannot[WORDS_CANNOT_MAX][WORDS_TEXT_MAX + 1];
	unsigned cannot_n;
};

/* Read an answer; its bytes are hostile. Return false if it is incomplete: it has to end with "ok",
 * "far" or "error". */
_warn_unused_ bool words_read_answer(struct str text, struct words_answer *ret);
