/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Judge single files that a room has left by their content. */

#include "workspace/obeyed.h"
#include <limits.h>
#include <stddef.h>
#include <sys/stat.h>

struct look;

struct judge {
	int root, dir;               /* of the mount, and of the file's directory */
	const char *in, *name;       /* that directory's path from the root; the file's name */
	const char *source, *target; /* of the mount, on the host and in the room */
	const struct look *look;     /* all mounts that the room could write to; NULL: only this */
};

/* Whether a configuration of git has keys that are not known to be harmless, or cannot be read. */
bool judge_has_commands(const struct judge *j);

/* Whether a file leads git elsewhere than to a worktree's or submodule's place in a .git directory
 * of the same mount, which is searched itself. */
bool judge_leads_away(const struct judge *j);

/* Whether the file lies in a worktree that git has made inside of another one of its repository,
 * and is the same there as in the other one, whose file was read-only inside (which kept() says of
 * a path from the root). So the host obeyed it already. */
typedef bool (*judge_kept_fn)(void *user, int root, const char *path);
bool judge_is_twin(const struct judge *j, const struct stat *st, judge_kept_fn kept, void *user);

/* Find the hooks directory that this configuration names. Return the path from the root, if it is
 * beneath the root by its name; the caller frees it. There may be nothing, or a link on the way.
 * NULL: none, or no memory. */
char *judge_hooks(const struct judge *j);

/* Return the row of the table for the file or directory fd, which is mounted by itself, as if its
 * place had been searched: by the last three names of its real path, and by the content of the
 * directories around it, which may be git's. NULL: it is not obeyed. path gets the real path. */
const struct obeyed *judge_mount(int fd, char path[PATH_MAX]);
const struct obeyed *judge_mounted(int fd); /* without the path */

/* Whether a regular file gives capabilities when it is executed. name "": the file is dir
 * itself. */
bool judge_has_capabilities(int dir, const char *name);
