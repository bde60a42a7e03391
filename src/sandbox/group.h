/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What executes on behalf of a sandbox's handle, so that all of it can be stopped at once. A group
 * is open or closed, and closed at first; only in an open one something can begin. It lives as long
 * as the handle or a member does. Any thread, none of it in a signal handler. */

#include "base/err.h"
#include <stdbool.h>

struct sandbox_group;

/* One that may execute again and again; zero before it joins. Its owner's, who keeps it where it
 * is until it has left. */
struct sandbox_member {
	struct sandbox_group *group;            /* NULL: none, and nothing below does anything */
	struct sandbox_member *next, *previous; /* of those that execute */
	void (*stop)(void *user); /* called by another thread, under the group's lock */
	void *user;
};

/* NULL on lack of memory. */
struct sandbox_group *sandbox_group_new(void);
/* Gives a reference back; what executes goes on. NULL is fine. Returns NULL. */
struct sandbox_group *sandbox_group_unref(struct sandbox_group *g);

/* Waits until a closing that is under way is over, then opens. */
void sandbox_group_open(struct sandbox_group *g);
/* Closes, asks all that execute to stop, and waits until they have ended. */
void sandbox_group_close(struct sandbox_group *g);
/* 0, or -E_CANCELLED if it is closed. g NULL is closed. */
_warn_unused_ int sandbox_group_check(struct sandbox_group *g, struct cloche_err *err);

/* m takes a reference to g. As sandbox_group_check. */
_warn_unused_ int sandbox_group_join(struct sandbox_group *g, struct sandbox_member *m,
	void (*stop)(void *user), void *user, struct cloche_err *err);
/* It does not execute. */
void sandbox_member_leave(struct sandbox_member *m);

/* It executes from here on: stop may be called at once. As sandbox_group_check. */
_warn_unused_ int sandbox_member_begin(struct sandbox_member *m, struct cloche_err *err);
/* Stop is called no more when this returns. */
void sandbox_member_end(struct sandbox_member *m);
