/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a request may pass only if it will certainly be executed as it was judged:
 * POST, one JSON object in the body, nothing in the URL, no header that changes the method or the
 * path. */
#include "base/strv.h"
#include "filter/filter_internal.h"

static int graphql_selects(const struct filter_request *req)
{
	return req->rule->has_graphql;
}

static int graphql_unreadable(struct filter_result *res, struct str detail)
{
	return filter_refuse(res, "graphql_operation_blocked",
		"This GraphQL request cannot be judged, so it is refused. Send one operation as an "
		"object in application/json by POST.",
		detail);
}

/* application/json, alone or with charset=utf-8 (RFC 9110 8.3.1). */
static bool is_json(const struct http_fields *f)
{
	struct str value = http_fields_get(f, STR("content-type"));
	size_t semicolon = str_chr(value, ';');
	struct str type = str_trim(str_prefix(value, semicolon));
	struct str parameter = str_trim(str_from_index(value, semicolon + 1));

	return http_fields_count(f, STR("content-type")) == 1 &&
	       str_ieq(type, STR("application/json")) &&
	       (parameter.n == 0 || str_ieq(parameter, STR("charset=utf-8")) ||
		       str_ieq(parameter, STR("charset=\"utf-8\"")));
}

static const char *head_problem(const struct filter_request *req)
{
	const struct policy_request *asked = req->asked;

	if (!str_eq(asked->method, STR("POST")) || asked->other_method.n > 0)
		return "<method>";
	if (asked->other_path)
		return "<path>";
	if (str_chr(asked->target, '?') < asked->target.n)
		return "<query-in-url>";
	return is_json(&req->head->fields) ? NULL : "<content-type>";
}

static int graphql_run(const struct filter_request *req, struct str body, struct filter_result *res)
{
	_cleanup_(graphql_request_done) struct graphql_request request = {.operation = GQL_NONE};
	_cleanup_(buf_donep) struct buf detail = BUF_INIT(GQL_SOURCE_MAX + 64),
					tag = BUF_INIT(GQL_SOURCE_MAX + 64);
	const char *problem = head_problem(req);
	int r = problem ? 0 : graphql_request_read(body, &request, &problem), judged;

	if (r < 0)
		return r;
	if (problem) {
		r = filter_tag(&res->tag[FILTER_PLACE_GRAPHQL], str_from(problem));
		return r < 0 ? r : graphql_unreadable(res, str_from(problem));
	}
	judged = graphql_operations_judge(req->rule, &request, &tag, &detail);
	r = judged < 0 ? judged : filter_tag(&res->tag[FILTER_PLACE_GRAPHQL], buf_str(&tag));
	if (r < 0 || judged == 0)
		return r;
	return filter_refuse(res, "graphql_operation_blocked",
		"This GraphQL operation is not in the network allowlist.", buf_str(&detail));
}

static int graphql_stands(const struct filter_request *was, const struct filter_request *now,
	_unused_ const struct filter_relies *relies)
{
	const struct allow_rule *a = was->rule, *b = now->rule;

	return strv_eq(a->graphql_queries, b->graphql_queries) &&
	       strv_eq(a->graphql_mutations, b->graphql_mutations) &&
	       strv_eq(a->graphql_subscriptions, b->graphql_subscriptions);
}

const struct body_filter filter_graphql = {
	.name = "graphql",
	.body_max = GQL_SOURCE_MAX,
	.selects = graphql_selects,
	.run = graphql_run,
	.stands = graphql_stands,
	.unreadable = graphql_unreadable,
};
