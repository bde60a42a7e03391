/* SPDX-License-Identifier: Apache-2.0 */
#include "workspace/walk.h"
#include "base/fd.h"
#include "fs/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
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

int walk_join(char *ret, size_t size, const char *in, const char *name)
{
	int n = snprintf(ret, size, "%s%s%s", in, in[0] && name[0] ? "/" : "", name);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static int walk_add(struct walk *w, const struct walk_item *item, const char *path)
{
	struct walk_item *more = array_room(w->items, w->n, &w->cap, sizeof(*more));

	if (!more)
		return -ENOMEM;
	w->items = more;
	w->items[w->n] = *item;
	w->items[w->n].path = strdup(path);
	w->paths += strlen(path) + 1;
	return w->items[w->n++].path ? 0 : -ENOMEM;
}

int walk_init(struct walk *w, int root, size_t max_dirs, size_t max_entries, unsigned max_depth,
	const struct walk_item *first)
{
	*w = (struct walk){.root = root,
		.max_dirs = max_dirs,
		.max_entries = max_entries,
		.max_depth = max_depth,
		.dents = malloc(DENTS)};
	return w->dents ? walk_add(w, first, "") : -ENOMEM;
}

void walk_done(struct walk *w)
{
	for (size_t i = w->next; i < w->n; i++)
		free(w->items[i].path);
	free(w->items);
	free(w->dents);
}

int walk_push(
	struct walk *w, const struct walk_item *in, const char *name, const struct walk_item *item)
{
	/* A special place is entered however many other directories there are. */
	size_t times = item->place == OBEYED_ANY ? 1 : 2;
	struct walk_item below = *item;
	char path[PATH_MAX];

	below.depth = in->depth + 1;
	if (w->n >= times * w->max_dirs || w->paths >= times * WALK_MAX_PATHS ||
		below.depth > w->max_depth || walk_join(path, sizeof(path), in->path, name) < 0) {
		w->cut = true;
		return 0;
	}
	return walk_add(w, &below, path);
}

bool walk_next(struct walk *w, struct walk_item *ret, int *ret_fd)
{
	if (w->next == w->n)
		return false;
	*ret = w->items[w->next++];
	w->paths -= strlen(ret->path) + 1;
	w->at = w->len = 0;
	/* The first directory and special places may be larger, so that what matters most is
	 * met. */
	w->ample = ret->depth == 0 || ret->place != OBEYED_ANY;
	*ret_fd = fs_open_beneath(w->root, ret->path, O_RDONLY | O_DIRECTORY);
	return true;
}

void walk_leave(struct walk_item *item)
{
	free(item->path);
	item->path = NULL;
}

static unsigned char walk_type(int fd, const char *name)
{
	struct stat st;

	return fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? DT_UNKNOWN
							       : (unsigned char)IFTODT(st.st_mode);
}

bool walk_read(struct walk *w, int fd, struct walk_entry *ret)
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
		if (w->entries >= (w->ample ? 10 : 1) * w->max_entries) {
			w->cut = true;
			return false;
		}
		w->entries++;
		*ret = (struct walk_entry){d->name, d->type};
		if (d->type == DT_UNKNOWN)
			ret->type = walk_type(fd, d->name);
		return true;
	}
}
