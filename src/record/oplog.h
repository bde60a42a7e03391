/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The operation log of one sandbox: a file of lines (record/op.h) that only grows. To append, a
 * writer holds a lock (flock) on it; readers need none. docs/design/state.md explains why a crash
 * at any instant leaves a log that loads. */

#include "ipc/recording.h"
#include "record/op.h"

#define OPLOG_SUFFIX ".jsonl"
#define OPLOG_LOCK_SUFFIX ".lock" /* after it: the lock of compaction (record/background.h) */

struct oplog {
	int dir; /* the directory of logs, borrowed */
	char *file;
	int fd; /* -1: there is no file yet */
	bool writable, locked;
	bool anew;       /* the log was replaced, and oplog_read() has not reported that yet */
	uint64_t size;   /* bytes up to which entries were read or written; the end of a line */
	uint64_t number; /* of the last of these entries */
	enum oplog_sync sync;
	uint64_t synced_usec; /* clock_mono_usec() of the last sync */
	bool dirty;
	bool tables_only;      /* may be set before reading: known entries about anything else are
				* skipped unparsed */
	uint64_t compact_from; /* size from which on it is compacted automatically; 0: never */
	uint64_t compact_at;   /* not before it has this size; 0: not known */
};
#define OPLOG_INIT ((struct oplog){.dir = -1, .fd = -1})

/* Return when a record is synced; name: as configured, or the null view. */
enum oplog_sync oplog_sync_named(struct str name);

/* Called with each entry in order; offset is the start of its line. Any result but 0 ends the
 * reading, which then returns it. */
typedef int (*oplog_fn)(
	const struct state_op *op, uint64_t offset, void *user, struct cloche_err *err);

/* Open a log. name: without the suffix. dir is borrowed until oplog_close(). A missing log counts
 * as empty; the first oplog_lock() makes it. */
_warn_unused_ int oplog_open(
	struct oplog *l, int dir, const char *name, bool writable, struct cloche_err *err);
/* With OPLOG_SYNC_INTERVAL: sync what is not synced yet. */
_warn_unused_ int oplog_sync(struct oplog *l, struct cloche_err *err);
/* Sync, if that is due, and close. */
int oplog_close(struct oplog *l, struct cloche_err *err);

/* Read every whole line from l->size on. *ret_anew (may be NULL): the log was replaced by its
 * compacted form, and the entries start again from the first. A torn last line is ignored.
 * E_CORRUPT with the number of the entry if a line is not an operation. */
_warn_unused_ int oplog_read(
	struct oplog *l, oplog_fn fn, void *user, bool *ret_anew, struct cloche_err *err);

/* Wait for the lock and take it. Makes the file if there is none, and cuts off a torn last line,
 * which was never confirmed. Then call oplog_read() for the entries of others before any
 * decision. */
_warn_unused_ int oplog_lock(struct oplog *l, struct cloche_err *err);
void oplog_unlock(struct oplog *l);

/* Before anything was read: continue at the last line with this beginning. Does nothing if there is
 * none. */
_warn_unused_ int oplog_find(struct oplog *l, struct str begin, struct cloche_err *err);

/* Get the end of the last whole line. Without the lock the log may grow at any time. */
_warn_unused_ int oplog_end(const struct oplog *l, uint64_t *ret, struct cloche_err *err);

/* Give each of the n operations its number and, if it has none, its time, and append all of them
 * with one write. Under the lock, with everything read. On failure the log is unchanged, except if
 * only the sync has failed: others may have read the entries, so they stay. */
_warn_unused_ int oplog_append(
	struct oplog *l, struct state_op *ops, size_t n, struct cloche_err *err);

/* Read each operation of a file in any form: lines, or the one JSON array that the original saves.
 * The file is not trusted: what is read is limited. ret_torn NULL: the file is a log of ours, whose
 * torn last line is ignored. Otherwise it may come from elsewhere: a last line without its newline
 * counts if it is JSON, else *ret_torn gets the number of its bytes (0: there is none), and a file
 * that has something, but no entry, is E_CORRUPT. */
_warn_unused_ int oplog_read_file(
	int fd, uint64_t *ret_torn, oplog_fn fn, void *user, struct cloche_err *err);

/* Append lines that are already written, each with its newline. l->number is not changed. */
_warn_unused_ int oplog_append_lines(struct oplog *l, struct str lines, struct cloche_err *err);

/* Replace the log by a file of the same directory. Under the lock. */
_warn_unused_ int oplog_replace(struct oplog *l, const char *by, struct cloche_err *err);

static inline void oplog_closep(struct oplog *l)
{
	(void)oplog_close(l, NULL);
}
