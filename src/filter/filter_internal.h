/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the filters; internal to this folder. A filter is a file with a struct body_filter, a
 * place in filter.h, and a row in the table in filter.c. */

#include "filter/filter.h"
#include "filter/graphql_request.h"

struct body_filter {
	const char *name;
	size_t body_max; /* of a body as received */
	/* Return 1 if the filter handles this request, 0 if not, or -ENOMEM. */
	int (*selects)(const struct filter_request *req);
	/* Run over a body without content coding. Return 0, or a negative errno. */
	int (*run)(const struct filter_request *req, struct str body, struct filter_result *res);
	/* As filter_stands(). */
	int (*stands)(const struct filter_request *was, const struct filter_request *now,
		const struct filter_relies *relies);
	/* Refuse a body that cannot be read at all: `detail` is "<too-large>" and the like. */
	int (*unreadable)(struct filter_result *res, struct str detail);
};

extern const struct body_filter filter_graphql, filter_tools;

/* Refuse the request: fill error, message and detail ("<...>", or text of the request, which is
 * cut). Return 0, so that a filter can return this directly, or -ENOMEM. */
_warn_unused_ int filter_refuse(
	struct filter_result *res, const char *error, const char *message, struct str detail);

/* Add text of the request to a tag, which is cut if it gets longer than FILTER_TAG_MAX. Return 0 or
 * -ENOMEM. */
_warn_unused_ int filter_tag(struct buf *tag, struct str text);

/* Judge the operation that req will execute by the `graphql:` block of the rule. Every root field
 * (by its real name, whatever its alias) must match a pattern of the operation's list. Fields of
 * inline fragments nested up to two deep are root fields; a named or deeper fragment at the root is
 * refused. Directives are ignored, because a field that may be skipped may also be executed.
 *
 * Return 0 if it is allowed, 1 if it is refused, -ENOMEM. tag gets "mutation/createIssue" (the
 * first field, or the first that is refused); detail gets the same, "mutation:<blocked>" if the
 * list is empty, or "<fragment-spread>". */
_warn_unused_ int graphql_operations_judge(const struct allow_rule *rule,
	const struct graphql_request *req, struct buf *tag, struct buf *detail);
