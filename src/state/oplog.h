/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The operation log of one sandbox: a file of lines (state/op.h) that only grows. Whoever appends
 * holds a lock (flock) on it; readers need none. docs/design/state.md has the argument why a crash
 * at any instant leaves a log that loads. */

#include "state/op.h"

#define OPLOG_SUFFIX ".jsonl"
#define OPLOG_LOCK_SUFFIX ".lock" /* behind it: the lock of compaction (state/background.h) */

enum oplog_sync {
	OPLOG_SYNC_INTERVAL, /* at most a second after it was appended, and when the log is closed
			      */
	OPLOG_SYNC_ALWAYS,   /* before appending returns */
	OPLOG_SYNC_NEVER,    /* when the kernel likes */
};

struct oplog {
	int dir; /* the directory of logs, borrowed */
	char *file;
	int fd; /* -1: there is no file yet */
	bool writable, locked;
	bool anew;       /* it was replaced, and oplog_read() has not said so yet */
	uint64_t size;   /* bytes up to which entries were read or written: a line's end */
	uint64_t number; /* of the last of them */
	enum oplog_sync sync;
	uint64_t synced_usec; /* clock_mono_usec() of the last sync */
	bool dirty;
	bool tables_only;      /* may be set before anything is read: entries about nothing else are
				* passed over, unread */
	uint64_t compact_from; /* bytes from which on it is compacted by itself; 0: never */
	uint64_t compact_at;   /* not before it has so many; 0: not known */
};
#define OPLOG_INIT ((struct oplog){.dir = -1, .fd = -1})

/* Told of each entry in order; offset is where its line begins. 0; or another answer, to end, which
 * reading then returns. */
typedef int (*oplog_fn)(
	const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err);

/* name: without the suffix. dir is borrowed until oplog_close(). A log that is not there is empty;
 * the first oplog_append() makes it. */
_warn_unused_ int oplog_open(
	struct oplog *l, int dir, const char *name, bool writable, struct cloche_err *err);
/* By OPLOG_SYNC_INTERVAL: syncs what was not synced yet. */
_warn_unused_ int oplog_sync(struct oplog *l, struct cloche_err *err);
/* Syncs, if that is due, and closes. */
int oplog_close(struct oplog *l, struct cloche_err *err);

/* Hands on every whole line from l->size on. *ret_anew (may be NULL): the log was replaced by its
 * compacted form, and the entries begin from its first one. A torn last line is none yet.
 * E_CORRUPT with the number of the line if one is no operation. */
_warn_unused_ int oplog_read(
	struct oplog *l, oplog_fn fn, void *user, bool *ret_anew, struct cloche_err *err);

/* Waits for the lock and takes it; makes the file if there is none; a torn last line, which
 * nobody was told of as done, is cut off. Read (oplog_read) what others appended before anything is
 * decided. */
_warn_unused_ int oplog_lock(struct oplog *l, struct cloche_err *err);
void oplog_unlock(struct oplog *l);

/* Before anything was read: goes to the last line that begins so, from which reading then goes on.
 * Nothing happens if there is none. */
_warn_unused_ int oplog_find(struct oplog *l, struct str begin, struct cloche_err *err);

/* Where the last whole line ends. Without the lock it may grow at any time. */
_warn_unused_ int oplog_end(const struct oplog *l, uint64_t *ret, struct cloche_err *err);

/* Under the lock, with everything read: gives op its number and, if it has none, its time, and
 * appends it with one write. On failure the log is as it was. */
_warn_unused_ int oplog_append(struct oplog *l, struct state_op *op, struct cloche_err *err);

/* Hands on each operation of a file of any of the forms that there are: lines, or the one JSON
 * array that the original saves. The file is a stranger's: what is read is bounded. */
_warn_unused_ int oplog_read_file(int fd, oplog_fn fn, void *user, struct cloche_err *err);

/* The same of a line that is already written, with its end; the number stays. */
_warn_unused_ int oplog_append_line(struct oplog *l, struct str line, struct cloche_err *err);

/* Under the lock: puts a file of the same directory into the place of the log. */
_warn_unused_ int oplog_replace(struct oplog *l, const char *by, struct cloche_err *err);

static inline void oplog_closep(struct oplog *l)
{
	(void)oplog_close(l, NULL);
}
