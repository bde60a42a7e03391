/* SPDX-License-Identifier: Apache-2.0 */
#include "room/mount.h"
#include "base/fd.h"
#include "fs/fs.h"
#include "jail/sys.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

/* The kernel describes its objection in words; the last message is the one that matters. */
static int fs_error(int fsfd, int errnum, const char *fstype, struct cloche_err *err)
{
	char text[256] = "", line[256];
	ssize_t n;

	while ((n = read(fsfd, line, sizeof(line) - 1)) > 0) {
		while (n > 0 && line[n - 1] == '\n')
			n--;
		line[n] = '\0';
		/* "e ", "w " and "i " say how serious it is. */
		snprintf(text, sizeof(text), " (%.200s)", n > 2 ? line + 2 : line);
	}
	return err_sys(err, errnum, "make a file system of type %s%s", fstype, text);
}

int mount_new(const char *fstype, const struct mount_option *options, unsigned attrs,
	struct cloche_err *err)
{
	_cleanup_fd_ int fs = sys_fsopen(fstype);
	int tree;

	if (fs < 0)
		return err_sys(err, errno, "make a file system of type %s", fstype);
	for (; options && options->key; options++)
		if (sys_fsconfig(fs, options->value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG,
			    options->key, options->value, 0) < 0)
			return fs_error(fs, errno, fstype, err);
	if (sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return fs_error(fs, errno, fstype, err);
	tree = sys_fsmount(fs, attrs);
	if (tree < 0)
		return fs_error(fs, errno, fstype, err);
	return tree;
}

int mount_clone_opened(int fd, bool apart, uint64_t attrs, const char *name, struct cloche_err *err)
{
	_cleanup_fd_ int again = apart ? fs_open_again(fd) : -1;

	if (apart && again < 0)
		return again == -ENOENT || again == -ESTALE
			       ? err_set(err, E_DENIED,
					 "%s was %s while the sandbox was being made", name,
					 again == -ENOENT ? "removed" : "moved again and again")
			       : err_sys(err, -again, "find %s", name);
	return mount_clone(apart ? again : fd, "", attrs, err);
}

int mount_guard(int mount, const char *path, const struct room_mount *m, int over, uint64_t attrs,
	struct cloche_err *err)
{
	_cleanup_fd_ int at = fs_open_beneath(mount, path, O_PATH), tree = -1;
	struct stat st;
	int r;

	if (at < 0 || fstat(at, &st) < 0 || st.st_dev != m->device || st.st_ino != m->inode) {
		r = err_set(err, E_DENIED,
			"%s was replaced or moved while the sandbox was being made", m->source);
		err_hint(err, "start it again; if that happens again and again, look which "
			      "sandbox or program is doing that");
		return r;
	}
	tree = mount_clone(over < 0 ? at : over, "", attrs | (m->ro ? MOUNT_ATTR_RDONLY : 0), err);
	return tree < 0 ? tree : mount_attach(tree, at, "", m->target, err);
}

/* Set attributes on a whole detached tree. Return 0 or -errno. */
static int mount_set(int tree, uint64_t attrs)
{
	struct mount_attr a = {.attr_set = attrs};

	return sys_mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &a) < 0 ? -errno : 0;
}

static int idmap(int tree, int userns_fd, unsigned flags)
{
	struct mount_attr a = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (unsigned)userns_fd};

	return sys_mount_setattr(tree, "", AT_EMPTY_PATH | flags, &a) < 0 ? -errno : 0;
}

int mount_idmap(int tree, int userns_fd)
{
	return idmap(tree, userns_fd, AT_RECURSIVE);
}

int mount_idmap_top(int tree, int userns_fd)
{
	return idmap(tree, userns_fd, 0);
}

int mount_clone(int dirfd, const char *path, uint64_t attrs, struct cloche_err *err)
{
	int tree = mount_clone_if_there(dirfd, path, attrs, err);

	return tree == -ENOENT ? err_sys(err, ENOENT, "find %s", path) : tree;
}

int mount_clone_if_there(int dirfd, const char *path, uint64_t attrs, struct cloche_err *err)
{
	unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE;
	_cleanup_fd_ int tree = -1;
	int r;

	tree = sys_open_tree(dirfd, path, flags | (*path ? 0 : AT_EMPTY_PATH));
	if (tree < 0)
		return errno == ENOENT ? -ENOENT : err_sys(err, errno, "copy the mount %s", path);
	r = attrs ? mount_set(tree, attrs) : 0;
	if (r < 0)
		return err_sys(err, -r, "set the attributes of the mount %s", path);
	return TAKE_FD(tree);
}

int mount_attach(int tree, int dirfd, const char *path, const char *name, struct cloche_err *err)
{
	unsigned flags = *path ? 0 : MOVE_MOUNT_T_EMPTY_PATH;

	if (sys_move_mount(tree, dirfd, path, flags) < 0)
		return err_sys(err, errno, "mount %s", name);
	return 0;
}

int mount_make_private(struct cloche_err *err)
{
	struct mount_attr a = {.propagation = MS_PRIVATE};

	if (sys_mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &a) < 0) {
		int r = err_sys(err, errno, "make the mounts private");

		err_hint(err, "Linux 5.12 or newer is needed");
		return r;
	}
	return 0;
}

/* Unmount everything on top of the root. The only name that leads there is "/..", which does not
 * leave the root but crosses the mounts on it, so it is examined through that (INV-HOST-HIDDEN).
 * There is more than one mount if the new root lay on another one on top of the old root. */
static int uncover_root(int dirfd, struct cloche_err *err)
{
	enum { MOUNTS_MAX = 8 };
	struct stat root, top;

	for (int i = 0; i < MOUNTS_MAX; i++) {
		if (fstat(dirfd, &root) < 0 || stat("/..", &top) < 0)
			return err_sys(err, errno, "look at the room's root");
		/* The root is a file system of its own, which is mounted nowhere else. */
		if (root.st_dev == top.st_dev && root.st_ino == top.st_ino)
			return 0;
		if (umount2("/..", MNT_DETACH) < 0)
			return err_sys(err, errno, "leave the host's root");
	}
	return err_set(err, E_INTERNAL, "the host's root is still there");
}

/* With "." twice, the old root ends up on top of the new one and is unmounted there; no directory
 * has to be made for it. See pivot_root(2), NOTES. */
int mount_pivot(int dirfd, struct cloche_err *err)
{
	int r;

	if (fchdir(dirfd) < 0)
		return err_sys(err, errno, "enter the room's root");
	if (sys_pivot_root(".", ".") < 0) {
		int e = errno;

		r = err_sys(err, e, "change to the room's root");
		if (e == EINVAL)
			err_hint(err, "the root of this process is no mount point (a chroot?)");
		return r;
	}
	r = uncover_root(dirfd, err);
	if (r == 0 && chdir("/") < 0)
		r = err_sys(err, errno, "enter the room's root");
	return r;
}
