/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The `graphql:` block of an allowlist entry: which operations may be executed, by their root
 * fields. */

#include "base/buf.h"
#include "filter/graphql_request.h"
#include "policy/allowlist.h"

/* Judge the operation that req will execute. Every root field (by its real name, whatever its
 * alias) must match a pattern of the operation's list. Fields of inline fragments nested up to two
 * deep are root fields; a named or deeper fragment at the root is refused. Directives are ignored,
 * because a field that may be skipped may also be executed.
 *
 * Return 0 if it is allowed, 1 if it is refused, -ENOMEM. tag gets "mutation/createIssue" (the
 * first field, or the first that is refused); detail gets the same, "mutation:<blocked>" if the
 * list is empty, or "<fragment-spread>". */
_warn_unused_ int graphql_operations_judge(const struct allow_rule *rule,
	const struct graphql_request *req, struct buf *tag, struct buf *detail);
