/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a queue of paths. What lies in a closed directory is found by a path through
 * it, so one that was opened for its owner stays open until the whole walk has ended. */
#include "fs/fsbroad.h"
#include "base/fd.h"
#include "fs/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DENTS = 32 * 1024 };

/* An entry as the kernel writes it; there is no header for it that both C libraries have. */
struct dent {
	uint64_t inode;
	int64_t offset;
	uint16_t length;
	unsigned char type;
	char name[];
};

static int fsbroad_add(struct fsbroad *w, const struct fsbroad_item *item, const char *path)
{
	struct fsbroad_item *more = array_room(w->items, w->n, &w->cap, sizeof(*more));

	if (!more)
		return -ENOMEM;
	w->items = more;
	w->items[w->n] = *item;
	w->items[w->n].path = strdup(path);
	w->paths += strlen(path) + 1;
	return w->items[w->n++].path ? 0 : -ENOMEM;
}

int fsbroad_init(struct fsbroad *w, int top, const struct fsbroad_bounds *max,
	const struct fsbroad_item *first)
{
	*w = (struct fsbroad){.max = *max, .top = top, .dents = malloc(DENTS)};
	return w->dents ? fsbroad_add(w, first, "") : -ENOMEM;
}

void fsbroad_done(struct fsbroad *w)
{
	while (w->closed_n > 0) {
		const struct fsbroad_closed *d = &w->closed[--w->closed_n];
		_cleanup_fd_ int at = fs_open_beneath(w->top, d->path, O_PATH | O_DIRECTORY);

		if (at >= 0)
			(void)!fd_chmod(at, d->mode);
		free(d->path);
	}
	free(w->closed);
	for (size_t i = w->next; i < w->n; i++)
		free(w->items[i].path);
	free(w->items);
	free(w->dents);
}

int fsbroad_push(struct fsbroad *w, const struct fsbroad_item *in, const char *name,
	const struct fsbroad_item *item)
{
	/* A special place is entered however many other directories there are. */
	size_t times = item->place == w->max.ordinary ? 1 : 2;
	struct fsbroad_item below = *item;
	char path[PATH_MAX];

	below.depth = in->depth + 1;
	if (w->n >= times * w->max.dirs || w->paths >= times * FSBROAD_MAX_PATHS ||
		below.depth > w->max.depth || fs_join_in(path, sizeof(path), in->path, name) < 0) {
		w->cut = true;
		return 0;
	}
	return fsbroad_add(w, &below, path);
}

static int fsbroad_keep_closed(struct fsbroad *w, const char *path, mode_t mode)
{
	struct fsbroad_closed *more;

	if (w->closed_n >= FSBROAD_MAX_CLOSED)
		return -EACCES;
	more = reallocarray(w->closed, w->closed_n + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	w->closed = more;
	more[w->closed_n] = (struct fsbroad_closed){.path = strdup(path), .mode = mode};
	if (!more[w->closed_n].path)
		return -ENOMEM;
	w->closed_n++;
	return 0;
}

/* Open a directory to us, its owner. */
static int fsbroad_open_closed(struct fsbroad *w, const char *path, struct stat *ret)
{
	_cleanup_fd_ int at = fs_open_beneath(w->top, path, O_PATH | O_DIRECTORY);
	int r;

	if (at < 0)
		return at;
	if (fstat(at, ret) < 0)
		return -errno;
	if (ret->st_uid != geteuid())
		return -EACCES;
	r = fsbroad_keep_closed(w, path, ret->st_mode & 07777);
	if (r == 0)
		r = fd_chmod(at, (ret->st_mode & 07777) | S_IRWXU);
	return r < 0 ? r : fs_open_beneath(at, "", O_RDONLY | O_DIRECTORY);
}

static int fsbroad_open(struct fsbroad *w, const char *path, struct stat *ret)
{
	_cleanup_fd_ int fd = fs_open_beneath(w->top, path, O_RDONLY | O_DIRECTORY);

	if (fd >= 0 && fstat(fd, ret) < 0)
		return -errno;
	if (!w->max.opens || (fd < 0 && fd != -EACCES))
		return TAKE_FD(fd);
	/* One that can be read but not searched is closed, too. */
	if (fd >= 0 && (ret->st_mode & S_IXUSR || ret->st_uid != geteuid() || geteuid() == 0))
		return TAKE_FD(fd);
	return fsbroad_open_closed(w, path, ret);
}

bool fsbroad_next(struct fsbroad *w, struct fsbroad_item *ret, int *ret_fd, struct stat *ret_st)
{
	if (w->next == w->n)
		return false;
	*ret = w->items[w->next++];
	w->paths -= strlen(ret->path) + 1;
	w->at = w->len = 0;
	/* The first directory and special places may be larger, so that what matters most is
	 * met. */
	w->ample = ret->depth == 0 || ret->place != w->max.ordinary;
	*ret_fd = fsbroad_open(w, ret->path, ret_st);
	return true;
}

void fsbroad_leave(struct fsbroad_item *item)
{
	free(item->path);
	item->path = NULL;
}

static unsigned char fsbroad_type(int fd, const char *name)
{
	struct stat st;

	return fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? DT_UNKNOWN
							       : (unsigned char)IFTODT(st.st_mode);
}

bool fsbroad_read(struct fsbroad *w, int fd, struct fsbroad_entry *ret)
{
	for (;;) {
		const struct dent *d;

		if (w->at == w->len) {
			long n = syscall(SYS_getdents64, fd, w->dents, DENTS);

			w->at = 0;
			w->len = n > 0 ? (size_t)n : 0;
			if (n <= 0)
				return false;
		}
		d = (const struct dent *)(const void *)(w->dents + w->at);
		w->at += d->length;
		if (strcmp(d->name, ".") == 0 || strcmp(d->name, "..") == 0)
			continue;
		if (w->entries >= (w->ample ? 10 : 1) * w->max.entries) {
			w->cut = true;
			return false;
		}
		w->entries++;
		*ret = (struct fsbroad_entry){d->name, d->type};
		if (d->type == DT_UNKNOWN)
			ret->type = fsbroad_type(fd, d->name);
		return true;
	}
}
