/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation
 *
 * A room's tree may contain links that an attacker put there (in an unpacked image, in a
 * workspace). openat2() with RESOLVE_IN_ROOT follows them as if the room's root were "/", so none
 * leads to the host (INV-INSIDE-PATHS). Missing entries are made one component at a time, each
 * below a directory that was resolved in this way and lies on a file system of the room's own
 * (INV-HOST-UNCHANGED). */
#include "room/target.h"
#include "base/fd.h"
#include "jail/sys.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static int resolve(int root, const char *path)
{
	int fd = sys_openat2(
		root, path, O_PATH | O_CLOEXEC, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);

	return fd < 0 ? -errno : fd;
}

int target_add_scratch(struct target_root *root, int fd)
{
	unsigned i = root->scratch_n;
	struct stat st;

	if (i == ARRAY_SIZE(root->scratch))
		return -ENOSPC;
	if (fstat(fd, &st) < 0 || sys_mount_id(fd, &root->scratch_mounts[i]) < 0)
		return -errno;
	root->scratch[i] = st.st_dev;
	root->scratch_n++;
	return 0;
}

static bool is_scratch(const struct target_root *root, int dir, const struct stat *st)
{
	uint64_t mount = 0;
	unsigned i;

	if (root->scratch_mounts[0] && sys_mount_id(dir, &mount) < 0)
		return false;
	for (i = 0; i < root->scratch_n; i++)
		if (root->scratch[i] == st->st_dev && root->scratch_mounts[i] == mount)
			return true;
	return false;
}

bool target_is_scratch(const struct target_root *root, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && is_scratch(root, fd, &st);
}

/* Make the entry `name` in the directory `parent` and open it. */
static int make_entry(const struct target_root *root, int parent, const char *name, bool dir,
	const char *path, struct cloche_err *err)
{
	struct stat st;
	int fd;

	if (fstat(parent, &st) < 0)
		return err_sys(err, errno, "look at the directory of %s", path);
	if (!is_scratch(root, parent, &st)) {
		int r = err_set(err, E_DENIED,
			"%s does not exist in what is mounted above it, and nothing is made there",
			path);

		err_hint(err, "make it on the host first, or mount it somewhere else");
		return r;
	}
	if (dir ? mkdirat(parent, name, 0755) < 0 : 0)
		return err_sys(err, errno, "make the directory %s in the room", path);
	fd = openat(parent, name,
		dir ? O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
		    : O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC,
		0644);
	if (fd < 0)
		return err_sys(err, errno, "make %s in the room", path);
	return fd;
}

int target_find(const struct target_root *root, const char *path, struct cloche_err *err)
{
	int fd = resolve(root->fd, path);

	return fd >= 0 || fd == -ENOENT ? fd : err_sys(err, -fd, "find %s in the room", path);
}

int target_open(const struct target_root *root, const char *path, bool dir, struct cloche_err *err)
{
	_cleanup_fd_ int parent = -1;
	char prefix[4096], name[256];
	size_t len = strlen(path), at = 0;
	int fd = target_find(root, path, err);

	if (fd != -ENOENT)
		return fd;
	if (len >= sizeof(prefix))
		return err_sys(err, ENAMETOOLONG, "find %s in the room", path);
	parent = resolve(root->fd, "/");
	while (parent >= 0) {
		size_t start = at + strspn(path + at, "/");
		size_t n = strcspn(path + start, "/");
		bool last = path[start + n + strspn(path + start + n, "/")] == '\0';

		if (n == 0 || n >= sizeof(name))
			return err_sys(err, ENAMETOOLONG, "find %s in the room", path);
		memcpy(name, path + start, n);
		name[n] = '\0';
		at = start + n;
		memcpy(prefix, path, at);
		prefix[at] = '\0';
		fd = resolve(root->fd, prefix);
		if (fd == -ENOENT)
			fd = make_entry(root, parent, name, dir || !last, prefix, err);
		else if (fd < 0)
			fd = err_sys(err, -fd, "find %s in the room", prefix);
		if (fd < 0 || last)
			return fd;
		parent = fd_close(parent);
		parent = fd;
	}
	return err_sys(err, -parent, "find the room's root");
}
