/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whether a configuration of git (git-config(1), "CONFIGURATION FILE") can make git do more than
 * git does by itself. */

#include "base/str.h"
#include <stdbool.h>

/* True where every key is one of those that are known to be harmless, with a harmless value; what
 * cannot be read as git reads it is not. worktree_is_inside judges the value of core.worktree,
 * which says where git writes files; NULL: no value is harmless. */
bool gitconfig_is_harmless(
	struct str text, bool (*worktree_is_inside)(void *user, const char *value), void *user);
