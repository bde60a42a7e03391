/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: what lies in a closed directory is found by a path through it, so it stays
 * open until the whole walk has ended. A supervisor that is killed before that leaves it open to
 * its owner, and to nobody else. */
#include "workspace/closed.h"
#include "base/fd.h"
#include "fs/fs.h"
#include "workspace/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int closed_keep(struct closed *c, const char *path, mode_t mode)
{
	struct closed_dir *more;

	if (c->n >= CLOSED_MAX)
		return -EACCES;
	more = reallocarray(c->dirs, c->n + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	c->dirs = more;
	more[c->n] = (struct closed_dir){.path = strdup(path), .mode = mode};
	if (!more[c->n].path)
		return -ENOMEM;
	c->n++;
	return 0;
}

int closed_open(struct closed *c, int root, const char *path, int fd, struct stat *ret)
{
	_cleanup_fd_ int at = -1;
	int r;

	if (fd < 0 && fd != -EACCES)
		return fd;
	if (fd >= 0 && fstat(fd, ret) == 0 &&
		(ret->st_mode & S_IXUSR || ret->st_uid != geteuid() || geteuid() == 0))
		return fd;
	fd_close(fd);
	at = fs_open_beneath(root, path, O_PATH | O_DIRECTORY);
	if (at < 0)
		return at;
	if (fstat(at, ret) < 0)
		return -errno;
	if (ret->st_uid != geteuid())
		return -EACCES;
	r = closed_keep(c, path, ret->st_mode & 07777);
	if (r == 0)
		r = fd_chmod(at, (ret->st_mode & 07777) | S_IRWXU);
	return r < 0 ? r : fs_open_beneath(at, "", O_RDONLY | O_DIRECTORY);
}

void closed_restore(struct closed *c, int root)
{
	while (c->n > 0) {
		const struct closed_dir *d = &c->dirs[--c->n];
		_cleanup_fd_ int at = fs_open_beneath(root, d->path, O_PATH | O_DIRECTORY);

		if (at >= 0)
			(void)!fd_chmod(at, d->mode);
		free(d->path);
	}
	free(c->dirs);
	*c = (struct closed){0};
}
