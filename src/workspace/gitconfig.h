/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whether a configuration of git (git-config(1), "CONFIGURATION FILE") can make git do more than
 * git does by itself. */

#include "base/buf.h"
#include <stdbool.h>

/* Return true if every key is known to be harmless and has a harmless value. A text that cannot be
 * read as git reads it is not harmless, nor is one for which there is no memory. worktree_is_inside
 * judges the value of core.worktree, which says where git writes files; NULL: none is harmless. */
bool gitconfig_is_harmless(
	struct str text, bool (*worktree_is_inside)(void *user, const char *value), void *user);

/* Whether the text says anything about the repository as a whole: its remotes, branches, submodules
 * or the like, and not only about the files of a worktree. Also true if it cannot be read. */
bool gitconfig_is_of_repository(struct str text);

/* Find the value of a key, such as "core.hookspath" (in small letters); the last one counts, as in
 * git. Return the value as it is written; the caller frees it. NULL: there is none or no memory. */
char *gitconfig_value(struct str text, const char *key);

/* One variable, as it is written: section and key in small letters, the name of the subsection as
 * it is (NULL: none), and the value (NULL: the key stands alone, which means true). */
struct gitconfig_entry {
	char *section, *name, *key, *value;
};

struct gitconfig_list {
	struct gitconfig_entry *entries;
	size_t n, cap;
};

enum { GITCONFIG_MAX_ENTRIES = 2000 };

/* Read all variables in their order. Return 0, -EINVAL if git would not read the text so, -E2BIG,
 * or -ENOMEM; free ret in each case. */
int gitconfig_read(struct str text, struct gitconfig_list *ret);
void gitconfig_list_done(struct gitconfig_list *l);
/* Add a variable to a text; before: the one that was added before, whose section goes on if it is
 * the same, or NULL. Return 0 or a negative errno of buf_add. */
_warn_unused_ int gitconfig_add(
	struct buf *out, const struct gitconfig_entry *e, const struct gitconfig_entry *before);
/* Whether two entries are of the same variable. */
bool gitconfig_is_same(const struct gitconfig_entry *a, const struct gitconfig_entry *b);

/* Whether git takes this for nothing but the address of a repository. */
bool gitconfig_is_harmless_url(const char *url);
