/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whether a configuration of git (git-config(1), "CONFIGURATION FILE") can make git do more than
 * git does by itself. */

#include "base/str.h"
#include <stdbool.h>

/* Return true if every key is known to be harmless and has a harmless value. A text that cannot be
 * read as git reads it is not harmless. worktree_is_inside judges the value of core.worktree, which
 * says where git writes files; NULL: no value is harmless. */
bool gitconfig_is_harmless(
	struct str text, bool (*worktree_is_inside)(void *user, const char *value), void *user);

/* Find the value of a key, such as "core.hookspath" (in small letters); the last one counts, as in
 * git. Return true with the value as it is written, cut if it does not fit. */
bool gitconfig_value(struct str text, const char *key, char *ret, size_t size);
