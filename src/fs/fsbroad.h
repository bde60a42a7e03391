/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The walk through a hostile tree breadth first, for a caller whose bounds must not let anybody
 * hide what lies near the top. It answers as fs/fswalk.h does, with one difference: a directory
 * waits as a path, and is opened by that, beneath the top and through no link.
 *
 * Depth: up to the caller's bound and PATH_MAX. What lies deeper is left out, and so is what passes
 *     another bound; then `cut` says so.
 * Races: a directory that was moved before it is opened is -ENOENT, or met where it is then.
 * Closed directories: opened for their owner if that is wanted, and given their modes back at the
 *     end; else -EACCES. Whoever is killed before that leaves them open to their owner, and to
 *     nobody else.
 * Mounts: entered. */

#include "base/macro.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

enum {
	/* For the paths of directories that were met and not opened yet. A path may be as long as
	 * PATH_MAX and costs a room nothing, but is held outside of the room's limit. */
	FSBROAD_MAX_PATHS = 32 * 1024 * 1024,
	FSBROAD_MAX_CLOSED = 4096, /* that are opened for their owner */
};

struct fsbroad_item {
	char *path; /* from the top, "" is the top itself; owned by the walk */
	unsigned depth;
	unsigned place; /* the caller's; if it is not ordinary, the bounds are higher */
	unsigned flags; /* the caller's */
	size_t unit;    /* the caller's */
};

struct fsbroad_bounds {
	size_t dirs, entries; /* twice and ten times as many for the top and for special places */
	unsigned depth;
	unsigned ordinary; /* the place that most directories are */
	bool opens;        /* open directories that are closed to us if they are ours */
};

struct fsbroad {
	struct fsbroad_bounds max;
	int top; /* borrowed */
	struct fsbroad_item *items;
	size_t n, cap, next, entries;
	size_t paths; /* bytes */
	bool ample;   /* the open directory may have ten times as many entries */
	bool cut;     /* a bound was reached */
	char *dents;  /* what was read of the open directory */
	size_t at, len;
	struct fsbroad_closed {
		char *path;
		mode_t mode;
	} * closed; /* those that were opened */
	size_t closed_n;
};

struct fsbroad_entry {
	const char *name;   /* valid until the next one is read */
	unsigned char type; /* DT_*; DT_UNKNOWN if it has gone */
};

/* top is borrowed until fsbroad_done(). 0 or -ENOMEM. */
_warn_unused_ int fsbroad_init(struct fsbroad *w, int top, const struct fsbroad_bounds *max,
	const struct fsbroad_item *first);
/* Give modes back, those further down first, and free all. */
void fsbroad_done(struct fsbroad *w);

/* Add the directory `name`, which may be a path, in `in`, with all else as in item. If it would
 * pass a bound, it is left out and w->cut is set. Return 0 or -ENOMEM. */
_warn_unused_ int fsbroad_push(struct fsbroad *w, const struct fsbroad_item *in, const char *name,
	const struct fsbroad_item *item);

/* Open the next directory. *ret has to be given to fsbroad_leave(); *ret_fd is its descriptor,
 * which the caller closes, or -errno; *ret_st is its state before it was opened for its owner.
 * False at the end. */
bool fsbroad_next(struct fsbroad *w, struct fsbroad_item *ret, int *ret_fd, struct stat *ret_st);
void fsbroad_leave(struct fsbroad_item *item);

/* Read the next entry of the open directory, without "." and "..". After lseek(fd, 0, SEEK_SET) at
 * its end it is read again. Entries count towards the bound; false at the end. */
bool fsbroad_read(struct fsbroad *w, int fd, struct fsbroad_entry *ret);
