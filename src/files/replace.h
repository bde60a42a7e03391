/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* New things take their name only when they are complete: they are made under a temporary name in
 * the same directory and renamed. All return 0 or -errno. */

#include "base/macro.h"
#include <stdbool.h>
#include <sys/types.h>

enum { REPLACE_NAME_MAX = 40 };

/* A name that nobody has: ".cloche-...tmp". */
void replace_name(char ret[REPLACE_NAME_MAX]);

struct replace {
	int dir; /* borrowed */
	int fd;  /* owned, for writing; -1 if there is no file under way */
	char name[REPLACE_NAME_MAX];
};
#define REPLACE_NULL ((struct replace){.dir = -1, .fd = -1})

/* Makes an empty temporary file in dir, which has to stay open. */
_warn_unused_ int replace_begin(struct replace *r, int dir, mode_t mode);
/* Gives it its name. over: what has that name (no directory) is replaced, else -EEXIST. On failure
 * nothing is left. */
_warn_unused_ int replace_commit(struct replace *r, const char *name, bool over);
/* Forgets it; after a commit, or without a begin, there is nothing to do. */
void replace_abort(struct replace *r);
static inline void replace_abortp(struct replace *r)
{
	replace_abort(r);
}

/* The last step for what was made under a temporary name: as replace_commit. */
_warn_unused_ int replace_rename(int dir, const char *temporary, const char *name, bool over);
