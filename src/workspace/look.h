/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* After a room has ended: search what it could write to for files that the host would run or obey
 * (obeyed.def) and that the room made or changed, and for files that a room must never leave
 * (set-uid and set-gid files, devices). INV-NOTHING-PLANTED.
 *
 * A thing counts as the room's doing if its inode was changed after the room had begun (by its
 * ctime, which cannot be set), or if it came into its place with a directory that was moved there.
 * Changes by somebody who works in the same directory outside look the same, except to files that
 * were read-only inside. */

#include "base/buf.h"
#include "base/program.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

enum {
	LOOK_MAX_DIRS = 500 * 1000,
	LOOK_MAX_ENTRIES = 4 * 1000 * 1000,
	LOOK_MAX_DEPTH = 128,
	LOOK_MAX_TOLD = 100, /* things that are reported one by one */
};

struct look_id {
	dev_t device;
	ino_t inode;
	bool read_only; /* else it only had to stay in its place */
	bool linked; /* it, or a file in it, may have had another name, which leads around that */
};

struct look_mount {
	char *source, *target; /* on the host, in the room */
	dev_t device;
	ino_t inode;
	int fd; /* O_PATH; -1 if look_read() does not find the same one */
};

/* What is recorded of a room before it begins. Everything is owned. */
struct look {
	struct timespec since;
	/* Check every file for set-id bits, not only those in changed directories: the room could
	 * mount things, and no filter of system calls sees what that does. */
	bool every;
	struct look_mount *mounts;
	size_t mounts_n;
	struct look_id *kept; /* what was protected */
	size_t kept_n;
	size_t searched; /* entries, for files with other names */
	char **opened;   /* paths of the host that the person wanted open */
	char **copied;   /* configurations of git of which rooms get a copy: paths of the host */
	bool copies;     /* this room gets them */
	bool again;      /* an earlier look may have been killed halfway */
	int init;        /* process 1 of the room, 0 if it is not known */
	uint64_t start;  /* when it was started, as in /proc/PID/stat */
	char boot[PROGRAM_BOOT_ID_MAX]; /* in which boot */
};

void look_done(struct look *l);
static inline void look_donep(struct look *l)
{
	look_done(l);
}

/* The time that the kernel would give to an inode now. */
struct timespec look_now(void);
/* Record the time; to be called before the room is made. */
void look_begin(struct look *l);
/* Add a directory or file (fd, O_PATH, borrowed) that the room may write to. What is neither, or is
 * not open, is left out, since it cannot be mounted either. Return 0 or -ENOMEM. */
_warn_unused_ int look_add_mount(struct look *l, int fd, const char *source, const char *target);
/* Add a protected thing below one of the mounts: the file dir, or, with a path, what lies there
 * below that directory. A directory that was read-only is searched for files with other names.
 * Return 0 or -ENOMEM. */
_warn_unused_ int look_add_kept(struct look *l, int dir, const char *path, bool read_only);

/* Write it as text for a file of our own, or read it back. Mounts are opened again and must be the
 * same. Return 0, -ENOMEM or -EINVAL. */
_warn_unused_ int look_write(const struct look *l, struct buf *out);
_warn_unused_ int look_read(struct look *l, struct str text);

/* What was found: lines of JSON, {"path", "quoted", "what", "set_aside", "restore"}, the last two
 * null if nothing was renamed; quoted: the path as one word of a shell. "notice": true follows if
 * `what` says what happened, and there is nothing to be looked at. */
struct look_told {
	struct buf text;
	unsigned told, more; /* lines; and things beyond LOOK_MAX_TOLD */
};

/* Search everything, mend it and report. Return 0, or -ENOMEM: then the result is incomplete,
 * which is reported as well if there is memory for that. */
_warn_unused_ int look_through(const struct look *l, struct look_told *ret);
