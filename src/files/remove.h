/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Removing a tree of any depth. */

#include "base/macro.h"
#include "files/error.h"

/* Remove name in dir with everything below it. Links are removed, not followed. beat (may be NULL)
 * is called between two removals; if it returns a negative value, removing ends. Return 0, or
 * -errno with e filled if the failure was below name. Stops at the first thing that cannot be
 * removed. */
_warn_unused_ int remove_tree(
	int dir, const char *name, int (*beat)(void *user), void *user, struct files_error *e);
