/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A GraphQL request over HTTP, as it is written in a body of JSON: one object with `query` and,
 * all optional, `variables`, `operationName` and `extensions`. Anything that a server could read
 * as another request than we do is refused: repeated or further members, batches, persisted
 * queries. */

#include "base/json.h"
#include "filter/graphql.h"

struct graphql_request {
	json_t *body;            /* owned */
	struct gql_doc doc;      /* its strings are views into body */
	const json_t *variables; /* an object, or NULL; borrowed from body */
	uint32_t operation;      /* the node of the operation that will be executed */
};

/* Read a body (already without content coding). Return 0, or -ENOMEM. *ret_problem is NULL, or the
 * reason of a refusal as a static word in angle brackets: "<too-large>", "<unparseable>",
 * "<duplicate-key>", "<unknown-key>", "<batched>", "<persisted-query>", "<operation-name-invalid>".
 * Give ret to graphql_request_done in any case. */
_warn_unused_ int graphql_request_read(
	struct str body, struct graphql_request *ret, const char **ret_problem);
void graphql_request_done(struct graphql_request *req);
