/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a provider's program in C is asked, and how it answers (docs/design/provider-protocol.md).
 */

#include "base/buf.h"
#include "base/err.h"

enum { ASKED_LINE_MAX = 256 * 1024, ASKED_MAX = 1024 * 1024 };

/* Return what a quoted word stands for: heap, or NULL with err set. */
char *asked_word(struct str word, struct cloche_err *err);
/* Exchange the heap string *at for what a quoted word stands for. */
_warn_unused_ int asked_set(char **at, struct str word, struct cloche_err *err);

/* Take a line, without its end. Return 1 if it is the last one, 0 if not, or an error. */
typedef int (*asked_take_fn)(void *user, struct str line, struct cloche_err *err);
/* Take the first line of a request, or any later one that is the last. As asked_take_fn, and 2 for
 * a line that is the caller's. *begun: whether the first line was taken. */
_warn_unused_ int asked_take(bool *begun, struct str line, struct cloche_err *err);
/* Read a request to its last line and not a byte further: what follows is not ours. */
_warn_unused_ int asked_read(int fd, asked_take_fn fn, void *user, struct cloche_err *err);

/* Return the last line that is not empty. */
struct str asked_last_line(struct str text);

/* Write "far" and execute argv with our standard input and output. If that fails, end: behind "far"
 * nobody waits for an answer.
 */
_noreturn_ void asked_become(const char *name, const char *path, const char *const *argv);

/* Write to standard output, which is non-blocking, as much as it takes now. */
_warn_unused_ int asked_write(struct buf *out, struct cloche_err *err);

/* The whole program: verb is one of those of the protocol. answer returns 0, or negative with err
 * set; if gone is set as well, the room is gone for good. */
struct asked_answer {
	struct cloche_err err;
	bool gone;
};
int asked_main(int argc, char **argv, int (*answer)(const char *verb, struct asked_answer *ret));
