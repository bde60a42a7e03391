/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What is behind the handle of an operation log. */

#include "api/state.h"
#include "state/blobs.h"

struct cloche_oplog {
	int fd;
	int blobs[2];                 /* where its contents may be; -1: nowhere */
	char id[RUNDIR_ID_BYTES + 1]; /* of the sandbox; "": a file */
};

/* Opens contents that the log names, and checks them. */
_warn_unused_ int oplog_open_content(
	const cloche_oplog *log, struct str ref, struct cloche_err *err);

static inline void cloche_oplog_freep(cloche_oplog **log)
{
	cloche_oplog_free(*log);
}
