/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Compaction that nobody asked for. */

#include "state/oplog.h"

/* From this size on a log is compacted when it is twice what the last compaction left, and has
 * grown by as much since the last attempt, if that one failed. */
#define OPLOG_COMPACT_FROM ((uint64_t)64 << 20)

/* Whoever compacts a log holds this lock, on a file beside it, from beginning to end: -E_BUSY if
 * another does so and wait is false. Returns a descriptor; closing it unlocks. */
_warn_unused_ int oplog_lock_compaction(const struct oplog *l, bool wait, struct cloche_err *err);

/* Note in that file how large the log was at an attempt to compact it, and what the attempt left,
 * for whoever asks whether it is due. Best effort. */
void oplog_note_attempt(int lock, uint64_t bytes);
void oplog_note_left(int lock, uint64_t bytes);

/* After something was appended, without the log's lock: starts a program that compacts it, if that
 * is due by l->compact_from. It is no child of the caller and goes on by itself. That it cannot be
 * started is no harm: the log stays long. */
void oplog_compact_when_due(struct oplog *l);
