/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Places in the room where something is mounted or written. */

#include "base/err.h"
#include <stdbool.h>
#include <sys/types.h>

/* The root of a room under construction. New entries may be made only on file systems that vanish
 * with the room, never on a mount of the host. */
struct target_root {
	int fd;           /* directory; every path is resolved beneath it, links included */
	dev_t scratch[8]; /* devices of the temporary file systems */
	unsigned scratch_n;
	/* If it is not 0: the ids of their mounts, in the same order. An engine may keep the root
	 * of a room on the device of what is granted. */
	uint64_t scratch_mounts[8];
};

/* Add the file system that fd is on, told from others by its mount. Return 0 or -errno. */
_warn_unused_ int target_add_scratch(struct target_root *root, int fd);

/* Return whether a directory (O_PATH) lies on one of these file systems. */
bool target_is_scratch(const struct target_root *root, int fd);

/* Open (O_PATH) what `path` leads to. If it does not exist, make it, a directory or an empty file,
 * and the missing directories above it. "a/b" and "/a/b" are the same. Errors: E_DENIED if making
 * it would write to the host, otherwise E_SYSTEM. Return the descriptor. */
_warn_unused_ int target_open(
	const struct target_root *root, const char *path, bool dir, struct cloche_err *err);

/* The same without making anything; return -ENOENT (without err) if it does not exist. */
_warn_unused_ int target_find(
	const struct target_root *root, const char *path, struct cloche_err *err);
