/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: each directory on the way down is open, so nothing that others rename leads
 * elsewhere. A tree may be deeper than descriptors permit. So a directory that lies deep is moved
 * to the top, and the top is read again. What cannot be moved (it is closed to its owner, or from a
 * lower layer of an overlay) is removed where it lies, while there are descriptors. */
#include "base/fd.h"
#include "base/fs.h"
#include "base/rand.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* Directories are moved from here on. Deeper than the trees of cloche-unpack (UNPACK_DEPTH_MAX),
 * which may not rename. */
enum { MOVED_FROM = 192 };
/* Whatever lies here is moved. For the stack. */
enum { DEEPEST = 1024 };

struct remover {
	const struct fs_removal *how;
	int top;    /* borrowed, the directory at the top */
	bool moved; /* something was moved there since it was read */
	unsigned depth;
};

/* Open a directory that is to be emptied, and let its owner do that if force is set. */
static int remove_open(int dirfd, const char *name, bool force)
{
	const int flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(dirfd, name, O_RDONLY | flags);
	struct stat st;

	if (fd < 0 && errno == EACCES && force) {
		_cleanup_fd_ int at = openat(dirfd, name, O_PATH | flags);

		if (at < 0 || fd_chmod(at, 0700) < 0)
			return -1;
		fd = openat(dirfd, name, O_RDONLY | flags);
	}
	if (fd >= 0 && force && fstat(fd, &st) == 0 && (st.st_mode & 0700) != 0700)
		(void)fchmod(fd, 0700);
	return fd;
}

static int remove_later(struct remover *r, int dirfd, const char *name)
{
	char later[40];

	/* Moving a directory takes the right to write to it, which removing an empty one does not.
	 */
	if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (r->how->force)
		fd_close(remove_open(dirfd, name, true));
	snprintf(later, sizeof(later), ".cloche-%016llx.tmp", (unsigned long long)rand_u64());
	if (renameat(dirfd, name, r->top, later) < 0)
		return -errno;
	r->moved = true;
	return 0;
}

static int remove_one(struct remover *r, int dirfd, const char *name);

/* Remove what is in dir, which is closed. */
static int remove_contents(struct remover *r, DIR *dir)
{
	const struct fs_removal *how = r->how;
	size_t before = how->where ? buf_len(how->where) : 0;
	struct dirent *e;
	int result = 0;

	while ((result == 0 || how->force) && (e = fs_list_next(dir))) {
		int one = how->beat ? how->beat(how->user) : 0;

		if (one == 0 && how->where)
			one = buf_printf(how->where, "%s%s", before ? "/" : "", e->d_name);
		if (one == 0)
			one = remove_one(r, dirfd(dir), e->d_name);
		if (one == 0 && how->where)
			how->where->tail = how->where->head + before;
		result = one < 0 ? one : result;
	}
	closedir(dir);
	return result;
}

static int remove_directory(struct remover *r, int dirfd, const char *name)
{
	int fd = remove_open(dirfd, name, r->how->force), result;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		result = errno == ENOENT ? 0 : -errno;
		fd_close(fd);
		return result;
	}
	if (r->depth == 0)
		r->top = fd;
	r->depth++;
	result = remove_contents(r, dir);
	r->depth--;
	if (result == 0 && unlinkat(dirfd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		result = -errno;
	return result;
}

static int remove_one(struct remover *r, int dirfd, const char *name)
{
	int e;

	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return -errno;
	if (r->depth >= MOVED_FROM && remove_later(r, dirfd, name) == 0)
		return 0;
	e = r->depth < DEEPEST ? remove_directory(r, dirfd, name) : -EMFILE;
	return e == -EMFILE && r->depth > 1 ? remove_later(r, dirfd, name) : e;
}

int fs_remove(int dirfd, const char *name, const struct fs_removal *how)
{
	struct remover r = {.how = how};
	int result;

	if (unlinkat(dirfd, name, 0) == 0)
		return 0;
	if (errno != EISDIR)
		return -errno;
	do {
		r.moved = false;
		if (how->where)
			buf_clear(how->where);
		result = remove_directory(&r, dirfd, name);
	} while (r.moved && (how->force || result == -ENOTEMPTY));
	return result;
}

int fs_remove_tree(int dirfd, const char *name)
{
	const struct fs_removal how = {.force = true};
	int r = fs_remove(dirfd, name, &how);

	return r == -ENOENT ? 0 : r;
}
