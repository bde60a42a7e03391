/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which repositories a request to GitHub's GraphQL endpoint addresses: everything in it that names
 * a repository, or something inside one, must belong to a given set. Meant for a credential that
 * reaches further than the set; the check is of the request alone, so it keeps a request from
 * addressing another repository, not from walking to one along the edges of GitHub's graph (a
 * fork's parent, a user's issues).
 *
 * Refused are, in any operation and fragment of the document, and in its variables:
 *	fields that list repositories across owners (search, forks, repositories, ...)
 *	resource(url:)
 *	repository(owner:, name:), repositoryNameWithOwner: a name that is not in the set
 *	repositoryId: a node id that is not in the set
 *	id, ids, ...Id, ...Ids: a node id that is not of a repository in the set or of something in
 *	one; ids of users, organisations and bots pass
 * and any of these whose value cannot be known. */

#include "base/buf.h"
#include "filter/graphql_request.h"

/* The set. Build it, then use it read-only. */
struct graphql_scope;

/* Empty; NULL on lack of memory. */
struct graphql_scope *graphql_scope_new(void);
/* NULL is fine; returns NULL. */
struct graphql_scope *graphql_scope_free(struct graphql_scope *scope);
DEFINE_CLEANUP(struct graphql_scope, graphql_scope_free)

/* Adds a repository: its node id ("R_...") and its full name ("owner/name", case ignored), both
 * copied; either may be empty if it is not known. Returns 0; -EINVAL for a node id of which no
 * repository can be read, or a name without its '/'; -ENOMEM. */
_warn_unused_ int graphql_scope_add(
	struct graphql_scope *scope, struct str node_id, struct str full_name);

/* Judges a request. Returns 0 if it stays within the set; 1 if not, with the offence added to
 * detail ("repository:owner/name", "repositoryId:R_x", "issueId:I_x", "<multi-repo:search>",
 * "<url-addressed:resource>", "<unresolved-variable>"; raw text of the request, at most
 * GRAPHQL_SCOPE_DETAIL_MAX bytes); -ENOMEM. */
_warn_unused_ int graphql_scope_check(
	const struct graphql_scope *scope, const struct graphql_request *req, struct buf *detail);

#define GRAPHQL_SCOPE_DETAIL_MAX 200

/* Whether a request with this canonical path (percent-decoded, without the query) is for a GraphQL
 * endpoint of GitHub: /graphql, or /api/graphql as GitHub Enterprise Server has it; also in what a
 * router may take for it (case, empty segments, parameters, a format behind a dot, what may be
 * decoded once more), which must not get round the check. */
bool graphql_scope_covers(struct str path);

/* The database id of the repository that a node id ("PREFIX_base64url(msgpack)") is of or in.
 * Returns 0; 1 for what lives outside of repositories (users, organisations, bots); -EINVAL if
 * none can be read; -ENOMEM. */
_warn_unused_ int graphql_node_repository(struct str node_id, uint64_t *ret);
