/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The handle of an operation log. */

#include "api/record/state.h"
#include "base/strset.h"
#include "record/blobs.h"
#include "record/cassette.h"
#include "record/logs.h"

struct cloche_oplog {
	int fd;
	int blobs[2];                /* directories that may have its contents; -1: none */
	char id[OPLOG_NAME_MAX + 1]; /* of the sandbox, or of a snapshot of it; "": a file */
	int cassette_fd;             /* -1: there is none */
	struct cassette cassette;    /* loaded when requests are first asked for */
	bool is_loaded;
	/* Contents whose digest was right or wrong, as the file was then: each is read once,
	 * however often it is named. */
	struct strset right, wrong;
	uint64_t torn; /* bytes that the last reading ignored at the end of a file */
};

/* Read each operation of the log. A torn last line of a sandbox's log is one that a writer has not
 * finished; that of a file is counted in log->torn. */
_warn_unused_ int oplog_read_all(
	cloche_oplog *log, oplog_fn fn, void *user, struct cloche_err *err);

/* Open contents that the log names, and verify them. Return a descriptor or an error. */
_warn_unused_ int oplog_open_content(cloche_oplog *log, struct str ref, struct cloche_err *err);

/* Copy the cassette into this directory. Return 0 if there is none. */
_warn_unused_ int oplog_export_cassette(const cloche_oplog *log, int logs, struct cloche_err *err);
DEFINE_CLEANUP(cloche_oplog, cloche_oplog_free)
