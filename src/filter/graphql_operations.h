/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The `graphql:` block of an allowlist entry: which operations may be executed, by the fields that
 * stand at their root. */

#include "base/buf.h"
#include "filter/graphql_request.h"
#include "policy/allowlist.h"

/* Judges the operation that req will execute. Every root field (by its real name, whatever its
 * alias) must match a pattern of the operation's list; fields of inline fragments nested up to two
 * deep are root fields, and a named or deeper fragment at the root is refused. Directives do not
 * matter: a field that may be skipped may also not be.
 *
 * Returns 0 if it is allowed, 1 if it is refused, -ENOMEM. tag gets "mutation/createIssue"
 * (the first field, or the first that is refused), detail the same, "mutation:<blocked>" if the
 * list is empty, or "<fragment-spread>". */
_warn_unused_ int graphql_operations_judge(const struct allow_rule *rule,
	const struct graphql_request *req, struct buf *tag, struct buf *detail);
