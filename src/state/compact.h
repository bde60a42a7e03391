/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Leaves out of a log what later operations have made void, so that replaying it gives the same. */

#include "state/oplog.h"

struct compaction {
	uint64_t before, after;             /* operations */
	uint64_t bytes_before, bytes_after; /* of the log */
};

/* A whole pass over a log that is open for writing. Others append meanwhile: what they add is taken
 * over as it is, under the log's lock at last. A crash at any instant leaves the old log or the new
 * one. One compacts at a time: -E_BUSY if another does and wait is false. Paths count by how
 * they are written: a link that the log does not know of has names that are not seen to be one. */
_warn_unused_ int oplog_compact(
	struct oplog *l, bool wait, struct compaction *ret, struct cloche_err *err);
