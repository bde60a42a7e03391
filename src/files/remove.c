/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: one directory is open at a time. The first subdirectory found is entered.
 * When a directory is empty we go back by "..", which must be the directory that we came from,
 * remove the empty one there, and read the rest. Removed entries are not seen again, so reading
 * again costs little. */
#include "files/remove.h"
#include "base/buf.h"
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_PATH = 1 << 20 };

struct above {
	dev_t device;
	ino_t inode;
	size_t name; /* start of the name of the directory below, in path */
};

struct remover {
	int dir;
	struct buf path; /* names from the top, each ended by a NUL */
	struct above *above;
	size_t depth, cap;
	int (*beat)(void *user);
	void *user;
	struct files_error *e;
};

/* Report the current path, with slashes. */
static int fail(struct remover *r, int errnum, const char *name)
{
	char *p = buf_data(&r->path);
	size_t n = buf_len(&r->path);

	for (size_t i = 0; i < n; i++)
		if (p[i] == '\0')
			p[i] = '/';
	if (name && buf_add_str(&r->path, str_from(name)) == 0)
		n = buf_len(&r->path);
	return files_fail(r->e, errnum, buf_str(&r->path), NULL);
}

static int descend(struct remover *r, const char *name)
{
	int fd = openat(r->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int ret;

	if (fd < 0)
		return errno == ENOENT ? 0 : fail(r, errno, name);
	if (r->depth == r->cap) {
		size_t cap = r->cap ? 2 * r->cap : 16;
		struct above *above = reallocarray(r->above, cap, sizeof(*above));

		if (!above) {
			fd_close(fd);
			return fail(r, ENOMEM, name);
		}
		r->above = above;
		r->cap = cap;
	}
	ret = fstat(r->dir, &st) < 0 ? -errno : buf_add(&r->path, name, strlen(name) + 1);
	if (ret < 0) {
		fd_close(fd);
		return fail(r, ret == -E2BIG ? ENAMETOOLONG : -ret, name);
	}
	r->above[r->depth++] =
		(struct above){st.st_dev, st.st_ino, buf_len(&r->path) - strlen(name) - 1};
	fd_close(r->dir);
	r->dir = fd;
	return 0;
}

static int ascend(struct remover *r)
{
	const struct above *a = &r->above[r->depth - 1];
	int up = openat(r->dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (up < 0)
		return fail(r, errno, NULL);
	fd_close(r->dir);
	r->dir = up;
	if (fstat(up, &st) < 0)
		return fail(r, errno, NULL);
	if (st.st_dev != a->device || st.st_ino != a->inode)
		return fail(r, ESTALE, NULL);
	if (unlinkat(up, buf_data(&r->path) + a->name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return fail(r, errno, NULL);
	r->path.tail = r->path.head + a->name;
	r->depth--;
	return 0;
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Remove everything here that is not a directory. Return 1 if a directory was entered, 0 if this
 * one is empty, or -errno. */
static int sweep(struct remover *r)
{
	int own = openat(r->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret = 0;
	DIR *dir = own < 0 ? NULL : fdopendir(own);
	struct dirent *d;

	if (!dir) {
		ret = fail(r, errno, NULL);
		fd_close(own);
		return ret;
	}
	errno = 0;
	while (ret == 0 && (d = readdir(dir))) {
		if (is_dots(d->d_name))
			continue;
		ret = r->beat ? r->beat(r->user) : 0;
		if (ret < 0)
			break;
		if (unlinkat(r->dir, d->d_name, 0) < 0 && errno != ENOENT) {
			if (errno != EISDIR)
				ret = fail(r, errno, d->d_name);
			else
				ret = descend(r, d->d_name);
			ret = ret < 0 ? ret : 1;
		}
		errno = 0;
	}
	if (ret == 0 && errno != 0)
		ret = fail(r, errno, NULL);
	closedir(dir);
	return ret;
}

int remove_tree(
	int dir, const char *name, int (*beat)(void *user), void *user, struct files_error *e)
{
	struct remover r = {
		.path = BUF_INIT(MAX_PATH), .beat = beat, .user = user, .e = e, .dir = -1};
	int ret;

	if (unlinkat(dir, name, 0) == 0)
		return 0;
	if (errno != EISDIR)
		return -errno;
	r.dir = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r.dir < 0)
		return -errno;
	for (;;) {
		ret = sweep(&r);
		if (ret == 0 && r.depth == 0)
			break;
		if (ret == 0)
			ret = ascend(&r);
		if (ret < 0)
			break;
	}
	fd_close(r.dir);
	free(r.above);
	buf_done(&r.path);
	if (ret == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0)
		ret = -errno;
	return ret;
}
