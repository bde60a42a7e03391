/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A bounded walk through a directory that a room may have filled. It is breadth first, so that
 * entries near the top are met whatever lies below. Each directory is opened by its path from the
 * root, beneath the root and through no link; nothing else is opened. */

#include "base/buf.h"
#include "workspace/obeyed.h"

/* For the paths of directories that were met and not opened yet. A path may be as long as PATH_MAX
 * and costs the room nothing, but is held outside of the room's limit. */
enum { WALK_MAX_PATHS = 32 * 1024 * 1024 };

struct walk_item {
	char *path; /* from the root, "" is the root itself; owned by the walk */
	unsigned depth;
	enum obeyed_place place;
	unsigned flags; /* the caller's */
	size_t unit;    /* the caller's */
};

struct walk {
	int root; /* borrowed */
	struct walk_item *items;
	size_t n, cap, next;
	size_t max_dirs, max_entries, entries;
	size_t paths; /* bytes */
	unsigned max_depth;
	bool ample;  /* the open directory may have ten times as many entries */
	bool cut;    /* a bound was reached */
	char *dents; /* what was read of the open directory */
	size_t at, len;
};

struct walk_entry {
	const char *name; /* valid until the next one is read */
	unsigned char type;
};

/* root is borrowed. 0 or -ENOMEM. */
_warn_unused_ int walk_init(struct walk *w, int root, size_t max_dirs, size_t max_entries,
	unsigned max_depth, const struct walk_item *first);
void walk_done(struct walk *w);

/* Add the directory `name` in `in`, with all else as in item. If it would pass a bound, it is left
 * out and w->cut is set. Return 0 or -ENOMEM. */
_warn_unused_ int walk_push(
	struct walk *w, const struct walk_item *in, const char *name, const struct walk_item *item);

/* Open the next directory. *ret has to be given to walk_leave; *ret_fd is its descriptor, which
 * the caller closes, or -errno. False at the end. */
bool walk_next(struct walk *w, struct walk_item *ret, int *ret_fd);
void walk_leave(struct walk_item *item);

/* Read the next entry of the open directory, without "." and "..". Entries count towards the
 * bound; false at the end. */
bool walk_read(struct walk *w, int fd, struct walk_entry *ret);

/* in/name, or -ENAMETOOLONG. */
int walk_join(char *ret, size_t size, const char *in, const char *name);
