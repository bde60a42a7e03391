/* SPDX-License-Identifier: Apache-2.0 */
#include "api/oplog.h"
#include "report/report.h"

static int open_content(void *user, struct str ref, struct cloche_err *err)
{
	return oplog_open_content(user, ref, err);
}

static int read_requests(
	void *user, uint64_t after, cloche_request_fn fn, void *fn_user, struct cloche_err *err)
{
	return cloche_oplog_requests(user, after, fn, fn_user, err);
}

static int read_body(void *user, uint64_t number, enum cloche_body which, cloche_body_fn fn,
	void *fn_user, struct cloche_err *err)
{
	return cloche_oplog_read_body(user, number, which, fn, fn_user, err);
}

int cloche_oplog_report(cloche_oplog *log, int fd, cloche_err *err)
{
	const struct report_source source = {.log = log->fd,
		.torn = log->id[0] ? NULL : &log->torn,
		.id = log->id,
		.user = log,
		.open = open_content,
		.requests = read_requests,
		.body = read_body};
	struct cloche_err own = CLOCHE_ERR_INIT;

	return report_write(&source, fd, err ? err : &own);
}
