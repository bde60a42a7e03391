/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Mounts through the kernel's file descriptor interface: a tree is made detached, given its
 * attributes, and attached once. A path is never interpreted twice. */

#include "provider/spec.h"

struct mount_option {
	const char *key, *value; /* value NULL: a flag */
};

/* Make a new file system of that type; options end with a NULL key. attrs: MOUNT_ATTR_*. Return the
 * detached mount's descriptor. */
_warn_unused_ int mount_new(const char *fstype, const struct mount_option *options, unsigned attrs,
	struct cloche_err *err);

/* Make a detached copy of the tree at path (relative to dirfd; "" for dirfd itself) with everything
 * that is mounted below it, and set these attributes on all of it (0: none). */
_warn_unused_ int mount_clone(int dirfd, const char *path, uint64_t attrs, struct cloche_err *err);
/* The same, but return -ENOENT (without err) if path does not exist. */
_warn_unused_ int mount_clone_if_there(
	int dirfd, const char *path, uint64_t attrs, struct cloche_err *err);

/* The same for what fd was opened on. apart: in another mount namespace, so it is found here by the
 * path that it has now (fs_open_again). */
_warn_unused_ int mount_clone_opened(
	int fd, bool apart, uint64_t attrs, const char *name, struct cloche_err *err);

/* Mount over a guard of the spec a copy of `over` or, if that is -1, of itself: m lies at path
 * below the mount that this descriptor leads to. If that is not what was found, the start is
 * refused (INV-NAMED-ONCE). */
_warn_unused_ int mount_guard(int mount, const char *path, const struct room_mount *m, int over,
	uint64_t attrs, struct cloche_err *err);

/* Map the owners in the tree by that user namespace. Return 0 or -errno. */
_warn_unused_ int mount_idmap(int tree, int userns_fd);

/* The same for the mount on top alone, whatever is mounted below it. */
_warn_unused_ int mount_idmap_top(int tree, int userns_fd);

/* Attach a tree at path relative to dirfd ("" for dirfd itself). name is for messages. */
_warn_unused_ int mount_attach(
	int tree, int dirfd, const char *path, const char *name, struct cloche_err *err);

/* Stop mount events between this namespace and the host's, in both directions. */
_warn_unused_ int mount_make_private(struct cloche_err *err);

/* Make the mount whose root is dirfd, and which is attached on top of the old root, the root of the
 * namespace. Nothing of the old root can be reached any more. The working directory is the new
 * root. */
_warn_unused_ int mount_pivot(int dirfd, struct cloche_err *err);
