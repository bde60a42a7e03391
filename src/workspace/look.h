/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* When a room has ended: looks through what it could write in for what the host would run or obey
 * (obeyed.def) and the room made or changed, and for what no file of a room's may be (set-uid and
 * set-gid files, devices). INV-NOTHING-PLANTED.
 *
 * What counts as the room's doing: the inode was changed (its ctime, which nobody can set) when the
 * room had begun, or it came into its place with a directory that was moved there. Whoever works in
 * the same directory outside looks the same, but for what was read-only inside. */

#include "base/buf.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

enum {
	LOOK_MAX_DIRS = 500 * 1000,
	LOOK_MAX_ENTRIES = 4 * 1000 * 1000,
	LOOK_MAX_DEPTH = 128,
	LOOK_MAX_TOLD = 100, /* things that are told of one by one */
};

struct look_id {
	dev_t device;
	ino_t inode;
	bool read_only; /* else it only had to stay in its place */
};

struct look_mount {
	char *source, *target; /* on the host, in the room */
	dev_t device;
	ino_t inode;
	int fd; /* O_PATH; -1 if it was read from a file */
};

/* What has to be known of a room before it begins. Everything is owned. */
struct look {
	struct timespec since;
	/* Every file is looked at for set-id bits, not only those in directories that were changed:
	 * the room could mount things, and no filter of system calls sees what that does. */
	bool every;
	struct look_mount *mounts;
	size_t mounts_n;
	struct look_id *kept; /* what was protected */
	size_t kept_n;
	char **opened;  /* paths of the host that the person wanted open */
	bool again;     /* somebody may have looked before, and have been killed meanwhile */
	int init;       /* process 1 of the room, 0 if it is not known */
	uint64_t start; /* when that was started, as /proc/PID/stat has it */
};

void look_done(struct look *l);
static inline void look_donep(struct look *l)
{
	look_done(l);
}

/* Takes the time: before the room is made. */
void look_begin(struct look *l);
/* A directory or file that the room may write in. One that cannot be opened is left out: nor can
 * it be mounted. 0 or -ENOMEM. */
_warn_unused_ int look_add_mount(struct look *l, const char *source, const char *target);
/* Something below one of those that is protected. 0 or -ENOMEM. */
_warn_unused_ int look_add_kept(struct look *l, const char *path, bool read_only);
_warn_unused_ int look_add_opened(struct look *l, const char *path);

/* As text for a file of our own, and back; mounts are opened again and must be the same. 0, -ENOMEM
 * or -EINVAL. */
_warn_unused_ int look_write(const struct look *l, struct buf *out);
_warn_unused_ int look_read(struct look *l, struct str text);

/* What was found: lines of JSON, {"path", "quoted", "what", "set_aside", "restore"}, the last two
 * null if nothing was renamed; quoted: the path as one word of a shell. */
struct look_told {
	struct buf text;
	unsigned told, more; /* lines; and things beyond LOOK_MAX_TOLD */
};

/* Looks through everything, mends and tells. 0, or -ENOMEM: then it is not whole. */
_warn_unused_ int look_through(const struct look *l, struct look_told *ret);
