/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the filters share. Internal to this folder. */

#include "filter/filter.h"

/* Refuses: fills error, message and detail ("<...>", or text of the request, which is cut). 0, so
 * that a filter can end with it; the result says that it is refused. -ENOMEM. */
_warn_unused_ int filter_refuse(
	struct filter_result *res, const char *error, const char *message, struct str detail);

/* Adds text of the request to a tag, which is cut where it gets longer than FILTER_TAG_MAX. 0 or
 * -ENOMEM. */
_warn_unused_ int filter_tag(struct buf *tag, struct str text);

/* Runs over a body without content coding. 0, or a negative errno. */
_warn_unused_ int filter_graphql(
	const struct filter_request *req, struct str body, struct filter_result *res);
_warn_unused_ int filter_tools(
	const struct filter_request *req, struct str body, struct filter_result *res);

/* What each says where the body cannot be read at all: `detail` is "<too-large>" and the like. */
_warn_unused_ int filter_graphql_unreadable(struct filter_result *res, struct str detail);
_warn_unused_ int filter_tools_unreadable(struct filter_result *res, struct str detail);
