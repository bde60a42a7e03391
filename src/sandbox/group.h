/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Everything that executes on behalf of a sandbox's handle, so that all of it can be stopped at
 * once. A group is open or closed, and closed at first; only in an open group something can begin.
 * It lives as long as the handle or a member does. Any thread may call these functions, but not a
 * signal handler. */

#include "base/err.h"
#include "base/macro.h"
#include <stdbool.h>

struct sandbox_group;

/* A member may execute any number of times. All members are zero before it joins. The caller owns
 * it and must not move it until it has left. */
struct sandbox_member {
	struct sandbox_group *group;        /* NULL: no group; begin and end then do nothing */
	struct sandbox_member *prev, *next; /* in the list of executing members */
	void (*stop)(void *user);           /* called by another thread, under the group's lock */
	void *user;
};

/* Return NULL on lack of memory. */
struct sandbox_group *sandbox_group_new(void);
/* Release a reference; executing members go on. NULL is fine. Return NULL. */
struct sandbox_group *sandbox_group_unref(struct sandbox_group *g);

/* Wait until a close that is in progress is over, then open the group. */
_warn_unused_ int sandbox_group_open(struct sandbox_group *g, struct cloche_err *err);
/* Close the group, ask all executing members to stop, and wait until they have ended. It is closed,
 * and they are asked, even if this fails, as it does if its job was cancelled. */
_warn_unused_ int sandbox_group_close(struct sandbox_group *g, struct cloche_err *err);
/* Return 0, or -E_CANCELLED if the group is closed. NULL counts as closed. */
_warn_unused_ int sandbox_group_check(struct sandbox_group *g, struct cloche_err *err);

/* Add m, which takes a reference to g. Return as sandbox_group_check. */
_warn_unused_ int sandbox_group_join(struct sandbox_group *g, struct sandbox_member *m,
	void (*stop)(void *user), void *user, struct cloche_err *err);
/* Remove m, which must not be executing. */
void sandbox_member_leave(struct sandbox_member *m);

/* m executes from here on, and stop may be called at once. Return as sandbox_group_check. */
_warn_unused_ int sandbox_member_begin(struct sandbox_member *m, struct cloche_err *err);
/* m does not execute any more. After the return, stop is not called any more. */
void sandbox_member_end(struct sandbox_member *m);
