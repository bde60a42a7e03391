/* SPDX-License-Identifier: Apache-2.0 */
#include "filter/graphql_request.h"

#include "filter/body_json.h"

#include <errno.h>

static const char unparseable[] = "<unparseable>";

static const char *check_extensions(const json_t *extensions)
{
	const char *key;
	json_t *member;

	if (!extensions || json_is_null(extensions))
		return NULL;
	if (!json_is_object(extensions))
		return unparseable;
	json_object_foreach ((json_t *)(uintptr_t)extensions, key, member) {
		if (str_ieq(str_from(key), STR("persistedQuery")))
			return "<persisted-query>";
	}
	return NULL;
}

/* A server may know more members than these, and may ignore their case. */
static const char *check_members(const json_t *body)
{
	static const char *const known[] = {"query", "variables", "operationName", "extensions"};
	const char *key;
	json_t *member;

	json_object_foreach ((json_t *)(uintptr_t)body, key, member) {
		size_t i = 0;

		while (i < ARRAY_SIZE(known) && !str_eq(str_from(key), str_from(known[i])))
			i++;
		if (i == ARRAY_SIZE(known))
			return "<unknown-key>";
	}
	return check_extensions(json_object_get(body, "extensions"));
}

/* GetOperation() of section 6.1. If there is only one operation, it is selected whatever the name
 * says: a server runs either that one or nothing. */
static const char *select_operation(struct graphql_request *req)
{
	const json_t *given = json_object_get(req->body, "operationName");
	uint32_t count = 0, named = 0;

	for (uint32_t i = gql_first(&req->doc, GQL_NONE); i != GQL_NONE;
		i = gql_next(&req->doc, i)) {
		const struct gql_node *node = &req->doc.node[i];
		bool match;

		if (node->kind != GQL_OPERATION)
			continue;
		match = json_is_string(given) && node->name.n > 0 &&
			str_eq(json_str(given), node->name);
		count++;
		named += match;
		if (count == 1 || match)
			req->operation = i;
	}
	if (count == 0)
		return unparseable;
	return count == 1 || named == 1 ? NULL : "<operation-name-invalid>";
}

static int read_json(struct str text, json_t **ret, const char **ret_problem)
{
	int r = body_json_read(text, ret);

	if (r == 0 || r == -ENOMEM)
		return r;
	*ret_problem = r == -EEXIST ? "<duplicate-key>" : unparseable;
	return 0;
}

int graphql_request_read(struct str body, struct graphql_request *ret, const char **ret_problem)
{
	struct str query;
	int r;

	*ret = (struct graphql_request){.operation = GQL_NONE};
	*ret_problem = body.n > GQL_SOURCE_MAX ? "<too-large>" : NULL;
	r = *ret_problem ? 0 : read_json(body, &ret->body, ret_problem);
	if (r < 0 || *ret_problem)
		return r;
	if (!json_is_object(ret->body)) {
		*ret_problem = json_is_array(ret->body) ? "<batched>" : unparseable;
		return 0;
	}
	*ret_problem = check_members(ret->body);
	ret->variables = json_object_get(ret->body, "variables");
	if (json_is_null(ret->variables))
		ret->variables = NULL;
	if (*ret_problem)
		return 0;
	query = json_str_at(ret->body, "query");
	/* A parser may take NUL for the end. */
	if (!query.p || str_chr(query, '\0') < query.n ||
		(ret->variables && !json_is_object(ret->variables))) {
		*ret_problem = unparseable;
		return 0;
	}
	r = gql_parse(query, &ret->doc);
	if (r == -ENOMEM)
		return r;
	*ret_problem = r == -E2BIG ? "<too-large>" : r < 0 ? unparseable : select_operation(ret);
	return 0;
}

void graphql_request_done(struct graphql_request *req)
{
	json_decref(req->body);
	gql_doc_done(&req->doc);
	*req = (struct graphql_request){.operation = GQL_NONE};
}
