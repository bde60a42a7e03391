/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What git had to change in a room and could not, as it is read-only there. The hooks of the room
 * note it in a file beside the copy of the repository's configuration (githook.sh). That file is
 * the room's: of what it says, only what was read-only is believed. */

#include "workspace/told.h"

/* In the directory of a copy: lines, each a path in the room. */
#define STUCK_NAME "stuck"

/* Each line is compared with each thing, so no more of all files are read. */
enum { STUCK_MAX_LINES = 10000 };

struct stuck {
	struct stuck_guard {
		char *source, *target; /* on the host, in the room */
		bool hit;
	} * guards;
	size_t n, cap;
	size_t lines; /* that were read */
};

void stuck_done(struct stuck *s);

/* Add a thing that is read-only in the room, and one of its paths there. Both are copied. What lies
 * in a git directory is left out: no commit has it, so only a hostile room would name it, to have
 * the person open the hooks. Return 0 or -ENOMEM. */
_warn_unused_ int stuck_add(struct stuck *s, const char *source, const char *target);

/* Whether a path lies in a git directory: one of its names is ".git". */
bool stuck_is_of_git(const char *path);

/* Read a file STUCK_NAME in the directory `name` of `copies`, if there is one. */
void stuck_read(struct stuck *s, int copies, const char *name);

/* Tell what was read, in one line; nothing if there was nothing. Return 0 or -ENOMEM. */
_warn_unused_ int stuck_tell(const struct stuck *s, struct look_told *told);
