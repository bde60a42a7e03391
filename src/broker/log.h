/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Lines of the network log. */

#include "base/buf.h"
#include "base/str.h"
#include "ipc/netchan.h"
#include "netlog/netlog.h"

struct broker;
struct scrubber;
struct stream;

struct log_lines {
	struct netlog *log;
	int fds[4];                    /* plain, JSON, live, kept */
	struct scrubber *scrubber;     /* NULL: nothing is to be hidden */
	struct buf url;                /* of the line that is being written */
	const struct net_owner *owner; /* process behind what is refused now; NULL: not known */
	unsigned unlogged;             /* events that could not be written */
};

/* The ints are 0, or negative if the line was not written. The other functions count lost lines,
 * and the next request logs that count first. */
/* The intent is on record only after netlog_flush(). */
_warn_unused_ int log_intent(struct stream *s);
void log_gateway_event(struct broker *b, const struct net_event *e);
/* Log that a request has become a WebSocket. log_result() later logs its end. */
void log_websocket(struct stream *s);
void log_result(struct stream *s, enum netlog_kind kind, bool allowed);
_warn_unused_ int log_stripped(struct stream *s, struct str header);
_warn_unused_ int log_collapsed(struct stream *s, struct str header, unsigned count);
_warn_unused_ int log_warning(struct broker *b, struct str text);
/* The same for a secret that was not put into a header. */
_warn_unused_ int log_withheld(struct broker *b, struct str text);
