/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the filters share. Internal to this folder. A filter is a file with one of these, a place in
 * filter.h, and a row of the table in filter.c. */

#include "filter/filter.h"

struct body_filter {
	const char *name;
	size_t body_max; /* of a body as received */
	/* Whether it looks at this request. 1 or 0, or -ENOMEM. */
	int (*selects)(const struct filter_request *req);
	/* Runs over a body without content coding. 0, or a negative errno. */
	int (*run)(const struct filter_request *req, struct str body, struct filter_result *res);
	/* Refuses a body that cannot be read at all: `detail` is "<too-large>" and the like. */
	int (*unreadable)(struct filter_result *res, struct str detail);
};

extern const struct body_filter filter_graphql, filter_tools;

/* Refuses: fills error, message and detail ("<...>", or text of the request, which is cut). 0, so
 * that a filter can end with it; the result says that it is refused. -ENOMEM. */
_warn_unused_ int filter_refuse(
	struct filter_result *res, const char *error, const char *message, struct str detail);

/* Adds text of the request to a tag, which is cut if it gets longer than FILTER_TAG_MAX. 0 or
 * -ENOMEM. */
_warn_unused_ int filter_tag(struct buf *tag, struct str text);
