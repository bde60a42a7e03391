/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The walk through a tree of files that somebody hostile may have made, and may change meanwhile.
 *
 * Depth: any, unless the caller has a bound (levels); what lies deeper is told as missed
 *     (ENAMETOOLONG). About FSWALK_OPEN + log2(depth) directories are open at once.
 * Races: each directory is opened by its own name in an open directory: through no link and never
 *     by "..", where the kernel can (openat2) with RESOLVE_BENEATH. So whatever others rename, the
 *     walk opens nothing that does not lie in its tree at that moment. One on the way back that is
 *     no longer what it was (device, inode) is told as missed (ESTALE), with all that was not met
 *     in it, and the walk goes on above it. What is made, renamed or removed in a directory while
 *     it is read may be met or not.
 * Closed directories: opened for their owner if that is wanted, and given their modes back if that
 *     is wanted; else told as missed (EACCES). One that may be read but not searched is entered:
 *     its names are met, and what is in it is told as missed.
 * Mounts: entered, unless the walk stays on the file system or the mount of its top; then told as
 *     missed (EXDEV).
 *
 * What follows for those who walk:
 *
 *                           too deep     moved meanwhile  closed to us     mounted in it
 *   removal (fs.h)          no bound     begins anew      opened           kept: -EBUSY
 *   set-id files            no bound     fails            opened, or left  entered
 *   a copy as tar           as a path    fails            fails            entered
 *   changes of a root       told at 200  told             told             entered
 *   the record              told at 200  at the next look told             told
 *   files with other names  counts as found: it cannot be known            entered
 *   planted (fsbroad.h)     told at 128  not met          opened           entered
 */

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
	size_t depth;       /* of directories between the top and it: 0 in the top */
	unsigned char type; /* DT_*; DT_UNKNOWN only if the caller looks itself */
};

enum fswalk_stay {
	FSWALK_ANYWHERE,
	FSWALK_ON_DEVICE, /* on the top's file system */
	FSWALK_ON_MOUNT,  /* on its mount; where openat2() is refused, everywhere */
};

/* Each function returns 0 to go on; any other value ends the walk, which returns it. The entry is
 * valid during the call. */
struct fswalk_how {
	mode_t need;  /* a directory without these bits gets them if it is ours (0500, 0700); 0 */
	bool restore; /* and loses them when it is left, or the walk ends; not if it was moved */
	enum fswalk_stay stay;
	size_t levels; /* the most directories below each other, with the top; 0: any number */
	size_t names;  /* the most names that are read in all; a directory that has more is told as
			* missed (E2BIG; the top: -E2BIG) when what was read of it was met; 0: any
			* number */
	bool sorted;   /* meet the names of a directory in the order of their bytes. All names in
			* the directories on the way from the top are in memory */
	bool untyped;  /* the caller looks at each entry itself */
	/* If this is not NULL and true, a directory that has to be opened again is read from its
	 * beginning: all that was met there is gone. */
	const bool *consumed;
	void *user;

	/* Optional, both: whether the caller knows the names in a directory at that depth (0: the
	 * top), so that it is not read; and the next one of these, borrowed until the next call, or
	 * NULL after the last one. */
	bool (*knows)(void *user, size_t depth, const struct stat *st);
	const char *(*next)(void *user, size_t depth);
	/* Meet an entry. For a directory, FSWALK_INTO is to enter it. */
	int (*entry)(void *user, const struct fswalk_entry *e);
	/* Optional: a directory was opened (fd, borrowed) and will be read. Not called for the top.
	 */
	int (*entered)(void *user, const struct fswalk_entry *e, int fd, const struct stat *st);
	/* Optional: all of a directory was met, and it is closed. Not called for the top. */
	int (*left)(void *user, const struct fswalk_entry *e);
	/* A directory cannot be entered, for errnum; or it was entered and not all of it was met:
	 * it cannot be read to its end, or was moved (ESTALE). Then left() is not called for it nor
	 * for those in it. If this is NULL, one that is closed to us, has gone meanwhile, or is on
	 * another file system is left out, and anything else ends the walk. */
	int (*missed)(void *user, const struct fswalk_entry *e, int errnum);
};

/* Walk through the directory `name` in dir; "": dir itself (O_PATH is enough). The last name of
 * `name` is not followed if it is a link. Return 0, what a function returned, or -errno: of the
 * top, for lack of memory or descriptors, or as above. */
int fswalk(int dir, const char *name, const struct fswalk_how *how);
