/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Writes an operation log as an HTML page for people to read: see docs/design/state.md. Pure: it
 * reads a log and writes to a descriptor; the caller provides contents and requests. */

#include "base/err.h"
#include "base/str.h"
#include <cloche/state.h>

struct report_source {
	int log;            /* of the log, borrowed */
	uint64_t *torn;     /* as ret_torn of oplog_read_file() */
	const char *id;     /* of the sandbox; "": a file */
	const char *homes;  /* where agents have their homes on the host; NULL: not known */
	cloche_oplog *user; /* what the functions get */
	/* Return a descriptor of contents that were checked; the caller closes it. */
	int (*open)(cloche_oplog *user, struct str ref, struct cloche_err *err);
	/* As cloche_oplog_requests() and cloche_oplog_read_body(). */
	int (*requests)(cloche_oplog *user, uint64_t after, cloche_request_fn fn, void *fn_user,
		struct cloche_err *err);
	int (*body)(cloche_oplog *user, uint64_t number, enum cloche_body which, cloche_body_fn fn,
		void *fn_user, struct cloche_err *err);
};

/* Write the page to fd. The log may grow meanwhile. E_CORRUPT names the bad entry; the output is
 * then incomplete. */
_warn_unused_ int report_write(const struct report_source *source, int fd, struct cloche_err *err);
