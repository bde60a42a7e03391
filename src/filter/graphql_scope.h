/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Check which repositories a request to GitHub's GraphQL endpoint addresses: everything in it that
 * names a repository, or something inside one, must belong to a given set. This is for a credential
 * that reaches further than the set. Only the request is checked: it cannot address another
 * repository, but it can still reach one along the edges of GitHub's graph (a fork's parent, a
 * user's issues).
 *
 * These are refused, in any operation and fragment of the document, and in its variables:
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

/* Return an empty set; NULL on lack of memory. */
struct graphql_scope *graphql_scope_new(void);
/* NULL is fine; returns NULL. */
struct graphql_scope *graphql_scope_free(struct graphql_scope *scope);
DEFINE_CLEANUP(struct graphql_scope, graphql_scope_free)

/* Add a repository: its node id ("R_...", or of the older form, which is only compared), its full
 * name ("owner/name", case ignored) and its database id, by which ids of things inside it are
 * known. The texts are copied; what is not known is empty, or 0. If the node id has another
 * database id in it, neither counts. Return 0; -EINVAL, with nothing added, for the node id of
 * something else or a name without its '/'; -ENOMEM. */
_warn_unused_ int graphql_scope_add(struct graphql_scope *scope, struct str node_id,
	struct str full_name, uint64_t database_id);

/* Judge a request. Return 0 if it stays within the set; 1 if not, with the offence added to detail
 * ("repository:owner/name", "repositoryId:R_x", "issueId:I_x", "<multi-repo:search>",
 * "<url-addressed:resource>", "<unresolved-variable>"; raw text of the request, at most
 * GRAPHQL_SCOPE_DETAIL_MAX bytes); -ENOMEM. */
_warn_unused_ int graphql_scope_check(
	const struct graphql_scope *scope, const struct graphql_request *req, struct buf *detail);

#define GRAPHQL_SCOPE_DETAIL_MAX 200

/* Return whether this canonical path (percent-decoded, without the query) is a GraphQL endpoint of
 * GitHub: /graphql, or /api/graphql on a GitHub Enterprise Server. This includes any spelling that
 * a router may take for one (case, empty segments, parameters, a format after a dot, what may be
 * decoded once more), so that none evades the check. */
bool graphql_scope_covers(struct str path);

/* Set *ret to the database id of the repository that a node id ("PREFIX_base64url(msgpack)") names,
 * or is inside of. Return 0; 1 for objects outside of repositories (users, organisations, bots);
 * -EINVAL if no id can be read; -ENOMEM. */
_warn_unused_ int graphql_node_repository(struct str node_id, uint64_t *ret);
