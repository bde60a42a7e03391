/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a command says of a protected thing that it could not change. That a system call failed with
 * EBUSY or EROFS is known to the program alone, so what it prints is all that there is to go by. A
 * room can print what it likes: of its words, only the name of a thing that is protected is
 * believed. */

#include "base/buf.h"

/* Of a line this much is looked at; and so many lines with such an error. */
enum { HEARD_LINE_MAX = 1024, HEARD_MAX_LINES = 1000 };

struct heard {
	struct heard_thing {
		char *name, *target, *also; /* in its mount; in the room; there, or NULL */
		bool hit;
	} * things;
	size_t n, cap;
	char line[HEARD_LINE_MAX];
	size_t line_n;
	size_t lines;
};

void heard_done(struct heard *h);

/* Add a thing that is read-only in the room: its path below its mount, and one or two (also, or
 * NULL) in the room. All are copied. Return 0 or -ENOMEM. */
_warn_unused_ int heard_add(
	struct heard *h, const char *name, const char *target, const char *also);

/* Listen to a piece of what the command prints. */
void heard_feed(struct heard *h, const char *p, size_t n);

/* Add one line about what was heard to out, without its end; nothing if there was nothing. Things
 * in a git directory are only named: who opens them lets the room run what it likes on this
 * machine. Return 0 or -ENOMEM. */
_warn_unused_ int heard_tell(struct heard *h, struct buf *out);
