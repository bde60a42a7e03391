/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What is behind the handle of an operation log. */

#include "api/state.h"
#include "cassette/cassette.h"
#include "state/blobs.h"

/* A log is named by the id of its sandbox; a snapshot (fork.c) by ID@NAME. */
enum { OPLOG_SNAPSHOT_MAX = 64, OPLOG_NAME_MAX = RUNDIR_ID_BYTES + 1 + OPLOG_SNAPSHOT_MAX };

bool oplog_is_snapshot_name(struct str name);
bool oplog_is_name(struct str name);

struct cloche_oplog {
	int fd;
	int blobs[2];                /* where its contents may be; -1: nowhere */
	char id[OPLOG_NAME_MAX + 1]; /* of the sandbox, or of a snapshot of it; "": a file */
	int cassette_fd;             /* -1: there is none */
	struct cassette cassette;    /* once somebody has asked for requests */
	bool is_loaded;
};

/* Opens contents that the log names, and checks them. */
_warn_unused_ int oplog_open_content(
	const cloche_oplog *log, struct str ref, struct cloche_err *err);

/* Opens the cassette that lies beside a log, for reading. dir AT_FDCWD: name is a path of the log.
 * -1: there is none. */
int oplog_open_cassette(int dir, const char *name);
/* The cassette of a sandbox, to be appended to: a new file. */
_warn_unused_ int oplog_create_cassette(const char *id, struct cloche_err *err);
/* The one that is meant by an id, a name, or the file of a log or of a cassette. */
_warn_unused_ int oplog_find_cassette(const char *name, struct cloche_err *err);
/* Copies it into this directory; fine if there is none. */
_warn_unused_ int oplog_export_cassette(const cloche_oplog *log, int logs, struct cloche_err *err);
/* Of a sandbox; fine if there is none. */
_warn_unused_ int oplog_remove_cassette(int logs, const char *id, struct cloche_err *err);

static inline void cloche_oplog_freep(cloche_oplog **log)
{
	cloche_oplog_free(*log);
}
