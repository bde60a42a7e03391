/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Remove operations that later ones have made void from a log, so that a replay has the same
 * result. */

#include "record/oplog.h"

struct compaction {
	uint64_t before, after;             /* operations */
	uint64_t bytes_before, bytes_after; /* of the log */
};

/* Compact a log that is open for writing. Others may append meanwhile; their entries are copied as
 * they are, the last of them under the log's lock. A crash at any instant leaves the old log or the
 * new one. Only one compaction runs at a time: -E_BUSY if there is another and wait is false. Paths
 * are compared as text: if a link is not in the log, its two names are not known to be the same. */
_warn_unused_ int oplog_compact(
	struct oplog *l, bool wait, struct compaction *ret, struct cloche_err *err);
