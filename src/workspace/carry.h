/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a room may set in a repository's own configuration. Inside, commands have a copy of it,
 * which they can change as they like. When the room has ended, harmless variables that are new
 * there (remotes, the branches' upstreams, the user) are added to the file on the host; the rest is
 * told.
 */

#include "workspace/stuck.h"

struct carry_file {
	int dir;       /* in which the file lies; O_PATH, owned */
	char *path;    /* for words */
	char *name;    /* in dir */
	size_t number; /* of its copy in the room */
	char *before;  /* the text when the room began */
};

struct carry {
	struct carry_file *files;
	size_t n, cap;
	struct stuck stuck;
};

void carry_done(struct carry *c);
static inline void carry_donep(struct carry *c)
{
	carry_done(c);
}

/* What the room's git is told besides. hooks: where it looks for hooks if the file names a
 * directory. records: there are worktrees elsewhere, whose records are read-only. */
struct carry_ours {
	const char *hooks;
	bool records;
};

/* Plan it for a file below a mount (borrowed). path: of the whole, for words. *ret_text: the text
 * of the copy, or NULL: the file cannot be read, and stays as it is inside. *ret_own: the directory
 * that the file names, or NULL. Both are the caller's. Return 0 or -ENOMEM. */
_warn_unused_ int carry_add(struct carry *c, int mount, const char *below, const char *path,
	size_t number, const struct carry_ours *ours, char **ret_text, char **ret_own);

/* Take over what has to be taken over, and tell what git could not change. copies: the directory
 * with a directory for each copy, by its number, in which the file is called CARRY_NAME; everything
 * in them is the room's. Return 0 or -ENOMEM. */
#define CARRY_NAME "config"
_warn_unused_ int carry_over(
	struct carry *c, int copies, const char *hooks_dir, struct look_told *told);

/* Tell that the copies of these configurations (strv, may be NULL) are lost. Return 0 or -ENOMEM.
 */
_warn_unused_ int carry_lost(char *const *paths, struct look_told *told);

/* The judgement, without files: compare what the room has made of `before` and find what has to be
 * added to `now`, as text that can stand at its end. *said: what of that has to be told, *refused:
 * what was changed and is not taken over, both in words; they are empty if there is nothing.
 * hooks_dir: values of core.hooksPath below it are not the room's. Return 0, -EINVAL if the room's
 * text is no configuration, -ESTALE if `now` is none, or -ENOMEM. */
_warn_unused_ int carry_judge(struct str before, struct str room, struct str now,
	const char *hooks_dir, struct buf *add, struct buf *said, struct buf *refused);
