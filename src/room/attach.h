/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Puts trees into their places in a room, beneath its root (target.h). */

#include "provider/spec.h"
#include "room/target.h"

/* Attach a tree at a path, which is made if it is missing. */
_warn_unused_ int attach_beneath(const struct target_root *root, int tree, const char *path,
	bool is_dir, struct cloche_err *err);

/* What the mounts of a room are attached to. */
struct attach {
	const struct target_root *root;
	const struct room_spec *spec;
	const int *trees; /* of its mounts; -1: left out, or a guard */
};

/* Attach a tree at a path when the n first mounts are in their places. If it lies in one of these,
 * nothing is made and no link is followed there; else as attach_beneath(). */
_warn_unused_ int attach_tree(const struct attach *a, size_t n, int tree, const char *path,
	bool is_dir, struct cloche_err *err);

/* Mount a guard in its mount, of which this is the tree. attrs: as for mount_clone(). */
_warn_unused_ int attach_guard(const struct target_root *root, int tree,
	const struct room_spec *spec, const struct room_mount *m, uint64_t attrs,
	struct cloche_err *err);

/* When all mounts and guards are in their places: attach what lies over guards of git, which are
 * hooks of ours and copies of configurations. Store in *copies (-1 before) the directory of these
 * copies, if there are any. */
_warn_unused_ int attach_covers(const struct room_spec *spec, const struct target_root *root,
	int *copies, struct cloche_err *err);

/* When all mounts are attached: attach a copy of number i, with all that was mounted in it, at its
 * second path. */
_warn_unused_ int attach_again(
	const struct attach *a, size_t i, bool is_dir, struct cloche_err *err);

/* For a closed mount: return whether the directory around it is missing. */
bool attach_has_to_make(const struct target_root *root, const struct room_mount *m);
/* Make this directory read-only, after everything else, but not what is mounted in it. */
_warn_unused_ int attach_close(
	const struct target_root *root, const struct room_mount *m, struct cloche_err *err);
