/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Directories that a room, which is their owner inside, closed to their owner. */

#include <stddef.h>
#include <sys/stat.h>

struct closed_dir {
	char *path; /* from the root of the walk, owned */
	mode_t mode;
};

struct closed {
	struct closed_dir *dirs;
	size_t n;
};

enum { CLOSED_MAX = 4096 };

/* Make sure that a directory can be read and searched: path, from root, of which fd is the
 * descriptor for reading (taken), or -EACCES. If it belongs to us, it is opened to us, and c keeps
 * its mode; at most CLOSED_MAX are. *ret is its state before that. Return a descriptor, or -errno
 * (any other that fd was, too). */
int closed_open(struct closed *c, int root, const char *path, int fd, struct stat *ret);

/* Put the modes back, those further down first, and free c. */
void closed_restore(struct closed *c, int root);
