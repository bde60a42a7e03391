/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Give new things their name only when they are complete: they are made under a temporary name in
 * the same directory and renamed. All functions return 0 or -errno. */

#include "base/macro.h"
#include <stdbool.h>
#include <sys/types.h>

enum { REPLACE_NAME_MAX = 40 };

/* Make a random unused name: ".cloche-...tmp". */
void replace_name(char ret[REPLACE_NAME_MAX]);

struct replace {
	int dir;                     /* borrowed */
	int fd;                      /* owned, for writing; -1 if no file is being written */
	char name[REPLACE_NAME_MAX]; /* "": none */
};
#define REPLACE_NULL ((struct replace){.dir = -1, .fd = -1})

/* Make an empty temporary file in dir, which has to stay open. */
_warn_unused_ int replace_begin(struct replace *r, int dir, mode_t mode);
/* The same, but unless named is true, it has no name if the file system can do that. Then
 * replace_commit() gives -ENOENT if this user may not name it. */
_warn_unused_ int replace_begin_new(struct replace *r, int dir, mode_t mode, bool named);
/* Whether a file has to have a name from the beginning in this directory. One without a name leaves
 * nothing if we are killed, but not every kernel lets us name it later, and what is in it would be
 * lost then: so that is tried. */
bool replace_needs_name(int dir);
/* Rename it to name. over: replace what has that name (not a directory), else -EEXIST. On failure
 * nothing is left. */
_warn_unused_ int replace_commit(struct replace *r, const char *name, bool over);
/* Remove the temporary file. Does nothing after a commit, or without a begin. */
void replace_abort(struct replace *r);
static inline void replace_abortp(struct replace *r)
{
	replace_abort(r);
}

/* Rename something that was made under a temporary name: as replace_commit(). */
_warn_unused_ int replace_rename(int dir, const char *temporary, const char *name, bool over);
