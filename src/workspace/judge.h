/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Single files that a room has left, judged by what is in them, and mended. */

#include <stdbool.h>
#include <stddef.h>

struct judge {
	int root, dir;               /* of the mount, and of the directory it lies in */
	const char *in, *name;       /* that directory's path from the root; its name there */
	const char *source, *target; /* of the mount, on the host and in the room */
};

/* A configuration of git with keys that are not known to be harmless, or that cannot be read. */
bool judge_has_commands(const struct judge *j);

/* A file that leads git elsewhere than to a worktree's or submodule's place in a .git directory of
 * the same mount, which is looked through itself. */
bool judge_leads_away(const struct judge *j);

/* Where this configuration says that hooks lie: true with the path from the root, if it lies
 * beneath it and there is a directory that no link leads to. */
bool judge_hooks(const struct judge *j, char *ret, size_t size);

/* Whether a regular file gives capabilities to whoever executes it; name "": what dir is. */
bool judge_has_capabilities(int dir, const char *name);

/* Takes set-id bits and capabilities from a regular file; name "": from what dir is. 0 or -errno.
 */
int judge_strip(int dir, const char *name);
