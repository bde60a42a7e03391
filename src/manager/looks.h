/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The inspection of directories that a room could write to (workspace/look.h). It is planned before
 * the room is made, and done at the sandbox's end or, after a crash, by the process that removes
 * the remains. The findings are kept until they were shown to a user (docs/design/formats.md).
 * INV-NOTHING-PLANTED. */

#include "manager/own.h"
#include "workspace/carry.h"
#include "workspace/look.h"

/* Make the plan, before the room is made, and what the room gets in place of configurations of git
 * (spec's mounts). Return 0 or -E_NO_MEMORY. */
_warn_unused_ int looks_plan(
	struct look *l, struct carry *c, struct room_spec *spec, struct cloche_err *err);

/* Write the plan into the sandbox's directory (which is made if it does not exist yet), unless the
 * room can write nowhere. Call this while the room is made, before a command can begin in it. init:
 * its process 1. */
_warn_unused_ int looks_note(
	struct look *l, struct sandbox_dir *d, const char *id, pid_t init, struct cloche_err *err);

/* Inspect the directories, when nothing of the room runs any more, and take over what it has set in
 * configurations of git, and tell what git could not change. copies: those (struct room's
 * config_fd); -1: there are none. owner: the process that waits for the end and will show the
 * findings, 0 for none; while it lives, no other process shows them. Return 0, or a failure if
 * findings are missing or cannot be kept: the rest was done. */
_warn_unused_ int looks_through(const struct look *l, struct carry *c, int copies,
	struct sandbox_dir *d, pid_t owner, struct cloche_err *err);

/* Inspect the directories while the room lives and has no hand in them, since files come from it
 * only by copying: keep what is found for `owner`, as above. The plan stays. */
_warn_unused_ int looks_meanwhile(
	const struct look *l, const struct sandbox_dir *d, pid_t owner, struct cloche_err *err);

/* The same with the plan in the directory of a crashed sandbox, if there is one. The caller holds
 * the lock, and removes the directory afterwards. */
_warn_unused_ int looks_after_crash(int base, int dir, const char *id, struct cloche_err *err);

/* Pass on findings that were not shown yet, of one sandbox or (id NULL) of all whose owner is gone.
 * fn gets the text of each: first a line {"owner", "owner_start", "more"}, then those of struct
 * look_told. forget: delete the findings, as fn has shown them. */
typedef void (*looks_fn)(void *user, const char *id, struct str text);
void looks_take(int base, const char *id, bool forget, looks_fn fn, void *user);
