/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A walk through a tree of files that somebody hostile may have made, and may change meanwhile.
 *
 * Depth: any. At most FSWALK_OPEN directories are open; those above them are opened again on the
 * way back.
 * Races: a directory is opened by its name in an open directory, through no link. The way back is
 * "..", but only to the directory (device, inode) that we came from: if it leads elsewhere, a
 * directory was moved, and the walk ends with -ESTALE. So nothing that others rename leads the walk
 * out of its tree. What is made, renamed or removed in a directory while it is read may be met or
 * not.
 * Closed directories: opened for their owner if that is wanted, and given their modes back if that
 * is wanted; else told to the caller.
 * Mounts: entered, unless the walk stays on the file system of its top. */

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

enum {
	FSWALK_OPEN = 16,
	FSWALK_INTO = 0x7fff, /* an answer of entry() alone */
};

struct fswalk_entry {
	int dir;            /* the directory that it is in */
	const char *name;   /* there */
	const char *path;   /* from the top */
	unsigned char type; /* DT_*, never DT_UNKNOWN */
};

/* Each function returns 0 to go on; any other value ends the walk, which returns it. The entry is
 * valid during the call. */
struct fswalk_how {
	mode_t need;  /* a directory without these bits gets them if it is ours (0500, 0700); 0 */
	bool restore; /* and loses them when it is left */
	bool stay;    /* other file systems are not entered, but told as missed (EXDEV) */
	bool sorted;  /* meet the names of a directory in the order of their bytes. All names in the
		       * directories on the way from the top are in memory */
	/* If this is not NULL and true, a directory that has to be opened again is read from its
	 * beginning: all that was met there is gone. */
	const bool *consumed;
	void *user;

	/* Meet an entry. For a directory, FSWALK_INTO is to enter it. */
	int (*entry)(void *user, const struct fswalk_entry *e);
	/* Optional: a directory was opened (fd, borrowed) and will be read. */
	int (*entered)(void *user, const struct fswalk_entry *e, int fd, const struct stat *st);
	/* Optional: all of a directory was met, and it is closed. Not called for the top. */
	int (*left)(void *user, const struct fswalk_entry *e);
	/* A directory cannot be entered, for errnum. If this is NULL, one that is closed to us, has
	 * gone meanwhile, or is on another file system is left out, and anything else ends the
	 * walk. */
	int (*missed)(void *user, const struct fswalk_entry *e, int errnum);
};

/* Walk through the directory `name` in dir; "": dir itself (O_PATH is enough). Return 0, what a
 * function returned, or -errno. */
int fswalk(int dir, const char *name, const struct fswalk_how *how);
