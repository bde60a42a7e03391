/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Contents in an entry itself, or stored beside the log. */

#include "record/op.h"
#include "report/report.h"

struct content {
	struct str text; /* borrowed; the contents in the entry */
	int fd;          /* -1: they are in the entry */
	uint64_t size;
	bool is_missing; /* not beside the log, or it does not match its name */
	struct buf bytes;
};
#define CONTENT_INIT ((struct content){.fd = -1, .bytes = BUF_INIT(STATE_LINE_MAX)})

/* Negative only if memory runs out. */
_warn_unused_ int content_of(struct content *ret, const struct report_source *source,
	struct str text, bool is_ref, struct cloche_err *err);
/* Get an argument of an event: its text under key, or contents under ref_key. Without both it is
 * empty. */
_warn_unused_ int content_of_args(struct content *ret, const struct report_source *source,
	const json_t *args, const char *key, const char *ref_key, struct cloche_err *err);
/* Read up to n bytes from `at`; fewer at the end, or if reading fails. Valid until the next
 * call. */
struct str content_read(struct content *c, uint64_t at, size_t n);
void content_done(struct content *c);

static inline void content_donep(struct content *c)
{
	content_done(c);
}
