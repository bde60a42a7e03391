/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Read back a network log of either form. The file is not trusted: nothing in it is shown without
 * escaping. */

#include "base/err.h"
#include "netlog/netlog.h"
#include <cloche/network_log.h>

struct netlog_reader;

/* Read from fd (borrowed) at its position. If the front of the file is a hole, begin with the first
 * whole line behind it. NULL on lack of memory. */
struct netlog_reader *netlog_reader_new(int fd);
/* Go on with what comes after the end of the file as it is now. */
_warn_unused_ int netlog_reader_skip(struct netlog_reader *r, struct cloche_err *err);
/* From now on the file may grow: at its end, keep the beginning of a line for the next call. */
void netlog_reader_follow(struct netlog_reader *r);
struct netlog_reader *netlog_reader_free(struct netlog_reader *r);
DEFINE_CLEANUP(struct netlog_reader, netlog_reader_free)

/* Read the next event into *ret; its views are valid until the next call. Blank lines and
 * beginnings of requests (NETLOG_INTENT) are skipped. A line that cannot be parsed (or is longer
 * than 64 KiB) becomes NETLOG_OTHER with the text in note. Return 1, 0 at the end of the file, or
 * negative on errors. */
_warn_unused_ int netlog_reader_next(
	struct netlog_reader *r, struct netlog_event *ret, struct cloche_err *err);

/* Return 0, or E_CONFIG if lines were read and none of them is one of a network log. */
_warn_unused_ int netlog_reader_check(
	const struct netlog_reader *r, const char *path, struct cloche_err *err);

void netlog_summary_add(cloche_network_summary *sum, const struct netlog_event *ev);
