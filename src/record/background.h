/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Automatic compaction. */

#include "record/oplog.h"

/* A log of at least this size is compacted when it is twice as large as the last compaction left
 * it. If the last attempt failed, it must also have grown by this much since then. */
#define OPLOG_COMPACT_FROM ((uint64_t)64 << 20)

/* Take the compaction lock of a log, which is on a file beside it. It is held during the whole
 * compaction. -E_BUSY if it is taken and wait is false. Return a descriptor; closing it
 * unlocks. */
_warn_unused_ int oplog_lock_compaction(const struct oplog *l, bool wait, struct cloche_err *err);

/* Note in that file how large the log was at an attempt to compact it, and what the attempt left,
 * to find out when the next compaction is due. Best effort. */
void oplog_note_attempt(int lock, uint64_t bytes);
void oplog_note_left(int lock, uint64_t bytes);

/* Start a program that compacts the log, if that is due by l->compact_from. Call it after
 * appending, without the log's lock. The program is no child of the caller and runs on its own. If
 * it cannot be started, the log just stays long. */
void oplog_compact_when_due(struct oplog *l);
