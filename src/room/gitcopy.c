/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: git writes a configuration anew and renames it, which nobody can do over a
 * mount. But it resolves a link first. So the guard gets a link mounted over it, which leads to a
 * directory of the room's own with a copy. Commands change the copy; the host's file stays as it is
 * beneath both. What of the copy is taken over in the end, workspace/carry.c says. */
#include "base/fd.h"
#include "jail/sys.h"
#include "room/mount.h"
#include "room/parts.h"
#include "room/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* Make the copy, which belongs to the owner of the file. Return 0 or -errno. */
static int gitcopy_write(int dir, const char *text, const struct stat *st)
{
	_cleanup_fd_ int fd = openat(dir, "config", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));

	if (r == 0 && (fchmod(fd, (st->st_mode & 0666) | 0600) < 0 ||
			      fchown(fd, st->st_uid, st->st_gid) < 0 ||
			      fchownat(dir, "", st->st_uid, st->st_gid, AT_EMPTY_PATH) < 0))
		r = -errno;
	return r;
}

/* Make a detached mount of a link. Return it, or -errno. */
static int gitcopy_link(int copies, size_t number)
{
	char to[64], name[32];
	int tree;

	snprintf(to, sizeof(to), ROOM_GIT_CONFIG "/%zu/config", number);
	snprintf(name, sizeof(name), "%zu.link", number);
	if (symlinkat(to, copies, name) < 0)
		return -errno;
	tree = sys_open_tree(
		copies, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	return tree < 0 ? -errno : tree;
}

/* A directory of the room's own, or -1. */
static int gitcopy_open(const struct target_root *root, const char *path)
{
	_cleanup_fd_ int fd = target_open(root, path, true, NULL);

	return fd >= 0 && target_is_scratch(root, fd) ? TAKE_FD(fd) : -1;
}

int gitcopy_cover(const struct target_root *root, const struct room_mount *m, size_t number,
	int *copies, struct cloche_err *err)
{
	_cleanup_fd_ int at = target_find(root, m->target, NULL), all = -1, dir = -1, tree = -1;
	char path[64];
	struct stat st;
	int r;

	/* Somebody else who writes there may have moved it, with the guard on it. */
	if (at < 0 || fstat(at, &st) < 0 || st.st_dev != m->device || st.st_ino != m->inode)
		return 0;
	snprintf(path, sizeof(path), ROOM_GIT_CONFIG "/%zu", number);
	all = gitcopy_open(root, ROOM_GIT_CONFIG);
	dir = gitcopy_open(root, path);
	if (all < 0 || dir < 0 || gitcopy_write(dir, m->text, &st) < 0)
		return 0;
	tree = gitcopy_link(all, number);
	if (tree < 0)
		return 0;
	r = m->own_hooks ? githooks_view(root, number, m->own_hooks, err) : 0;
	if (r == 0)
		r = mount_attach(tree, at, "", m->target, err);
	if (r == 0 && *copies < 0)
		*copies = TAKE_FD(all);
	return r;
}
