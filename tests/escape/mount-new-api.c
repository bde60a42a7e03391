/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: the same by descriptors: fsopen, open_tree, move_mount, mount_setattr, fspick
 * Wall: seccomp: the mount API is refused
 * Behind it: user namespace: no capability over the room's mount namespace */
#include "attempt.h"

#include <linux/mount.h>

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

int main(void)
{
	struct mount_attr writable = {.attr_clr = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID};
	struct mount_attr shared = {.propagation = 1 << 20 /* MS_SHARED */};

	REFUSED(syscall(SYS_fsopen, "tmpfs", 0));
	REFUSED(syscall(SYS_fsopen, "ext4", 0));
	REFUSED(syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | AT_RECURSIVE));
	REFUSED(syscall(SYS_fspick, AT_FDCWD, "/usr", 0));
	REFUSED(syscall(SYS_move_mount, AT_FDCWD, "/workspace", AT_FDCWD, "/mnt", 0));
	REFUSED(syscall(SYS_mount_setattr, AT_FDCWD, "/usr", 0, &writable, sizeof(writable)));
	REFUSED(syscall(SYS_mount_setattr, AT_FDCWD, "/ro", 0, &writable, sizeof(writable)));
	REFUSED(syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &shared, sizeof(shared)));
	return verdict();
}
