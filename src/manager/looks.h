/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The look through what a room could write in (workspace/look.h): planned before the room, done at
 * the sandbox's end or, after a crash, by whoever removes what is left. What it finds is kept until
 * somebody has shown it to a person (docs/design/formats.md). INV-NOTHING-PLANTED. */

#include "manager/own.h"
#include "workspace/look.h"

/* Before the room is made. 0 or -E_NO_MEMORY. */
_warn_unused_ int looks_plan(struct look *l, const struct room_spec *spec, struct cloche_err *err);

/* While it is made, and before a command begins in it: writes the plan into the sandbox's
 * directory (which is made if it is not there yet), unless the room can write in nothing. init:
 * its process 1. */
_warn_unused_ int looks_note(
	struct look *l, struct sandbox_dir *d, const char *id, pid_t init, struct cloche_err *err);

/* When nothing of the room runs any more. owner: the process that waits for the end and will show
 * what was found, 0 for none; nobody else shows it while that lives. */
void looks_through(const struct look *l, struct sandbox_dir *d, pid_t owner);

/* The same from the plan in the directory of a sandbox that crashed, if it is there. The lock is
 * held by the caller, who then removes the directory. */
void looks_after_crash(int base, int dir, const char *id);

/* Hands on what was found and not shown yet, of one sandbox or (id NULL) of all whose owner is not
 * there any more: the text of each, first a line {"owner", "owner_start", "more"}, then those of
 * struct look_told. forget: it has been shown then. */
typedef void (*looks_fn)(void *user, const char *id, struct str text);
void looks_take(int base, const char *id, bool forget, looks_fn fn, void *user);
