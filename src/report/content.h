/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Contents that stand in an entry, or beside the log. */

#include "report/report.h"
#include "state/op.h"

struct content {
	struct str text; /* borrowed; what stands in the entry */
	int fd;          /* -1: it does */
	uint64_t size;
	bool is_missing; /* it is not beside the log, or is not what its name says */
	struct buf bytes;
};
#define CONTENT_INIT ((struct content){.fd = -1, .bytes = BUF_INIT(STATE_LINE_MAX)})

/* Negative on lack of memory alone. */
_warn_unused_ int content_of(struct content *ret, const struct report_source *source,
	struct str text, bool is_ref, struct cloche_err *err);
/* An argument of an event: its text under key, or contents under ref_key. Neither: it is empty. */
_warn_unused_ int content_of_args(struct content *ret, const struct report_source *source,
	const json_t *args, const char *key, const char *ref_key, struct cloche_err *err);
/* Up to n bytes from `at`; fewer at the end, or if it cannot be read. Valid until the next call.
 */
struct str content_read(struct content *c, uint64_t at, size_t n);
void content_done(struct content *c);

static inline void content_donep(struct content *c)
{
	content_done(c);
}
