/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* An operation log as a page of HTML for a person: see docs/design/state.md. Pure: it reads a log
 * and writes to a descriptor; contents and requests it gets from whoever calls. */

#include "base/err.h"
#include "base/str.h"
#include <cloche/state.h>

struct report_source {
	int log;        /* of the log, borrowed */
	const char *id; /* of the sandbox; "": a file */
	void *user;     /* of the functions */
	/* A descriptor of contents, which were checked; to be closed. */
	int (*open)(void *user, struct str ref, struct cloche_err *err);
	/* As cloche_oplog_requests() and cloche_oplog_read_body(). */
	int (*requests)(void *user, uint64_t after, cloche_request_fn fn, void *fn_user,
		struct cloche_err *err);
	int (*body)(void *user, uint64_t number, enum cloche_body which, cloche_body_fn fn,
		void *fn_user, struct cloche_err *err);
};

/* Writes the page to fd. The log may grow meanwhile. E_CORRUPT names the entry that is none; what
 * was written by then is no page. */
_warn_unused_ int report_write(const struct report_source *source, int fd, struct cloche_err *err);
