/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The directory of all logs: their names, and how logs and contents are removed. */

#include "ipc/rundir.h"
#include "record/oplog.h"

/* The name of a log is the id of its sandbox; that of a snapshot is ID@NAME. */
enum { OPLOG_SNAPSHOT_MAX = 64, OPLOG_NAME_MAX = RUNDIR_ID_BYTES + 1 + OPLOG_SNAPSHOT_MAX };

/* Open the directory of all logs, or that of all contents, below the state directory, and make it
 * if it is missing. Return a descriptor or an error. */
_warn_unused_ int oplogs_open(struct cloche_err *err);
_warn_unused_ int oplogs_open_blobs(struct cloche_err *err);
/* Open both. Return 0 or an error; what was opened is the caller's in any case. */
_warn_unused_ int oplogs_open_both(int *ret_logs, int *ret_blobs, struct cloche_err *err);

bool oplog_is_snapshot_name(struct str name);
bool oplog_is_name(struct str name);

/* Call fn with the name of each log. Any result but 0 ends the listing; a negative one is
 * returned. */
typedef int (*oplogs_fn)(int logs, const char *name, void *user, struct cloche_err *err);
_warn_unused_ int oplogs_each(int logs, oplogs_fn fn, void *user, struct cloche_err *err);

/* Remove a log, the requests beside it, and what a killed compaction has left of it. Wait for a
 * compaction that is running. Return 0 if there is none. */
_warn_unused_ int oplog_remove(int logs, const char *name, struct cloche_err *err);

/* Open the cassette beside a log for reading. If dir is AT_FDCWD, name is the path of the log.
 * Return -1 if there is none. */
int oplog_open_cassette(int dir, const char *name);
/* Create the cassette of a sandbox, a new file, opened for appending. */
_warn_unused_ int oplog_create_cassette(const char *id, struct cloche_err *err);
/* Remove the cassette of a sandbox. Return 0 if there is none. */
_warn_unused_ int oplog_remove_cassette(int logs, const char *id, struct cloche_err *err);

/* Remove contents that no log names, and tell how many and how large. If a log cannot be read,
 * remove nothing, because it may name anything. */
_warn_unused_ int oplogs_collect(
	int logs, int blobs, uint64_t *ret_removed, uint64_t *ret_bytes, struct cloche_err *err);

/* Remove the log of a sandbox that could not be completed, if there is one, with its contents. */
void oplogs_forget(const char *id);
